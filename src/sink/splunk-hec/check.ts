/** Checks without an event that the HTTP Event Collector accepts the token: for `check`, and before delivery. */
import { randomUUID } from 'node:crypto';
import { codeOf, WaybillError, messageOf } from '../../errors/errors.ts';
import { wayOf } from '../../connect/connection.ts';
import { formatOf } from '../../encode/index.ts';
import { error, ok, warning, type Finding, type SinkContext } from '../define.ts';
import { HecClient, type HecAnswer } from './client.ts';
import { readAcknowledgements, readReply, settingOf } from './reply.ts';
import { baseOf, type SplunkHecSettings } from './settings.ts';

const nothing = Buffer.alloc(0);

/** The responses of servers to plain HTTP on a TLS port: Go's net/http, nginx, Apache httpd. */
const plainOnTls = /HTTP request to an HTTPS server|plain HTTP request was sent to HTTPS port|speaking plain HTTP to an SSL-enabled/i;

/**
 * Posts an empty request. HEC responds to a valid token with "No data" (code 5); its health endpoint accepts any token. With
 * `indexerAcknowledgement`, also queries an acknowledgement: only a response with an `acks` object shows that the receiver acknowledges.
 * @returns true if the response shows that the token is accepted
 * @throws WaybillError `sink_blocked` if the token or receiver contradicts the settings; `sink_unavailable` without a response
 */
export async function probe(
  client: HecClient,
  settings: SplunkHecSettings,
  id: string,
  channel: string,
  signal: AbortSignal,
): Promise<boolean> {
  const { indexerAcknowledgement, token } = settings;
  const where = (setting: string): string => `cannot use "${baseOf(settings)}" for sink "${id}" (${setting})`;
  const ask = (endpoint: string, body: Uint8Array, own: string | undefined): Promise<HecAnswer> =>
    client.post(endpoint, body, own, signal).catch((thrown: unknown) => {
      signal.throwIfAborted();
      // The request contained no event, so nothing was delivered.
      throw codeOf(thrown) === 'sink_outcome_unknown' ? new WaybillError('sink_unavailable', messageOf(thrown), { cause: thrown }) : thrown;
    });
  const refuse = (answer: HecAnswer): void => {
    const { meaning, code, message } = readReply(answer);
    if (meaning !== 'blocked' && meaning !== 'refused') return;
    const hints: Readonly<Record<number, string>> = {
      10: `; the token requires acknowledgements: set sinks.${id}.indexerAcknowledgement: true, or use another token`,
      14: `; the token has acknowledgements disabled: enable them in Splunk, or set sinks.${id}.indexerAcknowledgement: false`,
    };
    // Splunk enables indexer acknowledgement per token.
    const named = settingOf({ code }) === 'url' ? `sinks.${id}.url` : token.describe();
    throw new WaybillError('sink_blocked', `${where(named)}: ${message}${hints[code ?? -1] ?? ''}`);
  };

  const empty = await ask('event', nothing, indexerAcknowledgement ? channel : undefined);
  const { code, message } = readReply(empty);
  if (code === undefined && plainOnTls.test(empty.body)) {
    const hint = 'the port expects TLS: the address must begin with https:';
    throw new WaybillError('sink_blocked', `${where(`sinks.${id}.url`)}: ${hint}: ${message}`);
  }
  // Other products with this protocol may respond to an empty request differently.
  const isForeign = empty.status === 400 && code === undefined;
  if (!isForeign) refuse(empty);
  if (!indexerAcknowledgement) return !isForeign;

  const answer = await ask(`ack?channel=${channel}`, Buffer.from('{"acks":[0]}'), channel);
  if (answer.status === 200 && readAcknowledgements(answer.body) !== undefined) return !isForeign;
  const reply = readReply(answer);
  // An invalid token, or one without acknowledgements (code 14), has a specific message.
  if (settingOf(reply) !== 'url') refuse(answer);
  if (reply.status === 408 || reply.status === 429 || reply.status >= 500)
    throw new WaybillError(
      'sink_unavailable',
      `${where(`sinks.${id}.indexerAcknowledgement`)}: cannot query acknowledgements: ${reply.message}`,
    );
  throw notAcknowledging(settings, id, reply.message);
}

/** The settings require acknowledgements that the receiver does not support; a retry would only duplicate records. */
export function notAcknowledging(settings: SplunkHecSettings, id: string, message: string): WaybillError {
  const hint = `enable indexer acknowledgement there, or set sinks.${id}.indexerAcknowledgement: false`;
  return new WaybillError(
    'sink_blocked',
    `cannot use "${baseOf(settings)}" for sink "${id}" (sinks.${id}.indexerAcknowledgement): this receiver does not acknowledge: ${hint}: ${message}`,
  );
}

export async function checkCollector(settings: SplunkHecSettings, context: SinkContext, signal: AbortSignal): Promise<Finding[]> {
  const { id, format } = context;
  const findings = cloudFindings(settings, id);
  if (formatOf(format).shape === 'line' && settings.sourcetype === 'dpas:audit')
    findings.push(
      warning(
        `the app reads events of the sourcetype dpas:audit as JSON: set another one for ${format}, such as dpas:${format}`,
        `sinks.${id}.sourcetype`,
      ),
    );
  await using client = new HecClient(settings, context);
  try {
    const health = await client.health(signal);
    // Other products with this protocol may have no health endpoint.
    if (health.status === 503) findings.push(warning(`not healthy: ${readReply(health).message}`));
    const isKnown = await probe(client, settings, id, settings.channel ?? randomUUID(), signal);
    if (isKnown) findings.push(ok('accepts the token; the first event shows whether the token may write to the index'));
    else
      findings.push(
        warning(
          'responds to an empty request differently than HEC: the first event shows whether it accepts the token',
          `sinks.${id}.token`,
        ),
      );
    findings.push(ok(wayOf(client.route())));
  } catch (thrown) {
    signal.throwIfAborted();
    if (!(thrown instanceof WaybillError)) throw thrown;
    findings.push(error(messageOf(thrown), `sinks.${id}`));
  }
  if (!settings.indexerAcknowledgement)
    findings.push(
      warning(
        'indexerAcknowledgement: false: events that Splunk loses between its input queue and its index are not sent again',
        `sinks.${id}.indexerAcknowledgement`,
      ),
    );
  return findings;
}

/** Splunk Cloud receives events at a different host than its web pages, and acknowledges only events of Firehose. */
function cloudFindings(settings: SplunkHecSettings, id: string): Finding[] {
  const { hostname } = new URL(settings.url);
  if (!hostname.endsWith('.splunkcloud.com')) return [];
  const isInputs = /^http-inputs-/.test(hostname);
  return [
    ...(isInputs ? [] : [warning(`Splunk Cloud receives events at http-inputs-${hostname}`, `sinks.${id}.url`)]),
    ...(settings.indexerAcknowledgement
      ? [warning('Splunk Cloud acknowledges only the events of Firehose', `sinks.${id}.indexerAcknowledgement`)]
      : []),
  ];
}
