/**
 * What a sink is made of, in one place: its configuration, its formats, what it promises, how it is checked and how it is opened. The list
 * of sinks (index.ts), the configuration's schema, the option tables and the contract suite follow from it.
 */
import type { z } from 'zod';
import type { ProxySettings } from '../connect/proxy.ts';
import type { Pem, Shown } from '../connect/trust.ts';
import { acceptedFormats } from '../encode/index.ts';
import type { AcceptedFormats, Format } from '../encode/index.ts';
import type { ResumePoint, Sink } from '../model/sink.ts';
import type { Log } from '../model/telemetry.ts';
import type { Clock } from '../model/time.ts';

/** A row of the table of guarantees (docs/guarantees.md). */
export interface Guarantee {
  readonly delivery: 'exactly once' | 'at least once' | 'at most once' | 'best effort';
  readonly duplicates: string;
  readonly losses: string;
}

/** One line of `waybill check`. */
export interface Finding {
  readonly level: 'ok' | 'warning' | 'error';
  readonly message: string;
  /** The setting at fault, e.g. `sinks.siem.path`. */
  readonly setting?: string;
}

/** Where a sink stands: its id, and what the daemon gives to every sink. */
export interface SinkContext {
  readonly id: string;
  readonly log: Log;
  readonly clock: Clock;
  /** How its messages are written. */
  readonly format: Format;
  /** Ids of the sources that it takes, of those that are configured. */
  readonly sources?: readonly string[] | undefined;
  /** The top-level `tls.ca`. */
  readonly ca?: Pem | undefined;
  /** Of HTTPS connections: that of the sink, or the general one; undefined: direct. */
  readonly proxy?: ProxySettings | undefined;
  /** To be told each certificate that a server shows, for the metric of their ends. */
  readonly shown?: Shown | undefined;
}

export interface BatchDefaults {
  readonly records: number;
  readonly bytes: number;
  /** ms */
  readonly wait: number;
}

export interface SinkDefinition<Schema extends z.ZodObject = z.ZodObject> {
  readonly type: string;
  readonly summary: string;
  /** The type's own keys. */
  readonly config: Schema;
  /** Keys of the contract that a later release brings: they are refused by name. */
  readonly later?: readonly string[];
  /** What it takes; the first is the default. */
  readonly formats: readonly [Format, ...Format[]];
  /** Whether ecs and ocsf carry the record's text unless the configuration says otherwise; default true. */
  readonly original?: boolean;
  readonly batch: BatchDefaults;
  /** Whether the outcome of a send can be found out afterwards, perhaps only with some settings: then acknowledgements may be grouped. */
  resolvable(config: z.output<Schema>): boolean;
  /** Whether it keeps our position on its side, and takes the present one in its place when it is opened with `kept.adopt`; default no. */
  keepsPosition?(config: z.output<Schema>): boolean;
  /** Whether it takes each entry once and for all, as a signed log does: nothing is sent to it again, nor for a test; default no. */
  readonly takesOnce?: boolean;
  /** ms a send may take before its outcome counts as unknown. */
  readonly deadline: number;
  /** Bytes of a message at most, where its frames are limited: what is longer is shortened (docs/formats.md, "Truncated messages"). */
  messageBytes?(config: z.output<Schema>): number | undefined;
  /** What may not change under the same id (docs/guarantees.md): the place where messages lie. */
  destination(config: z.output<Schema>): string;
  /** What the events of a source are called in this sink (ECS `data_stream`), where it says so itself. */
  dataStream?(config: z.output<Schema>, source: string): { readonly dataset: string; readonly namespace: string };
  guarantee(config: z.output<Schema>): Guarantee;
  /** What the settings alone show, without a connection: also for `check --offline`. */
  checkSettings?(config: z.output<Schema>, id: string): readonly Finding[];
  check(config: z.output<Schema>, context: SinkContext, signal: AbortSignal): Promise<readonly Finding[]>;
  open(config: z.output<Schema>, context: SinkContext, kept: ResumePoint, signal: AbortSignal): Promise<Sink>;
}

/** What a sink declares: its formats by shape or by name. `defaultFormat` is the first of them unless set. */
interface SinkParts<Schema extends z.ZodObject> extends Omit<SinkDefinition<Schema>, 'type' | 'formats'> {
  readonly formats: AcceptedFormats;
  readonly defaultFormat?: Format;
}

/** Ties the type of the configuration to the functions that take it. */
export function defineSink<Schema extends z.ZodObject>(type: string, parts: SinkParts<Schema>): SinkDefinition<Schema> {
  const { formats, defaultFormat, ...others } = parts;
  return { type, ...others, formats: acceptedFormats(formats, defaultFormat) };
}
