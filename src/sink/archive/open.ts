/** Opens the storage of an archive, its time-stamping authority and its witnesses. Loads the code of each only for an archive that has it. */
import { DirectoryStore } from '../../archive/directory-store.ts';
import { parseVerifier, type Verifier } from '../../archive/signed-note.ts';
import type { WritableArchiveStore } from '../../archive/store.ts';
import type { TimeStampAuthority } from '../../archive/timestamp/authority.ts';
import type { WitnessClient } from '../../archive/witness/client.ts';
import type { SinkContext } from '../define.ts';
import { bucketTarget, proxyOf, type ArchiveSettings, type TimestampSettings } from './settings.ts';

type Connecting = Pick<SinkContext, 'id' | 'ca' | 'proxy' | 'shown'>;

/** @param signal  ends reading, and requests that a server does not answer */
export async function openStore(
  { directory = '', s3 }: Pick<ArchiveSettings, 'directory' | 's3'>,
  context: Connecting & Pick<SinkContext, 'clock' | 'fleet'>,
  signal?: AbortSignal,
): Promise<WritableArchiveStore & AsyncDisposable> {
  if (s3 === undefined) return new DirectoryStore(directory, signal);
  const { BucketStore } = await import('../../archive/bucket/store.ts');
  return new BucketStore(bucketTarget(s3, context), { ...context, signal, setting: `sinks.${context.id}.s3` });
}

export async function openAuthority(settings: TimestampSettings, context: Connecting): Promise<TimeStampAuthority> {
  const { TimeStampAuthority } = await import('../../archive/timestamp/authority.ts');
  const { id, ca: sharedCa, shown } = context;
  const { url, ca, policy, username, password, tls, proxy } = settings;
  const target = { url, ca, policy, username, password, tls, proxy: proxyOf(proxy, context) };
  return new TimeStampAuthority(target, { setting: `sinks.${id}.timestamp`, sharedCa, shown });
}

export async function openWitnesses(
  { witnesses = [] }: Pick<ArchiveSettings, 'witnesses'>,
  context: Connecting,
): Promise<readonly WitnessClient[]> {
  if (witnesses.length === 0) return [];
  const { WitnessClient } = await import('../../archive/witness/client.ts');
  const { id, ca: sharedCa, shown } = context;
  return witnesses.map(({ url, key, tls, proxy }, i) => {
    const target = { url, key: parseVerifier(key, 4) as Verifier, tls, proxy: proxyOf(proxy, context) };
    return new WitnessClient(target, { setting: `sinks.${id}.witnesses[${i}]`, sharedCa, shown });
  });
}
