/** The part of `waybill check --offline` for client certificates and their keys. */
import type { Config } from '../../../config/load.ts';
import { Trust, type TlsSettings } from '../../../connect/trust.ts';
import { WaybillError, messageOf } from '../../../errors.ts';
import type { Line } from './state.ts';

/**
 * An error for each unusable certificate. A missing file is not an error: the configuration may be
 * checked on another machine.
 */
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

function isAbsent(cause: unknown): boolean {
  return cause instanceof Error && 'code' in cause && cause.code === 'ENOENT';
}
