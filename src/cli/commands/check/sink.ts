/** What `waybill check` says of one sink: its promise, and what looking at its receiver brings, in a time that a person waits for. */
import type { SinkConfig } from '../../../config/load.ts';
import { within } from '../../../deliver/deadline.ts';
import { WaybillError, messageOf } from '../../../errors.ts';
import type { Log } from '../../../model/telemetry.ts';
import type { Finding, SinkContext } from '../../../sink/define.ts';
import type { Line } from './state.ts';

/** More than any receiver needs that answers at all. */
export const lookMs = 60_000;

const silent: Log = { write: () => undefined };

/** What the settings of a sink show without a connection. */
export function settingLines({ id, definition, settings }: SinkConfig): Line[] {
  return (definition.checkSettings?.(settings, id) ?? []).map((finding) => ({ subject: `sink ${id}`, ...finding }));
}

/** Whatever goes wrong is a line: the other sinks are to be looked at too. @throws the signal's reason */
export async function checkSink(
  sink: SinkConfig,
  context: Omit<SinkContext, 'id' | 'format' | 'log'>,
  signal: AbortSignal,
): Promise<Line[]> {
  const subject = `sink ${sink.id}`;
  const { delivery, duplicates, losses } = sink.definition.guarantee(sink.settings);
  const promise = {
    subject,
    level: 'ok',
    message: `${sink.type}, ${sink.format}: ${delivery}; twice at most ${duplicates}; lost at most ${losses}`,
  } as const;
  return [promise, ...settingLines(sink), ...(await findingsOf(sink, context, signal)).map((finding) => ({ subject, ...finding }))];
}

async function findingsOf(
  { id, format, definition, settings }: SinkConfig,
  context: Omit<SinkContext, 'id' | 'format' | 'log'>,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const whole = { ...context, id, format, log: silent };
  const setting = settingOf(id, settings);
  const late = (): WaybillError => lateAt(id, settings);
  try {
    return await within((stop) => definition.check(settings, whole, stop), lookMs, late, context.clock, signal);
  } catch (thrown) {
    signal.throwIfAborted();
    const message = thrown instanceof WaybillError ? messageOf(thrown) : `cannot check sink "${id}" (${setting}): ${messageOf(thrown)}`;
    return [{ level: 'error', message, setting }];
  }
}

/** What is said where a receiver was looked at in vain. */
export function lateAt(id: string, settings: SinkConfig['settings']): WaybillError {
  const message = `sink "${id}" did not answer within ${lookMs / 1000} s: does what listens at ${settingOf(id, settings)} speak its protocol, with or without TLS as the settings say?`;
  return new WaybillError('sink_unavailable', message);
}

/** The setting that says where the receiver is. */
function settingOf(id: string, settings: SinkConfig['settings']): string {
  const name = ['nodes', 'cloudId', 'brokers', 'address', 'url', 'path'].find((each) => Object.hasOwn(settings, each));
  return name === undefined ? `sinks.${id}` : `sinks.${id}.${name}`;
}
