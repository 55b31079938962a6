/** Expiry times of the certificates in use, by setting, for metric, status and log: received server certificates and configured certificates. */
import { X509Certificate } from 'node:crypto';
import type { Config } from '../config/load.ts';
import type { Peer, TlsSettings } from '../connect/trust.ts';
import { codeOf } from '../errors/errors.ts';
import { endingWithin, type CertificateEnd } from '../model/snapshot.ts';
import type { Log } from '../model/telemetry.ts';
import type { Clock, Micros } from '../model/time.ts';
import { microsToIso } from '../record/timestamp.ts';
import { readRegularFile } from '../disk/regular-file.ts';
import type { ServiceSource } from '../source/client.ts';

export class Certificates {
  #config: Config;
  readonly #sources: ReadonlyMap<string, Pick<ServiceSource, 'routes'>>;
  /** The admin server reads its certificate once, before it listens. */
  readonly #admin: CertificateEnd | undefined;
  /** Sink id → server address → expiry of its last seen certificate, µs. */
  readonly #sinks = new Map<string, Map<string, Micros>>();

  constructor(config: Config, sources: ReadonlyMap<string, Pick<ServiceSource, 'routes'>>) {
    this.#config = config;
    this.#sources = sources;
    const path = config.admin.tls?.cert;
    this.#admin = path === undefined ? undefined : endOf('admin.tls.cert', readRegularFile(path).toString('utf8'));
  }

  follow(config: Config): void {
    this.#config = config;
  }

  /** Call when the loop of the sink has ended: its next loop may use other servers. */
  removeSink(id: string): void {
    this.#sinks.delete(id);
  }

  /** Call when a sink has received the certificate of a server. */
  shown(sink: string, host: string, { validTo }: Pick<Peer, 'validTo'>): void {
    const servers = this.#sinks.get(sink) ?? new Map<string, Micros>();
    this.#sinks.set(sink, servers.set(host, validTo * 1000));
  }

  ends(): CertificateEnd[] {
    const found: (CertificateEnd | undefined)[] = [this.#admin];
    for (const { id, tls, auth } of this.#config.sources) {
      const setting = `sources.${id}`;
      const [service, login] = this.#sources.get(id)?.routes() ?? [];
      if (service?.peer) found.push({ target: setting, at: service.peer.validTo * 1000 });
      if (login?.peer) found.push({ target: `${setting}.auth`, at: login.peer.validTo * 1000 });
      for (const [name, cert] of [
        [`${setting}.tls.cert`, tls?.cert],
        [`${setting}.auth.tls.cert`, auth.tls?.cert],
      ] as const) {
        if (cert !== undefined) found.push(own(name, cert));
      }
    }
    for (const { id, settings } of this.#config.sinks) {
      const setting = `sinks.${id}`;
      const servers = [...(this.#sinks.get(id)?.values() ?? [])];
      // With several servers, reports the first certificate to expire.
      if (servers.length > 0) found.push({ target: setting, at: Math.min(...servers) });
      const { tls } = settings as { readonly tls?: TlsSettings };
      if (tls?.cert !== undefined) found.push(own(`${setting}.tls.cert`, tls.cert));
    }
    return found.filter((end) => end !== undefined);
  }
}

const lookMs = 3_600_000;
const firstLookMs = 60_000;
const dayMs = 86_400_000;

/** Logs each certificate that ends within two weeks, once a day. */
export async function reportEndingCertificates(
  ends: () => readonly CertificateEnd[],
  clock: Clock,
  log: Log,
  signal: AbortSignal,
): Promise<void> {
  /** When each target was reported, ms by the monotonic clock. */
  const reported = new Map<string, number>();
  // Not at once: the connections of the start show their certificates first.
  for (let wait = firstLookMs; ; wait = lookMs) {
    await clock.sleep(wait, signal);
    for (const { target, at } of ends()) {
      const left = at - clock.now() * 1_000;
      // mutant: certificate-told
      if (left > endingWithin || clock.monotonic() - (reported.get(target) ?? -Infinity) < dayMs) continue;
      reported.set(target, clock.monotonic());
      log.write('certificate.ending', { target, end: microsToIso(at), days: Math.floor(left / 86_400_000_000) });
    }
  }
}

/** A client certificate, read now. Undefined when it cannot be read: the next connection reports the error. */
function own(target: string, cert: { read(): readonly string[] }): CertificateEnd | undefined {
  try {
    return endOf(target, cert.read()[0] ?? '');
  } catch (thrown) {
    if (codeOf(thrown) === 'config_invalid' || (thrown instanceof Error && 'code' in thrown)) return undefined;
    throw thrown;
  }
}

/** The first certificate of a file is the leaf, the others are its chain. */
function endOf(target: string, pem: string): CertificateEnd {
  return { target, at: Date.parse(new X509Certificate(pem).validTo) * 1000 };
}
