/** Ledger events for content tests: each action that docs/formats.md lists, as Elasticsearch and Splunk receive it. */
import { readFileSync } from 'node:fs';
import { encoder } from '../../../src/encode/index.ts';
import { ledgerNormalizer } from '../../../src/normalize/ledger-event.ts';
import { readText } from '../../../src/record/read.ts';
import { settings } from '../normalize/records.ts';

export interface LedgerEvent {
  readonly '@timestamp': string;
  readonly event: { readonly action: string; readonly outcome: string };
  readonly dpas: { readonly ledger: { readonly source: string } };
}

const encode = encoder('ecs', { includeOriginal: true, cef: { ipv6: 'c6a2', geo: 'cfp' } });
const normalize = ledgerNormalizer(settings);
const counts = { total: 1, records: 1, late: 0, recounts: 0, revision: 1, digest: '00', state: 'gap', reason: 'count' };

/** The event of a ledger entry. @param received µs since the epoch */
export function ledgerEvent(line: object, received = 0, uid = 'u'): LedgerEvent {
  const text = JSON.stringify({ ledger: 'window', source: 'production', from: 0, to: 1, ...counts, ...line });
  return JSON.parse(encode(normalize({ record: readText(text), uid, received })).toString()) as LedgerEvent;
}

/** The actions that docs/formats.md lists. */
export const documented = [
  ...readFileSync('docs/formats.md', 'utf8').matchAll(/^\| `((?:window|suspension)-\S+|operation|archive-checkpoint)` \| /gm),
].map(([, action = '']) => action);

/** An event of each documented action. */
export const ledgerEvents = documented.map((action, index) => {
  const uid = `u${index}`;
  if (action.startsWith('suspension')) {
    return ledgerEvent({ ledger: 'suspension', state: action.endsWith('ended') ? 'active' : 'suspended' }, 0, uid);
  }
  const moments: Readonly<Record<string, object>> = {
    operation: { ledger: 'operation', operation: 'replay', actor: 'root' },
    'archive-checkpoint': { ledger: 'archive-checkpoint', sink: 'worm', checkpoint: 'waybill.example\n1\n' },
  };
  return ledgerEvent(moments[action] ?? { action }, 0, uid);
});

export const failures = ledgerEvents.filter(({ event }) => event.outcome === 'failure').map(({ event }) => event.action);
