/** Tokens for SASL OAUTHBEARER by client_credentials (RFC 6749 section 4.4). All connections share one until 80 % of its lifetime. */
import { Connection } from '../../connect/connection.ts';
import { objectIn } from '../../record/json-object.ts';
import { quote } from '../../errors/quote.ts';
import { remember } from '../../errors/secrets.ts';
import { codeOf, WaybillError, messageOf } from '../../errors/errors.ts';
import type { SinkContext } from '../define.ts';
import type { KafkaSettings } from './settings.ts';

type Oauth = NonNullable<NonNullable<KafkaSettings['sasl']>['oauth']>;

const timeoutMs = 10_000;
/** The assumed lifetime of a token without `expires_in`. */
const lifeUnknownMs = 5 * 60_000;
const maxAnswerBytes = 64 * 1024;

export class TokenSource implements AsyncDisposable {
  readonly #oauth: Oauth;
  readonly #context: SinkContext;
  readonly #connection: Connection;
  #current: { readonly token: string; readonly to: number } | undefined;

  constructor(oauth: Oauth, context: SinkContext) {
    this.#oauth = oauth;
    this.#context = context;
    const setting = `sinks.${context.id}.sasl.oauth`;
    this.#connection = new Connection({ setting, url: oauth.tokenUrl, sharedCa: context.ca, proxy: context.proxy, timeoutMs });
  }

  /**
   * @throws WaybillError `sink_blocked` when the token endpoint refuses the request, `sink_unavailable` when it is unreachable. It is
   *   marked as final: otherwise kafkajs would request tokens in a loop.
   */
  async get(): Promise<string> {
    const now = this.#context.clock.monotonic();
    if (this.#current !== undefined && now < this.#current.to) return this.#current.token;
    try {
      const { token, lifeMs } = await this.#ask();
      this.#current = { token, to: now + lifeMs * 0.8 };
      return token;
    } catch (thrown) {
      throw Object.assign(thrown as Error, { retriable: false });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#connection[Symbol.asyncDispose]();
  }

  async #ask(): Promise<{ token: string; lifeMs: number }> {
    const { tokenUrl, clientId, clientSecret, scope } = this.#oauth;
    clientSecret.refresh();
    const secret = clientSecret.read();
    // RFC 6749 section 2.3.1: id and secret are form-encoded before they become a user and a password.
    const pair = `${encodeURIComponent(clientId)}:${encodeURIComponent(secret)}`;
    remember(this, pair);
    const basic = Buffer.from(pair).toString('base64');
    const failure = (code: 'sink_unavailable' | 'sink_blocked', message: string, at = 'tokenUrl'): WaybillError => {
      const { id } = this.#context;
      return new WaybillError(code, `cannot obtain a token from "${tokenUrl}" for sink "${id}" (sinks.${id}.sasl.oauth.${at}): ${message}`);
    };
    let status: number;
    let body: string;
    try {
      const answer = await this.#connection.request(tokenUrl, {
        method: 'POST',
        headers: { authorization: `Basic ${basic}`, 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
        body: new URLSearchParams({ grant_type: 'client_credentials', ...(scope === undefined ? {} : { scope }) }).toString(),
        signal: AbortSignal.timeout(timeoutMs),
      });
      status = answer.statusCode;
      body = (await answer.body.text()).slice(0, maxAnswerBytes);
    } catch (thrown) {
      const reason = this.#connection.translate(thrown);
      throw failure(codeOf(reason) === 'tls_untrusted' ? 'sink_blocked' : 'sink_unavailable', messageOf(reason));
    }
    const fields = objectIn(body);
    if (status === 200 && typeof fields['access_token'] === 'string' && /^[\x21-\x7e]+$/.test(fields['access_token'])) {
      const seconds = Number(fields['expires_in']);
      remember(this.#oauth, fields['access_token']);
      return { token: fields['access_token'], lifeMs: seconds > 0 ? seconds * 1_000 : lifeUnknownMs };
    }
    const message = [fields['error'], fields['error_description']].filter((word) => typeof word === 'string').join(': ');
    const isSuccess = status >= 200 && status <= 299;
    const shown = isSuccess ? 'the response contains no usable access_token' : quote(message, 300) || `status ${status}`;
    if (status === 429 || status >= 500) throw failure('sink_unavailable', shown);
    throw failure(
      'sink_blocked',
      shown,
      fields['error'] === 'invalid_scope' ? 'scope' : status === 401 || status === 400 ? 'clientSecret' : 'tokenUrl',
    );
  }
}
