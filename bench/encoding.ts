/**
 * Messages for a bare client, made by the code of the sinks, with the settings of a source without
 * its own.
 */
import { encoder } from '../src/encode/index.ts';
import type { Format } from '../src/encode/index.ts';
import { normalizer } from '../src/normalize/normalizer.ts';
import type { EcsEvent } from '../src/record/event.ts';
import { readText } from '../src/record/read.ts';
import { recordText } from './record.ts';

/** The same for each record: a floor performs no lookup. */
export const uid = 'AAAAAAAAAAAAAAAAAAAAAA';

export const normalize = normalizer({
  tenantId: 'bench',
  baseUrl: 'http://127.0.0.1',
  observer: { vendor: 'Waybill', product: 'Data Protection and Audit Service', version: '1.0' },
  dataset: 'dpas.audit',
  namespace: 'default',
  mapping: { severity: {}, names: {}, hostIdFromUuid: true },
  privacy: { rules: [] },
});

interface Encoded {
  readonly event: EcsEvent;
  readonly text: string;
}

/** Makes the message of a record by its number. */
export function messagesIn(format: Format, beginMs: number): (i: number) => Encoded {
  const encode = encoder(format, { includeOriginal: format === 'ecs', cef: { ipv6: 'c6a2', geo: 'cfp' } });
  return (i) => {
    const text = recordText(i, beginMs);
    const event = normalize({ record: readText(text), uid, received: beginMs * 1000 });
    return { event, text: encode(event).toString() };
  };
}
