/** The first question to a server: who are we to it? */
import { WaybillError, codeOf, messageOf } from '../../errors.ts';
import type { Answer, ElasticClient } from './client.ts';
import { plainText } from './items.ts';
import type { SinkContext } from '../define.ts';
import { credentialsOf } from './settings.ts';
import type { ElasticsearchSettings } from './settings.ts';

/** Longer than a server needs that says no more than who asks. */
const greetMs = 10_000;
const answered = new WaybillError('aborted', 'it is answered');

/**
 * Asks the server who we are: what is wrong with address, trust or credentials is known before the first batch.
 * @throws WaybillError `sink_unavailable`, `sink_blocked`
 */
export async function greet(
  client: ElasticClient,
  settings: ElasticsearchSettings,
  { id, clock }: Pick<SinkContext, 'id' | 'clock'>,
  signal: AbortSignal,
): Promise<Answer> {
  const over = new AbortController();
  const silence = new WaybillError(
    'sink_unavailable',
    `sink "${id}": the server at sinks.${id}.nodes accepted the connection, and did not answer within ${greetMs / 1000} s`,
  );
  const timer = clock.sleep(greetMs, over.signal).then(
    () => over.abort(silence),
    () => undefined,
  );
  let answer;
  try {
    answer = await client.request({ method: 'GET', path: '/_security/_authenticate' }, AbortSignal.any([signal, over.signal]));
  } catch (thrown) {
    if (codeOf(thrown) !== 'sink_outcome_unknown') throw thrown;
    const isPlain = settings.nodes?.some((node) => node.startsWith('http:')) === true;
    // Nothing was asked that could have changed anything.
    throw isPlain
      ? new WaybillError('sink_blocked', `${messageOf(thrown)} (sinks.${id}.nodes begins with http: perhaps the port speaks TLS)`)
      : new WaybillError('sink_unavailable', messageOf(thrown));
  } finally {
    over.abort(answered);
    await timer;
  }
  const { status } = answer;
  const said = `sink "${id}": the server answers ${status} ${plainText(answer.error)}`;
  if (status === 401) throw new WaybillError('sink_blocked', `${said} (sinks.${id}.${credentialsOf(settings)})`);
  // A refusal of somebody in between, or trouble, says nothing about what is behind it.
  const isRefusal = status === 401 || status === 403 || status === 429 || status >= 500;
  if (status === 406 || (!answer.isElasticsearch && !isRefusal))
    throw new WaybillError(
      'sink_blocked',
      `sink "${id}": what answers at sinks.${id}.nodes is not Elasticsearch 8 or later; OpenSearch is no target of this sink`,
    );
  if (status === 429 || status >= 500) throw new WaybillError('sink_unavailable', said, { retryAfterMs: answer.retryAfterMs });
  return answer;
}
