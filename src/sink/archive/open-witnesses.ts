/** Opens the clients of the witnesses of an archive. */
import { parseVerifier, type Verifier } from '../../archive/signed-note.ts';
import type { WitnessClient } from '../../archive/witness/client.ts';
import type { SinkContext } from '../define.ts';
import type { ArchiveSettings } from './settings.ts';

export async function openWitnesses(
  { witnesses = [] }: Pick<ArchiveSettings, 'witnesses'>,
  { id, ca, proxy, shown }: Pick<SinkContext, 'id' | 'ca' | 'proxy' | 'shown'>,
): Promise<readonly WitnessClient[]> {
  if (witnesses.length === 0) return [];
  const { WitnessClient } = await import('../../archive/witness/client.ts');
  return witnesses.map(({ url, key, tls, proxy: own }, i) => {
    const through = own === 'none' ? undefined : (own ?? proxy);
    const verifier = parseVerifier(key, 4) as Verifier;
    return new WitnessClient({ url, key: verifier, tls, proxy: through }, { setting: `sinks.${id}.witnesses[${i}]`, sharedCa: ca, shown });
  });
}
