/** Opens the time-stamping authority of an archive. */
import type { TimeStampAuthority } from '../../archive/timestamp/authority.ts';
import type { SinkContext } from '../define.ts';
import type { TimestampSettings } from './settings.ts';

/** Loads the code for time stamps only for an archive that has them. */
export async function openAuthority(
  settings: TimestampSettings,
  { id, ca, proxy, shown }: Pick<SinkContext, 'id' | 'ca' | 'proxy' | 'shown'>,
): Promise<TimeStampAuthority> {
  const { TimeStampAuthority } = await import('../../archive/timestamp/authority.ts');
  const { url, ca: roots, policy, username, password, tls, proxy: own } = settings;
  const through = own === 'none' ? undefined : (own ?? proxy);
  return new TimeStampAuthority(
    { url, ca: roots, policy, username, password, tls, proxy: through },
    { setting: `sinks.${id}.timestamp`, sharedCa: ca, shown },
  );
}
