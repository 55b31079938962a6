/**
 * Waits until Splunk has indexed what it was sent. It says `true` of an acknowledgement once and then forgets it; `false` means not yet, failed
 * or unknown, so only time tells.
 */
import { WaybillError, messageOf } from '../../errors.ts';
import type { Clock } from '../../model/time.ts';
import type { HecClient } from './client.ts';
import { readAcknowledgements, readReply } from './reply.ts';

/** Asked every second at first, then every ten; ms. */
const askMs = 1_000;
const askedOften = 10;
const askLaterMs = 10_000;
const maxWait = 300_000;

/**
 * Resolves when all of these are acknowledged on this channel.
 * @throws WaybillError `sink_outcome_unknown` when Splunk does not know the channel, or after five minutes; or the signal's reason
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
  let said = 'not yet';
  for (let asked = 0; clock.monotonic() < to; asked += 1) {
    await clock.sleep(asked < askedOften ? askMs : askLaterMs, signal);
    const answer = await ask(client, channel, [...waiting], id, signal);
    if (typeof answer === 'string') {
      said = answer;
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
    `cannot learn for sink "${id}" whether ${count} indexed, within ${maxWait / 60_000} min: ${said}`,
  );
}

/** Those that have come; in words why nobody knows. A question that fails is asked again: what is indexed stays so. */
async function ask(
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
  if (meaning !== 'blocked') return message;
  throw new WaybillError('sink_outcome_unknown', `cannot ask for acknowledgements for sink "${id}": ${message}`);
}
