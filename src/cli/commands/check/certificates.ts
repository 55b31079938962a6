/** The parts of `waybill check` for certificates: client certificates and their keys, and certificates that end soon. */
import type { Config } from '../../../config/load.ts';
import { certificateText, Trust, type Peer, type TlsSettings } from '../../../connect/trust.ts';
import { WaybillError, messageOf } from '../../../errors/errors.ts';
import type { Line } from './state.ts';

/** An error for each unusable certificate. A missing file is not an error: the configuration may be checked on another machine. */
export function certificateLines({ sources, sinks, tls: { ca } }: Pick<Config, 'sources' | 'sinks' | 'tls'>): Line[] {
  const shown: [subject: string, setting: string, tls: TlsSettings | undefined][] = [
    ...sources.flatMap(({ id, tls, auth }): [string, string, TlsSettings | undefined][] => [
      [`source ${id}`, `sources.${id}`, tls],
      [`source ${id}`, `sources.${id}.auth`, auth.tls],
    ]),
    ...sinks.map(({ id, settings }): [string, string, TlsSettings | undefined] => [
      `sink ${id}`,
      `sinks.${id}`,
      (settings as { readonly tls?: TlsSettings }).tls,
    ]),
  ];
  return shown.flatMap(([subject, setting, tls]) => {
    if (tls?.cert === undefined) return [];
    try {
      new Trust(setting, tls, ca).context();
      return [];
    } catch (thrown) {
      if (!(thrown instanceof WaybillError)) throw thrown;
      if (thrown.code === 'secret_missing' || isAbsent(thrown.cause)) return [];
      return [{ subject, level: 'error' as const, message: messageOf(thrown), setting: `${setting}.tls` }];
    }
  });
}

const dayMs = 86_400_000;
/** `check` warns this long before the end of a certificate, ms; `status` and the log do from two weeks before it. */
const warnedMs = 30 * dayMs;

/**
 * Warns of a certificate that ends within `warnedMs`. One that has ended is an error of its connection.
 * @param setting  its `tls` or address, such as `sinks.siem`
 * @param now  ms since 1970
 */
export function endingLines(subject: string, setting: string, peers: readonly Peer[], now: number): Line[] {
  const unique = new Map(peers.map((peer) => [certificateText(peer), peer.validTo - now]));
  return [...unique].flatMap(([text, left]) => {
    if (left > warnedMs || left < 0) return [];
    return [{ subject, level: 'warning' as const, message: `${text}, in ${Math.floor(left / dayMs)} days: have it replaced`, setting }];
  });
}

function isAbsent(cause: unknown): boolean {
  return cause instanceof Error && 'code' in cause && cause.code === 'ENOENT';
}
