/** The definition of a sink type, for the list of sinks (index.ts), the configuration schema, the option tables and the contract suite. */
import type { z } from 'zod';
import type { ProxySettings } from '../connect/proxy.ts';
import type { Pem, Shown } from '../connect/trust.ts';
import { acceptedFormats, type AcceptedFormats, type Format } from '../encode/index.ts';
import type { ResumePoint, Sink } from '../model/sink.ts';
import type { Log } from '../model/telemetry.ts';
import type { Clock } from '../model/time.ts';

/** A row of the table of guarantees (README, docs/guarantees.md). */
export interface Guarantee<Settings = unknown> {
  /** The settings of a sink that has this row, in Markdown. Undefined: the type has only this row. */
  readonly settings?: string;
  /** Default: true. */
  applies?(settings: Settings): boolean;
  readonly delivery: `${'exactly once' | 'at least once' | 'at most once' | 'best effort'}${string}`;
  readonly duplicates: string;
  readonly losses: string;
}

export interface Finding {
  readonly level: 'ok' | 'warning' | 'error';
  readonly message: string;
  /** The setting at fault, e.g. `sinks.siem.path`. */
  readonly setting?: string;
}

const findingOf =
  (level: Finding['level']) =>
  (message: string, setting?: string): Finding => ({ level, message, ...(setting !== undefined && { setting }) });
export const ok = findingOf('ok');
export const warning = findingOf('warning');
export const error = findingOf('error');

/** A sink of the configuration as it is written: its settings may have any type and may be missing. */
export interface WrittenSink {
  /** Its place in `sinks`. */
  readonly index: number;
  readonly settings: Readonly<Record<string, unknown>>;
}

/** A setting of a written sink at fault, e.g. the setting `nodes`, which `is missing`. */
export interface SettingFault {
  readonly sink: WrittenSink;
  readonly setting: string;
  readonly message: string;
}

/** A setting that is a path which the sink writes. */
interface WrittenPath {
  readonly setting: string;
  readonly kind: 'file' | 'directory';
  /** The endings of the files that the sink keeps for it: `sideFile`. */
  readonly kept: readonly string[];
}

/** The id of a sink, and the parts that the daemon passes to every sink. */
export interface SinkContext {
  readonly id: string;
  readonly log: Log;
  readonly clock: Clock;
  readonly format: Format;
  /** True when the sink also gets ledger entries. */
  readonly ledger?: boolean;
  /** Ids of the configured sources of the sink. */
  readonly sources?: readonly string[] | undefined;
  /** The setting `sources`; undefined: every source, including sources that are added later. */
  readonly selected?: readonly string[] | undefined;
  /** True when the sink has a filter. */
  readonly filtered?: boolean;
  /**
   * In a fleet: `shard` is the journal that the sink gets; undefined for commands, which prepare or check the sinks of all shards. `shards`: their
   * number, for a command that has asked the database.
   */
  readonly fleet?: { readonly shard?: number | undefined; readonly shards?: number | undefined } | undefined;
  /** The top-level `tls.ca`. */
  readonly ca?: Pem | undefined;
  /** The top-level proxy for HTTPS; undefined: direct. A sink with a proxy setting decides between the two. */
  readonly proxy?: ProxySettings | undefined;
  /** Called with each server certificate, for the expiry metric. */
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
  readonly config: Schema;
  /** Accepted formats; the first is the default. */
  readonly formats: readonly [Format, ...Format[]];
  /** The default of `includeOriginal`: true adds the text of the record to ecs and ocsf. Default true. */
  readonly original?: boolean;
  readonly batch: BatchDefaults;
  /** True when the sink can look up an unknown outcome of a send later: then the journal may group acknowledgements. */
  resolvable(config: z.output<Schema>): boolean;
  /** True when the sink stores its position at the receiver. `resumePoint.adopt` makes it store the present position at open. Default false. */
  keepsPosition?(config: z.output<Schema>): boolean;
  /** True when the sink accepts each entry only once, like a signed log: it gets no test, retry or replay. Default false. */
  readonly takesOnce?: boolean;
  /** True if the sink gets the ledger regardless of its setting `ledger`. Default false. */
  readonly alwaysLedger?: boolean;
  /** ms until the outcome of a send counts as unknown. */
  readonly deadline: number;
  /** Maximum bytes of a message, if the receiver has a limit: delivery truncates longer messages (docs/formats.md, "Truncated messages"). */
  messageBytes?(config: z.output<Schema>): number | undefined;
  /** The place where messages are stored. It must not change under the same id (docs/guarantees.md). */
  destination(config: z.output<Schema>): string;
  /** The ECS `data_stream` of the events of a source, if this sink determines it. */
  dataStream?(config: z.output<Schema>, source: string): { readonly dataset: string; readonly namespace: string };
  /** The first row that applies to a configuration is its guarantee. */
  readonly guarantees: readonly Guarantee<z.output<Schema>>[];
  /** The rules between settings that the schema cannot state. @param own  the sinks of this type. @param all  every sink */
  faults?(own: readonly WrittenSink[], all: readonly WrittenSink[]): readonly SettingFault[];
  /** The configuration ensures that nothing else uses the path. */
  readonly path?: WrittenPath;
  /** The reason why the members of a fleet cannot use these settings, as written, and what to use. Default: they can. */
  refusedInFleet?(settings: Readonly<Record<string, unknown>>): string | undefined;
  /** Findings from the settings alone, without a connection; also for `check --offline`. */
  checkSettings?(config: z.output<Schema>, id: string): readonly Finding[];
  check(config: z.output<Schema>, context: SinkContext, signal: AbortSignal): Promise<readonly Finding[]>;
  open(config: z.output<Schema>, context: SinkContext, resumePoint: ResumePoint, signal: AbortSignal): Promise<Sink>;
}

/** The input of `defineSink`. `defaultFormat`: default the first of `formats`. */
interface SinkParts<Schema extends z.ZodObject> extends Omit<SinkDefinition<Schema>, 'type' | 'formats'> {
  readonly formats: AcceptedFormats;
  readonly defaultFormat?: Format;
}

/** Gives the functions of a sink the type of its settings. */
export function defineSink<Schema extends z.ZodObject>(type: string, parts: SinkParts<Schema>): SinkDefinition<Schema> {
  const { formats, defaultFormat, ...others } = parts;
  return { type, ...others, formats: acceptedFormats(formats, defaultFormat) };
}

export function guaranteeOf(
  { type, guarantees }: Pick<SinkDefinition, 'type' | 'guarantees'>,
  settings: Readonly<Record<string, unknown>>,
): Guarantee {
  const found = guarantees.find((guarantee) => guarantee.applies?.(settings) ?? true);
  if (!found) throw new Error(`sink type "${type}" has no guarantee for its settings`);
  return found;
}
