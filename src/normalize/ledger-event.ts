/** Converts a ledger entry of the journal to an event of `dpas.ledger`: docs/formats.md, "Ledger events". Pure and total. */
import { ledgerDataset } from '../model/event.ts';
import type { JsonValue } from '../model/record.ts';
import type { EcsDocument } from '../record/document.ts';
import { ecsNumbers as ecs } from '../record/ecs.ts';
import type { LedgerEvent, NormalizeLedger } from '../record/event.ts';
import { type JsonObject, objectOf, textOf } from '../record/json.ts';
import { microsToIso } from '../record/timestamp.ts';
import { constantFields } from './normalizer.ts';
import type { NormalizeSettings } from './normalizer.ts';

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
  'archive-checkpoint': { name: 'Archive signed', outcome: 'success', severity: 0 },
};
const unknownKind: Kind = { name: 'Ledger entry', outcome: 'unknown', severity: 3 };

/** @param settings  without privacy rules: these concern records only */
export function ledgerNormalizer(settings: Omit<NormalizeSettings, 'privacy' | 'mapping'>): NormalizeLedger {
  const constant = constantFields(settings, { dataset: ledgerDataset(settings.dataset), provider: 'waybill', kind: 'state' }).constant();
  return ({ record, uid, received }): LedgerEvent => {
    const line = objectOf(record.tree()) ?? {};
    const action = actionOf(line);
    const { name, outcome, severity } = kinds[action] ?? unknownKind;
    const [from, to] = [timeOf(line['from']) ?? received, timeOf(line['to']) ?? received];
    const created = microsToIso(received);
    const document = constant.copy();
    document.setRecord(record);
    document.set(ecs['@timestamp'], created);
    document.set(ecs['event.action'], action);
    document.set(ecs['event.outcome'], outcome);
    document.set(ecs['event.reason'], textOf(line['reason']));
    document.set(ecs['event.code'], action);
    document.set(ecs['event.severity'], String(severity));
    document.set(ecs['event.created'], created);
    document.set(ecs['event.start'], microsToIso(from));
    document.set(ecs['event.end'], microsToIso(to));
    document.set(ecs.message, messageOf(name, line, from, to));
    document.set(ecs['dpas.uid'], uid);
    putLedger(document, line);
    return { document, observer: settings.observer, name, severity, action, from, to, time: received, key: undefined, unexpected: [] };
  };
}

function actionOf(line: JsonObject): string {
  if (line['ledger'] === 'suspension') return line['state'] === 'active' ? 'suspension-ended' : 'suspension-started';
  if (line['ledger'] === 'operation' || line['ledger'] === 'archive-checkpoint') return line['ledger'];
  return textOf(line['action']) ?? 'unknown';
}

/** `Window 14:00 to 14:15 proven: 398 records`, with the reason of the entry, the operation and its operator. */
function messageOf(name: string, line: JsonObject, from: number, to: number): string {
  const { source, sink, reason, message, records, operation, actor } = line;
  const what = line['ledger'] === 'operation' ? `${textOf(operation) ?? ''} by ${textOf(actor) ?? 'unknown'}` : undefined;
  const span = line['ledger'] === 'window' ? `${microsToIso(from)} to ${microsToIso(to)}, ${textOf(records) ?? '0'} records` : undefined;
  const parts = [textOf(source), textOf(sink), span, what, textOf(reason), textOf(message)].filter(
    (part) => part !== undefined && part !== '',
  );
  return `${name}: ${parts.join(', ')}`;
}

function putLedger(document: EcsDocument, line: JsonObject): void {
  const { ledger, operation, actor } = line;
  // For an accepted gap `operation` is an object.
  const accepted = objectOf(operation);
  document.set(ecs['dpas.ledger.source'], textOf(line['source']));
  document.set(ecs['dpas.ledger.state'], textOf(line['state']));
  document.set(ecs['dpas.ledger.revision'], numberOf(line['revision']));
  document.set(ecs['dpas.ledger.total'], numberOf(line['total']));
  document.set(ecs['dpas.ledger.records'], numberOf(line['records']));
  document.set(ecs['dpas.ledger.late'], numberOf(line['late']));
  document.set(ecs['dpas.ledger.recounts'], numberOf(line['recounts']));
  document.set(ecs['dpas.ledger.digest'], textOf(line['digest']));
  document.set(ecs['dpas.ledger.operation'], ledger === 'operation' ? textOf(operation) : accepted && 'gaps accept');
  document.set(ecs['dpas.ledger.actor'], textOf(accepted ? accepted['actor'] : actor));
  document.set(ecs['dpas.ledger.checkpoint'], textOf(line['checkpoint']));
}

function numberOf(value: JsonValue | undefined): string | undefined {
  return typeof value === 'number' ? JSON.stringify(value) : undefined;
}

/** A time that can be written, µs. */
function timeOf(value: JsonValue | undefined): number | undefined {
  return Number.isSafeInteger(value) && Math.abs(Number(value)) <= 8.64e18 ? Number(value) : undefined;
}
