/** Requests time stamps from an authority by HTTP (RFC 3161, section 3.4). A response is checked before it is returned. */
import { randomBytes } from 'node:crypto';
import { Connection } from '../../connect/connection.ts';
import { post } from '../../connect/post.ts';
import type { ProxySettings } from '../../connect/proxy.ts';
import type { Pem, Secret, Shown, TlsSettings } from '../../connect/trust.ts';
import { messageOf, WaybillError } from '../../errors/errors.ts';
import type { Micros } from '../../model/time.ts';
import { quote } from '../../errors/quote.ts';
import { sha256 } from '../merkle.ts';
import { maxTokenBytes } from '../store.ts';
import { certificatesIn, formatRequest, leadsTo, readResponse, TokenError, type Question, type Token } from './token.ts';

interface AuthoritySettings {
  readonly url: string;
  /** Certificates of authorities; a token must lead to a root among them. Undefined: not checked. */
  readonly ca?: Pem | undefined;
  readonly policy?: string | undefined;
  readonly username?: string | undefined;
  readonly password?: Secret | undefined;
  readonly tls?: TlsSettings | undefined;
  readonly proxy?: ProxySettings | undefined;
}

interface AuthorityContext {
  /** `sinks.archive.timestamp` */
  readonly setting: string;
  readonly sharedCa?: Pem | undefined;
  readonly shown?: Shown | undefined;
  /** Time limit of one request, ms. */
  readonly requestMs?: number;
}

/** A checked response. */
interface Stamp extends Token {
  /** The TimeStampResp in DER, as it was received. */
  readonly bytes: Buffer;
}

const requestMs = 30_000;

export class TimeStampAuthority implements AsyncDisposable {
  readonly connection: Connection;
  readonly #settings: AuthoritySettings;
  readonly #context: AuthorityContext;

  constructor(settings: AuthoritySettings, context: AuthorityContext) {
    const { url, tls, proxy } = settings;
    const { setting, sharedCa, shown } = context;
    this.#settings = settings;
    this.#context = context;
    this.connection = new Connection({
      setting,
      url,
      tls,
      proxy,
      sharedCa,
      shown,
      urlSetting: `${setting}.url`,
      timeoutMs: context.requestMs ?? requestMs,
    });
  }

  /** @throws WaybillError `sink_unavailable` without a valid token; or the reason of the signal */
  async stamp(content: Uint8Array, signal: AbortSignal): Promise<Stamp> {
    const { url, policy } = this.#settings;
    const question = { imprint: sha256(content), nonce: newNonce(), policy };
    try {
      const bytes = await this.#post(formatRequest(question), signal);
      return { ...this.#checked(bytes, question), bytes };
    } catch (thrown) {
      signal.throwIfAborted();
      throw new WaybillError('sink_unavailable', `cannot get a time stamp from "${url}": ${messageOf(thrown)}`, { cause: thrown });
    }
  }

  /** The time of a stored token. @throws TokenError for bytes that are no token of this authority for this content */
  timeOf(token: Uint8Array, content: Uint8Array): Micros {
    return this.#checked(token, { imprint: sha256(content) }).time;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.connection[Symbol.asyncDispose]();
  }

  #checked(bytes: Uint8Array, question: Question): Token {
    const { ca } = this.#settings;
    const token = readResponse(bytes, question);
    if (ca && !leadsTo(ca.read().flatMap(certificatesIn), token, token.time))
      throw new TokenError(`its certificate '${quote(token.signer.subject, 100)}' does not lead to ${this.#context.setting}.ca`);
    return token;
  }

  async #post(body: Buffer, signal: AbortSignal): Promise<Buffer> {
    const { status, type, bytes } = await post(
      this.connection,
      {
        url: this.#settings.url,
        headers: { 'content-type': 'application/timestamp-query', accept: 'application/timestamp-reply', ...this.#authorization() },
        body,
        maxBytes: maxTokenBytes,
        requestMs: this.#context.requestMs ?? requestMs,
      },
      signal,
    );
    if (status !== 200 || !/^application\/timestamp-reply\b/i.test(type))
      throw new Error(`the response has status ${status} and ${quote(type, 60)}, not 200 and application/timestamp-reply`);
    return bytes;
  }

  #authorization(): Readonly<Record<string, string>> {
    const { username, password } = this.#settings;
    if (username === undefined) return {};
    return { authorization: `Basic ${Buffer.from(`${username}:${password?.read() ?? ''}`).toString('base64')}` };
  }
}

/** A positive INTEGER of 16 bytes, whose shortest encoding has all of them. */
function newNonce(): Buffer {
  const nonce = randomBytes(16);
  nonce[0] = ((nonce[0] ?? 0) & 0x7f) | 0x40;
  return nonce;
}
