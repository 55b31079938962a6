/** The part of `waybill check` for one sink: its guarantee, and the check of its receiver, within a deadline. */
import type { SinkConfig } from '../../../config/load.ts';
import type { Peer } from '../../../connect/trust.ts';
import { within } from '../../../time/deadline.ts';
import { WaybillError, messageOf } from '../../../errors/errors.ts';
import { guaranteeOf, type Finding, type SinkContext } from '../../../sink/define.ts';
import { endingLines } from './certificates.ts';
import type { Line } from './state.ts';

export const lookMs = 60_000;

/** Findings from the settings of a sink, without a connection. */
export function settingLines({ id, definition, settings }: SinkConfig): Line[] {
  return (definition.checkSettings?.(settings, id) ?? []).map((finding) => ({ subject: `sink ${id}`, ...finding }));
}

/** A failure becomes a finding, so that the other sinks are checked too. @throws the reason of the signal */
export async function checkSink(sink: SinkConfig, context: SinkContext, signal: AbortSignal): Promise<Line[]> {
  const subject = `sink ${sink.id}`;
  const { delivery, duplicates, losses } = guaranteeOf(sink.definition, sink.settings);
  const promise = {
    subject,
    level: 'ok',
    message: `${sink.type}, ${sink.format}: ${delivery}; duplicates: ${duplicates}; losses: ${losses}`,
  } as const;
  const peers: Peer[] = [];
  const findings = await findingsOf(sink, { ...context, shown: (_host, peer) => peers.push(peer) }, signal);
  const ending = endingLines(subject, `sinks.${sink.id}`, peers, context.clock.now());
  return [promise, ...settingLines(sink), ...findings.map((finding) => ({ subject, ...finding })), ...ending];
}

async function findingsOf(
  { id, definition, settings }: SinkConfig,
  context: SinkContext,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const setting = settingOf(id, settings);
  const late = (): WaybillError => lateAt(id, settings);
  try {
    return await within((stop) => definition.check(settings, context, stop), lookMs, late, context.clock, signal);
  } catch (thrown) {
    signal.throwIfAborted();
    const message = thrown instanceof WaybillError ? messageOf(thrown) : `cannot check sink "${id}" (${setting}): ${messageOf(thrown)}`;
    return [{ level: 'error', message, setting }];
  }
}

/** The error for a receiver that missed the deadline. */
export function lateAt(id: string, settings: SinkConfig['settings']): WaybillError {
  const message = `sink "${id}" did not respond within ${lookMs / 1000} s: check that the server at ${settingOf(id, settings)} uses this protocol, with TLS as configured`;
  return new WaybillError('sink_unavailable', message);
}

/** The setting with the address of the receiver. */
function settingOf(id: string, settings: SinkConfig['settings']): string {
  const name = ['nodes', 'cloudId', 'brokers', 'address', 'url', 'path', 'directory', 's3'].find((each) => Object.hasOwn(settings, each));
  return name === undefined ? `sinks.${id}` : `sinks.${id}.${name}`;
}
