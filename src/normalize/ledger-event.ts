/**
 * Converts a ledger entry of the journal to an event of the dataset `dpas.ledger`: docs/formats.md,
 * "Ledger events". Pure and total, as the normalization of records.
 */
import { hash } from 'node:crypto';
import { ledgerDataset } from '../model/event.ts';
import type { EcsLedger, LedgerEvent, NormalizeLedger } from '../model/event.ts';
import type { JsonValue } from '../model/record.ts';
import { type JsonObject, objectOf, parseRecord, textOf } from '../record/json.ts';
import { microsToIso } from '../record/timestamp.ts';
import { dpasOf, recordParts } from './document.ts';
import { ecs, observerOf, organizationOf } from './normalizer.ts';
import type { NormalizeSettings } from './normalizer.ts';
import { readFields } from './reading.ts';

interface Kind {
  readonly name: string;
  readonly outcome: 'success' | 'failure' | 'unknown';
  readonly severity: number;
}

/** By `event.action`. */
const kinds: Readonly<Record<string, Kind>> = {
  'window-proven': { name: 'Window proven', outcome: 'success', severity: 0 },
  'window-recounted': { name: 'Window recounted', outcome: 'success', severity: 0 },
  'window-late': { name: 'Window proven again with late records', outcome: 'success', severity: 3 },
  'window-gap': { name: 'Window not proven', outcome: 'failure', severity: 6 },
  'window-in-doubt': { name: 'Window in doubt', outcome: 'failure', severity: 6 },
  'window-shrunk': { name: 'Window shrunk', outcome: 'failure', severity: 8 },
  'window-accepted': { name: 'Gap accepted by an operator', outcome: 'unknown', severity: 4 },
  'suspension-started': { name: 'Source suspended', outcome: 'failure', severity: 8 },
  'suspension-ended': { name: 'Suspension ended', outcome: 'success', severity: 3 },
  operation: { name: 'Operation performed', outcome: 'unknown', severity: 3 },
};
const unknownKind: Kind = { name: 'Ledger entry', outcome: 'unknown', severity: 3 };

const tags: readonly string[] = ['forwarded'];
const noFields = readFields({}, new Set());

/** @param settings the settings for the records of the source, without privacy rules: these concern records only */
export function ledgerNormalizer(settings: Omit<NormalizeSettings, 'privacy' | 'mapping'>): NormalizeLedger {
  const organization = organizationOf(settings);
  const observer = observerOf(settings);
  const dataset = ledgerDataset(settings.dataset);
  const dataStream = { type: 'logs', dataset, namespace: settings.namespace } as const;
  return ({ text, uid, received }): LedgerEvent => {
    const line = objectOf(parseRecord(text)) ?? {};
    const action = actionOf(line);
    const { name, outcome, severity } = kinds[action] ?? unknownKind;
    const [from, to] = [timeOf(line['from']) ?? received, timeOf(line['to']) ?? received];
    const created = microsToIso(received);
    return {
      document: {
        '@timestamp': created,
        ecs,
        data_stream: dataStream,
        event: {
          kind: 'state',
          category: undefined,
          type: undefined,
          action,
          outcome,
          reason: textOf(line['reason']),
          code: action,
          id: undefined,
          provider: 'waybill',
          module: 'dpas',
          dataset,
          severity,
          timezone: 'UTC',
          created,
          start: microsToIso(from),
          end: microsToIso(to),
          original: text,
          hash: hash('sha256', text, 'hex'),
        },
        message: messageOf(name, line, from, to),
        tags,
        ...recordParts(noFields, false),
        organization,
        observer,
        dpas: { ...dpasOf(noFields, uid), ledger: ledgerOf(line) },
      },
      ...{ name, severity, action, from, to, time: received, key: undefined, unexpected: [] },
    };
  };
}

function actionOf(line: JsonObject): string {
  if (line['ledger'] === 'suspension') return line['state'] === 'active' ? 'suspension-ended' : 'suspension-started';
  if (line['ledger'] === 'operation') return 'operation';
  return textOf(line['action']) ?? 'unknown';
}

/** `Window 14:00 to 14:15 proven: 398 records`, with the reason of the entry, the operation and its operator. */
function messageOf(name: string, line: JsonObject, from: number, to: number): string {
  const { source, reason, message, records, operation, actor } = line;
  const what = line['ledger'] === 'operation' ? `${textOf(operation) ?? ''} by ${textOf(actor) ?? 'unknown'}` : undefined;
  const span = line['ledger'] === 'window' ? `${microsToIso(from)} to ${microsToIso(to)}, ${textOf(records) ?? '0'} records` : undefined;
  const parts = [textOf(source), span, what, textOf(reason), textOf(message)].filter((part) => part !== undefined && part !== '');
  return `${name}: ${parts.join(', ')}`;
}

function ledgerOf(line: JsonObject): EcsLedger {
  const { ledger, operation, actor } = line;
  // For an accepted gap `operation` is an object.
  const accepted = objectOf(operation);
  return {
    source: textOf(line['source']) || undefined,
    state: textOf(line['state']),
    revision: numberOf(line['revision']),
    total: numberOf(line['total']),
    records: numberOf(line['records']),
    late: numberOf(line['late']),
    recounts: numberOf(line['recounts']),
    digest: textOf(line['digest']),
    operation: ledger === 'operation' ? textOf(operation) : accepted && 'gaps accept',
    actor: textOf(accepted ? accepted['actor'] : actor),
  };
}

function numberOf(value: JsonValue | undefined): number | undefined {
  return typeof value === 'number' ? value : undefined;
}

/** A time that can be written, µs. */
function timeOf(value: JsonValue | undefined): number | undefined {
  return Number.isSafeInteger(value) && Math.abs(Number(value)) <= 8.64e18 ? Number(value) : undefined;
}
