/** The authentication check before the first batch. */
import { within } from '../../time/deadline.ts';
import { WaybillError, codeOf, messageOf } from '../../errors/errors.ts';
import type { Answer, ElasticClient } from './client.ts';
import { plainText } from './items.ts';
import type { SinkContext } from '../define.ts';
import { credentialsOf, type ElasticsearchSettings } from './settings.ts';

/** Timeout of the authentication request, ms. */
const authenticateMs = 10_000;

/** Shows errors of address, trust or credentials before the first batch. @throws WaybillError `sink_unavailable`, `sink_blocked` */
export async function authenticate(
  client: ElasticClient,
  settings: ElasticsearchSettings,
  { id, clock }: Pick<SinkContext, 'id' | 'clock'>,
  signal: AbortSignal,
): Promise<Answer> {
  const silence = (): WaybillError =>
    new WaybillError(
      'sink_unavailable',
      `sink "${id}": the server at sinks.${id}.nodes accepted the connection and did not respond within ${authenticateMs / 1000} s`,
    );
  let answer;
  try {
    const ask = (stop: AbortSignal): Promise<Answer> => client.request({ method: 'GET', path: '/_security/_authenticate' }, stop);
    answer = await within(ask, authenticateMs, silence, clock, signal);
  } catch (thrown) {
    if (codeOf(thrown) !== 'sink_outcome_unknown') throw thrown;
    const isPlain = settings.nodes?.some((node) => node.startsWith('http:')) === true;
    // The request changes nothing, so an unknown outcome is no problem.
    throw isPlain
      ? new WaybillError('sink_blocked', `${messageOf(thrown)} (sinks.${id}.nodes begins with http: perhaps the port speaks TLS)`)
      : new WaybillError('sink_unavailable', messageOf(thrown));
  }
  const { status } = answer;
  const message = `sink "${id}": the server responded ${status} ${plainText(answer.error)}`;
  if (status === 401) throw new WaybillError('sink_blocked', `${message} (sinks.${id}.${credentialsOf(settings)})`);
  // These responses may come from a load balancer, and say nothing about the server.
  const isRefusal = status === 403 || status === 429 || status >= 500;
  if (status === 406 || (!answer.isElasticsearch && !isRefusal))
    throw new WaybillError(
      'sink_blocked',
      `sink "${id}": the server at sinks.${id}.nodes is not Elasticsearch 8 or later; this sink does not support OpenSearch`,
    );
  if (status === 429 || status >= 500) throw new WaybillError('sink_unavailable', message, { retryAfterMs: answer.retryAfterMs });
  return answer;
}
