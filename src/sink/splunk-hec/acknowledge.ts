/**
 * Waits until Splunk has indexed the sent requests. Splunk reports `true` for an acknowledgement once, and then forgets it. `false` means
 * pending, failed or unknown, so only a time limit decides.
 */
import { WaybillError, messageOf } from '../../errors/errors.ts';
import type { Clock } from '../../model/time.ts';
import type { HecClient } from './client.ts';
import { readAcknowledgements, readReply } from './reply.ts';

/** The first queries are one second apart, the later ones ten; ms. */
const firstQueryMs = 1_000;
const firstQueries = 10;
const laterQueryMs = 10_000;
const maxWait = 300_000;

/**
 * Resolves when the channel has acknowledged all of these ids.
 * @throws WaybillError `sink_outcome_unknown` if Splunk does not know the channel, or after five minutes; or the reason of the signal
 */
export async function acknowledged(
  client: HecClient,
  channel: string,
  ackIds: readonly number[],
  { id, clock }: { readonly id: string; readonly clock: Clock },
  signal: AbortSignal,
): Promise<void> {
  const waiting = new Set(ackIds);
  const to = clock.monotonic() + maxWait;
  let lastReply = 'not yet';
  for (let queries = 0; clock.monotonic() < to; queries += 1) {
    await clock.sleep(queries < firstQueries ? firstQueryMs : laterQueryMs, signal);
    const answer = await query(client, channel, [...waiting], id, signal);
    if (typeof answer === 'string') {
      lastReply = answer;
      continue;
    }
    // mutant: acknowledged-requests
    for (const ackId of answer) waiting.delete(ackId);
    // mutant: all-acknowledged
    if (waiting.size === 0) return;
  }
  const count = waiting.size === 1 ? 'one request is' : `${waiting.size} requests are`;
  throw new WaybillError(
    'sink_outcome_unknown',
    `cannot determine for sink "${id}" whether ${count} indexed: no acknowledgement within ${maxWait / 60_000} min; ${lastReply}`,
  );
}

/** @returns the acknowledged ids, or the message of a failure; the caller then queries again */
async function query(
  client: HecClient,
  channel: string,
  acks: readonly number[],
  id: string,
  signal: AbortSignal,
): Promise<ReadonlySet<number> | string> {
  let answer;
  try {
    answer = await client.post(`ack?channel=${channel}`, Buffer.from(JSON.stringify({ acks })), channel, signal);
  } catch (thrown) {
    signal.throwIfAborted();
    return messageOf(thrown);
  }
  if (answer.status === 200) return readAcknowledgements(answer.body) ?? new Set();
  const { meaning, message } = readReply(answer);
  if (meaning !== 'blocked' && meaning !== 'refused') return message;
  throw new WaybillError('sink_outcome_unknown', `cannot query acknowledgements for sink "${id}": ${message}`);
}
