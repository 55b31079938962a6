/** Whether the HTTP Event Collector would take events with this token, found out without sending one: for `check`, and when the sink is opened. */
import { randomUUID } from 'node:crypto';
import { codeOf, WaybillError, wordsOf } from '../errors.ts';
import { wayOf } from '../connect/connection.ts';
import type { Finding, SinkContext } from './define.ts';
import { HecClient } from './splunk-hec-client.ts';
import { readReply, settingOf } from './splunk-hec-reply.ts';
import { baseOf } from './splunk-hec-settings.ts';
import type { SplunkHecSettings } from './splunk-hec-settings.ts';

const nothing = Buffer.alloc(0);

/**
 * Posts nothing: a good token is answered with "no data" (code 5), which tells it from a bad one where health does not. With `acknowledge` it is
 * also asked for an acknowledgement, which a token without them refuses.
 * @throws WaybillError `sink_blocked` for a token that would not do; `sink_again` when nobody answers
 */
export async function probe(
  client: HecClient,
  settings: SplunkHecSettings,
  id: string,
  channel: string,
  signal: AbortSignal,
): Promise<void> {
  const { acknowledge, token } = settings;
  const own = acknowledge ? channel : undefined;
  const asked = [() => client.post('event', nothing, own, signal)];
  if (acknowledge) asked.push(() => client.post(`ack?channel=${channel}`, Buffer.from('{"acks":[0]}'), channel, signal));
  for (const ask of asked) {
    const answer = await ask().catch((thrown: unknown) => {
      signal.throwIfAborted();
      // Nothing was sent that could have been taken.
      throw codeOf(thrown) === 'sink_unknown' ? new WaybillError('sink_again', wordsOf(thrown), { cause: thrown }) : thrown;
    });
    const { meaning, status, code, words } = readReply(answer);
    // Other products that speak this protocol have words of their own for a request without data.
    if (meaning !== 'blocked' || (status === 400 && code === undefined)) continue;
    const hints: Readonly<Record<number, string>> = {
      10: `; its token wants acknowledgements: sinks.${id}.acknowledge: true, or another token`,
      14: `; its token has no acknowledgements: switch them on there, or sinks.${id}.acknowledge: false`,
    };
    const about = settingOf({ status, code });
    // Its token is what decides on acknowledgements.
    const named = about === 'url' ? `sinks.${id}.url` : token.describe();
    const where = `cannot use "${baseOf(settings)}" for sink "${id}" (${named})`;
    throw new WaybillError('sink_blocked', `${where}: ${words}${hints[code ?? -1] ?? ''}`);
  }
}

export async function checkCollector(settings: SplunkHecSettings, context: SinkContext, signal: AbortSignal): Promise<Finding[]> {
  const { id } = context;
  const findings = cloudFindings(settings, id);
  await using client = new HecClient(settings, context);
  try {
    const health = await client.health(signal);
    // Of other products that speak this protocol some have no health.
    if (health.status === 503) findings.push({ level: 'warning', words: `not healthy: ${readReply(health).words}` });
    await probe(client, settings, id, settings.channel ?? randomUUID(), signal);
    findings.push({ level: 'ok', words: 'takes the token; whether it may write to the index is known with the first event' });
    findings.push({ level: 'ok', words: wayOf(client.route()) });
  } catch (thrown) {
    signal.throwIfAborted();
    if (!(thrown instanceof WaybillError)) throw thrown;
    findings.push({ level: 'error', words: wordsOf(thrown), setting: `sinks.${id}` });
  }
  if (!settings.acknowledge)
    findings.push(
      warning('acknowledge: false: what Splunk loses between its input queue and its index is lost', `sinks.${id}.acknowledge`),
    );
  return findings;
}

/** Splunk Cloud takes events under another name than that of its pages, and acknowledges those of Firehose alone. */
function cloudFindings(settings: SplunkHecSettings, id: string): Finding[] {
  const { hostname } = new URL(settings.url);
  if (!hostname.endsWith('.splunkcloud.com')) return [];
  const isInputs = /^http-inputs-/.test(hostname);
  return [
    ...(isInputs ? [] : [warning(`Splunk Cloud takes events at http-inputs-${hostname}`, `sinks.${id}.url`)]),
    ...(settings.acknowledge ? [warning('Splunk Cloud acknowledges the events of Firehose alone', `sinks.${id}.acknowledge`)] : []),
  ];
}

function warning(words: string, setting: string): Finding {
  return { level: 'warning', words, setting };
}
