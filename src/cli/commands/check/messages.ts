/** The part of `waybill check` for message sizes: do records of every outcome fit into the frames of the receiver? Needs no connection. */
import type { Config, SinkConfig } from '../../../config/load.ts';
import { settingsOf } from '../../../config/service-facts.ts';
import { writerOf } from '../../../daemon/open-sink.ts';
import { normalizer } from '../../../normalize/normalizer.ts';
import { outcomes } from '../../../normalize/outcomes.ts';
import type { EcsEvent } from '../../../record/event.ts';
import { exampleRecord } from '../../../record/example.ts';
import { identify } from '../../../record/identity.ts';
import { readText } from '../../../record/read.ts';
import type { Line } from './state.ts';

/** Characters of each text in a long record: the longest file name of common file systems. */
const longText = 255;

/** Largest `maxBytes`. */
const largestLimit = 1_048_576;

/** Empty when the receiver accepts any length, or no source is configured. */
export function messageLines(sink: SinkConfig, config: Config): Line[] {
  const limit = sink.definition.messageBytes?.(sink.settings);
  const [source] = config.sources.filter(({ id }) => sink.sources?.includes(id) ?? true);
  if (limit === undefined || source === undefined) return [];
  const subject = `sink ${sink.id}`;
  const normalize = normalizer(settingsOf(source, sink, config));
  const uidOf = identify(source.id);
  const eventOf = (text: string): EcsEvent => {
    const record = readText(text);
    return normalize({ record, uid: uidOf(record), received: Date.UTC(2024, 4, 1) * 1000 });
  };
  const typical = outcomes.map((outcome, index) => eventOf(exampleRecord(outcome, index)));
  const long = outcomes.map((outcome, index) => eventOf(lengthened(exampleRecord(outcome, index))));

  const fit = (events: readonly EcsEvent[], bytes: number): number => events.filter((event) => fits(sink, event, bytes)).length;
  const share = (name: string, events: readonly EcsEvent[]): string => `${fit(events, limit)} of ${events.length} ${name} records`;
  const message = `${sink.format}: ${share('typical', typical)} and ${share('long', long)} fit into ${limit} bytes, truncated where needed`;
  const isAll = fit(long, limit) === long.length && fit(typical, limit) === typical.length;
  if (isAll) return [{ subject, level: 'ok', message }];

  // Header and frame have the same size at any limit.
  const overhead = largestLimit - (sink.definition.messageBytes?.({ ...sink.settings, maxBytes: largestLimit }) ?? largestLimit);
  const all = [...typical, ...long];
  let [low, high] = [limit, largestLimit];
  while (low + 1 < high) {
    const middle = Math.floor((low + high) / 2);
    if (fit(all, middle) === all.length) high = middle;
    else low = middle;
  }
  const setting = `sinks.${sink.id}.maxBytes`;
  const hint = `the others would become dead letters: set maxBytes to ${high + overhead} or more, or choose a shorter format`;
  // The operator did not choose this default, and it loses records.
  const isDefault = (sink.settings as { readonly maxBytes?: number | undefined }).maxBytes === undefined;
  const level = isDefault || fit(typical, limit) < typical.length ? 'error' : 'warning';
  return [{ subject, level, message: `${message}; ${hint}`, setting }];
}

function fits(sink: SinkConfig, event: EcsEvent, bytes: number): boolean {
  const { encode, shorten } = writerOf(sink);
  return encode(event).length <= bytes || shorten(event, bytes) !== undefined;
}

/** The same record with every free text at its usual maximum. */
function lengthened(text: string): string {
  const fixed = new Set(['actionAttempted', 'result', 'resultReason', 'logTimestamp', 'ipAddress', 'mac', 'uuid', 'latLong']);
  return JSON.stringify(JSON.parse(text), (key, value: unknown) =>
    typeof value === 'string' && !fixed.has(key) ? value.padEnd(longText, ' long text') : value,
  );
}
