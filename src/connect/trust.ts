/**
 * The trusted certificates and the client certificate of a connection, and clear messages for failed verifications. Each new connection
 * reads the files again, so a renewed file takes effect without a restart. No setting turns verification off.
 */
import { X509Certificate, createHash, createPrivateKey } from 'node:crypto';
import type { Socket } from 'node:net';
import { TLSSocket, createSecureContext, getCACertificates, type SecureContext } from 'node:tls';
import { WaybillError, messageOf } from '../errors/errors.ts';
import { quote } from '../errors/quote.ts';

/** A secret of the configuration, from any source. */
export interface Secret {
  /** The present value, which implementations pass to `remember`: that hides it in logs. */
  read(): string;
  /** Makes the next `read` load the value again, even if its file seems unchanged. */
  refresh(): void;
  /** Its setting, and the origin of its value. */
  describe(): string;
}

export interface Pem {
  /** The present text of each file. */
  read(): readonly string[];
  describe(): string;
}

/** `tls` of one connection. */
export interface TlsSettings {
  readonly ca?: Pem | undefined;
  readonly cert?: Pem | undefined;
  readonly key?: Pem | undefined;
  readonly passphrase?: Secret | undefined;
  /** The expected name in the certificate; default: the host of the URL. */
  readonly serverName?: string | undefined;
}

/** A server certificate, for messages, `check` and the expiry metric. */
export interface Peer {
  readonly subject: string;
  readonly issuer: string;
  /** ms since 1970 */
  readonly validFrom: number;
  readonly validTo: number;
  /** Subject alternative names as OpenSSL formats them: `DNS:service.example, IP Address:192.0.2.1`. */
  readonly names: string;
}

/** `certificate of 'siem.example' issued by 'Example root' until 2027-03-01`. */
export function certificateText({ subject, issuer, validTo }: Peer): string {
  return `certificate of '${subject}' issued by '${issuer}' until ${day(validTo)}`;
}

/** Called with the certificate of a server, before Node verifies it. */
export type Shown = (host: string, peer: Peer) => void;

/** Contexts by the digest of their content. Connections share one: the built-in roots take 17 ms and 1.3 MiB in each. */
const contexts = new Map<string, WeakRef<SecureContext>>();

export class Trust {
  readonly #setting: string;
  readonly #own: TlsSettings;
  readonly #shared: Pem | undefined;
  #digest = '';
  #context: SecureContext | undefined;
  #trusted = '';

  /**
   * @param setting  of the connection, e.g. `sources.production`
   * @param shared  top-level `tls.ca`, trusted in addition to the built-in roots unless the connection has its own `ca`
   */
  constructor(setting: string, own: TlsSettings | undefined, shared: Pem | undefined) {
    this.#setting = setting;
    this.#own = own ?? {};
    this.#shared = shared;
  }

  get serverName(): string | undefined {
    return this.#own.serverName;
  }

  /** @throws WaybillError `config_invalid` or `secret_missing` when a file cannot be read or has other content */
  context(): SecureContext {
    const { cert, key, passphrase } = this.#own;
    const own = this.#own.ca;
    const ca = certificates(own ?? this.#shared);
    const chain = cert?.read().join('\n');
    const secret = key?.read().join('\n');
    passphrase?.refresh();
    const phrase = passphrase?.read();

    const hash = createHash('sha256');
    for (const part of [own === undefined ? 'with roots' : '', ...ca, chain ?? '', secret ?? '', phrase ?? ''])
      hash.update(part).update('\0');
    const digest = hash.digest('hex');
    if (this.#context !== undefined && digest === this.#digest) return this.#context;

    const others = ca.length > namedMax ? [`${ca.length - namedMax} more`] : [];
    this.#trusted = [...(own === undefined ? ['built-in roots'] : []), ...ca.slice(0, namedMax).map(named), ...others].join(', ');
    const roots = own !== undefined ? [...ca] : ca.length > 0 ? [...getCACertificates('default'), ...ca] : undefined;
    if (chain !== undefined && secret !== undefined) this.#assertPair(chain, secret, phrase);
    try {
      this.#context =
        contexts.get(digest)?.deref() ??
        createSecureContext({
          minVersion: 'TLSv1.2',
          // A configured CA is an anchor, as for curl, Go and GnuTLS; a root above it need not be known.
          ...(roots === undefined ? {} : { ca: roots, allowPartialTrustChain: true }),
          ...(chain === undefined ? {} : { cert: chain }),
          ...(secret === undefined ? {} : { key: secret }),
          ...(phrase === undefined ? {} : { passphrase: phrase }),
        });
    } catch (cause) {
      throw new WaybillError('config_invalid', `cannot use "${this.#setting}.tls.cert" with its key: ${messageOf(cause)}`);
    }
    contexts.set(digest, new WeakRef(this.#context));
    this.#digest = digest;
    return this.#context;
  }

  /** Detects a key that does not match its certificate: the message of OpenSSL is unclear. */
  #assertPair(chain: string, secret: string, passphrase: string | undefined): void {
    let isPair = true;
    try {
      isPair = new X509Certificate(chain).checkPrivateKey(
        createPrivateKey({ key: secret, ...(passphrase !== undefined && { passphrase }) }),
      );
    } catch {
      // One of the two is unreadable: `createSecureContext` reports it.
      return;
    }
    if (isPair) return;
    const { cert, key } = this.#own;
    const message = `the key in ${key?.describe() ?? ''} does not belong to the certificate in ${cert?.describe() ?? ''}`;
    throw new WaybillError('config_invalid', `cannot use "${this.#setting}.tls.cert" with its key: ${message}`);
  }

  /**
   * The error for a failed handshake; undefined when neither a certificate nor the TLS version is the cause.
   * @param now  the clock of this machine, ms since 1970: a wrong clock makes valid certificates fail
   */
  explain(thrown: unknown, host: string, peer: Peer | undefined, now?: number): WaybillError | undefined {
    const code = thrown instanceof Error && 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : '';
    const message = this.#refusal(code, host, peer, now);
    return message === undefined ? undefined : new WaybillError('tls_untrusted', message, { cause: thrown });
  }

  #refusal(code: string, host: string, peer: Peer | undefined, now: number | undefined): string | undefined {
    const tls = `${this.#setting}.tls`;
    const about = peer === undefined ? '' : `; subject '${peer.subject}', valid from ${day(peer.validFrom)} to ${day(peer.validTo)}`;
    const whose = `certificate of ${host} issued by '${peer?.issuer ?? 'unknown'}'`;
    if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
      return `${tls}.serverName: ${whose} is valid for another name: expected ${this.serverName ?? host}, got ${peer?.names ?? 'none'}${about}`;
    }
    if (code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID') {
      const state = code === 'CERT_HAS_EXPIRED' ? 'has expired' : 'is not valid yet';
      const clock = now === undefined ? 'check the clock of this machine' : `the clock of this machine is at ${minute(now)}`;
      return `${tls}.ca: ${whose}, or an issuer in its chain, ${state}${about}; ${clock}`;
    }
    if (untrusted.test(code)) {
      // The server sends too little of its chain, or the anchor is another one.
      const isCut = /^UNABLE_TO_(GET_ISSUER_CERT|VERIFY_LEAF_SIGNATURE)/.test(code) && this.#own.ca !== undefined;
      const cut = isCut ? ', or let the server send the certificates between its own and a trusted one' : '';
      const remedy = `set it to a PEM file with that issuer${cut}`;
      return `${tls}.ca: ${whose} is not trusted: ${remedy}${about}; trusted here: ${this.#trusted}`;
    }
    if (/UNSUPPORTED_PROTOCOL|PROTOCOL_VERSION|VERSION_TOO_LOW/.test(code)) {
      return `${tls}: ${host} does not speak TLS 1.2 or later`;
    }
    if (/ALERT.*(CERTIFICATE|UNKNOWN_CA|ACCESS_DENIED)|ALERT_HANDSHAKE_FAILURE/.test(code)) {
      const { cert } = this.#own;
      return `${tls}.cert: ${host} ${cert ? `rejected the client certificate in ${cert.describe()}` : 'requires a client certificate and none is set'}`;
    }
    return undefined;
  }
}

/** Reports the server's certificate before Node verifies it: a failed verification destroys the connection and with it the certificate. */
export function onPeer(socket: Socket, found: (peer: Peer) => void): void {
  socket.prependListener('secure', () => {
    if (!(socket instanceof TLSSocket)) return;
    // Not `getPeerX509Certificate`: called here, it makes Node 24 find no names in the certificate and reject it.
    const { raw } = socket.getPeerCertificate(true) as { readonly raw?: Buffer };
    if (raw !== undefined) found(peerOf(new X509Certificate(raw)));
  });
}

function peerOf(certificate: X509Certificate): Peer {
  return {
    subject: commonName(certificate.subject),
    issuer: commonName(certificate.issuer),
    validFrom: Date.parse(certificate.validFrom),
    validTo: Date.parse(certificate.validTo),
    names: quote(certificate.subjectAltName ?? 'none', 200),
  };
}

/** OpenSSL's verification codes for a chain that does not lead to a trusted certificate. */
const untrusted =
  /^(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_|CERT_|INVALID_|PATH_LENGTH_EXCEEDED|ERROR_IN_|EE_|CA_|HOSTNAME_MISMATCH)/;

/** Messages name so many trusted certificates: a bundle of a machine has 140. */
const namedMax = 3;

const pem = /-----BEGIN (?:TRUSTED )?CERTIFICATE-----[^-]+-----END (?:TRUSTED )?CERTIFICATE-----/g;

function certificates(files: Pem | undefined): readonly string[] {
  if (files === undefined) return [];
  const found = files.read().flatMap((text) => text.match(pem) ?? []);
  if (found.length === 0)
    throw new WaybillError('config_invalid', `cannot read "${files.describe()}": it has no certificate in PEM format`);
  return found;
}

function named(certificate: string): string {
  try {
    const { subject, validTo } = peerOf(new X509Certificate(certificate));
    return `'${subject}' (until ${day(validTo).slice(0, 4)})`;
  } catch {
    return 'a certificate that cannot be read';
  }
}

/** The common name of a distinguished name, or all of it on one line. Node writes a backslash before `,`, `+`, `;` and other signs. */
function commonName(name: string): string {
  const lines = name.replace(/\\(.)/g, '$1').split('\n');
  const common = lines.find((line) => line.startsWith('CN='));
  return quote(common?.slice(3) ?? lines.join(', '), 100);
}

/** `2026-11-22 13:25 UTC`. */
function minute(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}

function day(ms: number): string {
  return Number.isNaN(ms) ? 'unknown' : new Date(ms).toISOString().slice(0, 10);
}
