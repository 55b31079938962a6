/**
 * Converts a record to an event: applies privacy to the record, reads its fields as text, looks up
 * the outcome, and builds an ECS 9.4.0 document. Pure and total: the same record, time of receipt
 * and settings give the same event, and no record makes it throw.
 */
import { hash } from 'node:crypto';
import type { EcsObserver, Normalize } from '../model/event.ts';
import type { Micros } from '../model/time.ts';
import { type JsonObject, objectOf, parseRecord } from '../record/json.ts';
import { microsToIso, parseTimestamp } from '../record/timestamp.ts';
import { dpasOf, recordParts, shown } from './document.ts';
import { messageText } from './message.ts';
import { outcomesByCode } from './outcomes.ts';
import { droppedFields, type Privacy, redactor } from './privacy.ts';
import { type Fields, readFields } from './reading.ts';
import { unknownOutcome } from './unknown.ts';

/** The settings for the events of one source. */
export interface NormalizeSettings {
  /** `organization.id`; undefined when unknown (`waybill encode`). */
  readonly tenantId: string | undefined;
  /** Address of the service; its host becomes `observer.hostname`. */
  readonly baseUrl: string | undefined;
  readonly observer: { readonly vendor: string; readonly product: string; readonly version: string };
  /**
   * Dataset and namespace of the data stream: `dpas.audit` and `default` unless the sink overrides
   * them.
   */
  readonly dataset: string;
  readonly namespace: string;
  readonly mapping: {
    /** Severities by outcome code that override the table. */
    readonly severity: Readonly<Record<string, number | undefined>>;
    /** True if `uuid` identifies the machine and becomes `host.id` and `related.hosts`. */
    readonly hostIdFromUuid: boolean;
  };
  readonly privacy: Privacy;
}

export const ecs = { version: '9.4.0' };
const forwarded: readonly string[] = ['forwarded'];
const regular: readonly string[] = [];
const noObject: readonly string[] = ['not_an_object'];
const noFields: JsonObject = {};

/** Prepares the settings of a source once, with all constant parts of an event. */
export function normalizer(settings: NormalizeSettings): Normalize {
  const { dataset, namespace, mapping, privacy } = settings;
  const table = outcomesByCode(mapping.severity);
  const redact = redactor(privacy);
  const dropped = droppedFields(privacy);
  const observer = observerOf(settings);
  const organization = organizationOf(settings);
  const dataStream = { type: 'logs', dataset, namespace } as const;
  const createdOf = timeText();

  return (record) => {
    const received = record.value ?? parseRecord(record.text);
    const { value, text } = redact?.(received, record.text) ?? { value: received, text: record.text };
    const original = text.toWellFormed();
    const object = objectOf(value);
    const fields = readFields(object ?? noFields, dropped);
    const { actionAttempted, result, resultReason } = fields;
    const known = table.get(`${actionAttempted ?? ''}:${result ?? ''}:${resultReason ?? ''}`);
    const meaning = known ?? unknownOutcome(actionAttempted, result, resultReason);
    const timestamp = fields.logTimestamp === undefined ? undefined : parseTimestamp(fields.logTimestamp);
    const created = createdOf(record.received);
    const unexpected = object === undefined ? noObject : tagsOf(known === undefined, fields, timestamp === undefined);
    const actor = shown(fields.userEmailAddress) ?? shown(fields.userId);
    const parts = recordParts(fields, mapping.hostIdFromUuid);
    return {
      document: {
        '@timestamp': timestamp?.iso ?? created,
        ecs,
        data_stream: dataStream,
        event: {
          kind: object === undefined ? 'pipeline_error' : 'event',
          category: meaning.category,
          type: meaning.type,
          action: meaning.action,
          outcome: meaning.outcome,
          reason: resultReason,
          code: meaning.code,
          id: fields.logId,
          provider: 'dpas',
          module: 'dpas',
          dataset,
          severity: meaning.severity,
          timezone: 'UTC',
          created,
          original,
          hash: hash('sha256', original, 'hex'),
        },
        message: messageText(meaning.name, actor, shown(fields.payloadName), resultReason),
        tags: unexpected.length === 0 ? forwarded : [...forwarded, ...unexpected],
        user: parts.user,
        file: parts.file,
        source: parts.source,
        host: parts.host,
        network: parts.network,
        related: parts.related,
        organization,
        observer,
        dpas: dpasOf(fields, record.uid),
      },
      name: meaning.name,
      time: timestamp?.us ?? record.received,
      severity: meaning.severity,
      action: actionAttempted ?? 'Unknown',
      key: shown(fields.payloadId),
      unexpected,
    };
  };
}

export function observerOf({
  baseUrl,
  observer: { vendor, product, version },
}: Pick<NormalizeSettings, 'baseUrl' | 'observer'>): EcsObserver {
  return { vendor, product, version, hostname: baseUrl === undefined ? undefined : hostOf(baseUrl) };
}

export function organizationOf({ tenantId }: Pick<NormalizeSettings, 'tenantId'>): { readonly id: string } | undefined {
  return tenantId === undefined || tenantId === '' ? undefined : { id: tenantId };
}

/** In the order of docs/formats.md, "Unexpected records". */
function tagsOf(unknown: boolean, fields: Fields, timeless: boolean): readonly string[] {
  if (!unknown && !fields.missing && !fields.unexpected && !timeless) return regular;
  const tags: string[] = [];
  if (unknown) tags.push('unknown_combination');
  if (fields.missing) tags.push('missing_field');
  if (fields.unexpected) tags.push('unexpected_type');
  if (timeless) tags.push('invalid_timestamp');
  return tags;
}

/** The host of a URL; an IPv6 address without brackets. */
function hostOf(url: string): string {
  return new URL(url).hostname.replace(/^\[(.*)\]$/, '$1');
}

/** Caches the last time as text: all records of a page have the same time of receipt. */
function timeText(): (us: Micros) => string {
  let last: Micros | undefined;
  let text = '';
  return (us) => {
    if (us !== last) {
      text = microsToIso(us);
      last = us;
    }
    return text;
  };
}
