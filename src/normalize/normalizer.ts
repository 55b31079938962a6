/**
 * Converts a record to an event: applies privacy, looks up the outcome, and fills an ECS 9.4.0 document. Pure and total: the same record,
 * time of receipt and settings give the same event, and no record makes it throw.
 */
import { EcsDocument, masked } from '../record/document.ts';
import { ecsNumbers as ecs } from '../record/ecs.ts';
import type { Normalize } from '../record/event.ts';
import { fieldNumbers } from '../record/fields.ts';
import type { Micros } from '../model/time.ts';
import { microsToIso } from '../record/timestamp.ts';
import { derive } from './derive.ts';
import { messageText } from './message.ts';
import { type Outcome, type OutcomeOverrides, outcomesByCode } from './outcomes.ts';
import { droppedFields, type Privacy, redactor } from './privacy.ts';
import { tagsOf } from './tags.ts';
import { unknownOutcome } from './unknown.ts';

/** The settings for the events of one source. */
export interface NormalizeSettings {
  /** `organization.id`; undefined when unknown (`waybill encode`). */
  readonly tenantId: string | undefined;
  /** Address of the service; its host becomes `observer.hostname`. */
  readonly baseUrl: string | undefined;
  readonly observer: { readonly vendor: string; readonly product: string; readonly version: string };
  /** Dataset and namespace of the data stream: `dpas.audit` and `default` unless the sink overrides them. */
  readonly dataset: string;
  readonly namespace: string;
  readonly mapping: OutcomeOverrides & {
    /** True if `uuid` identifies the machine and becomes `host.id` and `related.hosts`. */
    readonly hostIdFromUuid: boolean;
  };
  readonly privacy: Privacy;
}

const { actionAttempted, result, resultReason, userId, userEmailAddress, payloadId, payloadName } = fieldNumbers;

const tagFields = [ecs['tags[1]'], ecs['tags[2]'], ecs['tags[3]'], ecs['tags[4]']];

/** Prepares once what all events of a source have, and what all events of an outcome have. */
export function normalizer(settings: NormalizeSettings): Normalize {
  const { mapping, observer, privacy } = settings;
  const redact = redactor(privacy);
  const dropped = droppedFields(privacy);
  const constant = constantFields(settings, { dataset: settings.dataset, provider: 'dpas', kind: 'event' });
  const known = new Map(
    [...outcomesByCode(mapping)].map(([code, outcome]) => [code, { outcome, template: withOutcome(constant, outcome).constant() }]),
  );
  const createdOf = timeText();

  return ({ record: asReceived, uid, received }) => {
    const record = redact === undefined ? asReceived : redact(asReceived);
    const action = record.text(actionAttempted);
    const reason = record.text(resultReason);
    const auditResult = record.text(result);
    const row = known.get(`${action ?? ''}:${auditResult ?? ''}:${reason ?? ''}`);
    const outcome = row?.outcome ?? unknownOutcome(action, auditResult, reason);
    const unexpected = tagsOf(record, row !== undefined, dropped);
    const { timestamp } = record;
    const created = createdOf(received);

    const document = row ? row.template.copy() : withOutcome(constant, outcome);
    document.copyRecord(record);
    if (!record.isObject) document.set(ecs['event.kind'], 'pipeline_error');
    document.set(ecs['@timestamp'], timestamp?.iso ?? created);
    document.set(ecs['event.created'], created);
    const actor = shown(record.text(userEmailAddress)) ?? shown(record.text(userId));
    document.set(ecs['message'], messageText(outcome.name, actor, shown(record.text(payloadName)), reason));
    for (let i = 0; i < unexpected.length; i += 1) document.set(tagFields[i] ?? 0, unexpected[i]);
    derive(document, record, mapping.hostIdFromUuid);
    document.set(ecs['dpas.uid'], uid);
    return {
      document,
      observer,
      name: outcome.name,
      time: timestamp?.us ?? received,
      severity: outcome.severity,
      action: action ?? 'Unknown',
      key: shown(record.text(payloadId)),
      unexpected,
    };
  };
}

/** The value unless it is masked, for uses that show it or compare it. */
function shown(value: string | undefined): string | undefined {
  return value === masked ? undefined : value;
}

export function constantFields(
  { baseUrl, namespace, observer, tenantId }: Pick<NormalizeSettings, 'baseUrl' | 'namespace' | 'observer' | 'tenantId'>,
  { dataset, provider, kind }: { readonly dataset: string; readonly provider: string; readonly kind: string },
): EcsDocument {
  const document = EcsDocument.empty();
  document.set(ecs['ecs.version'], '9.4.0');
  document.set(ecs['data_stream.type'], 'logs');
  document.set(ecs['data_stream.dataset'], dataset);
  document.set(ecs['data_stream.namespace'], namespace);
  document.set(ecs['event.kind'], kind);
  document.set(ecs['event.provider'], provider);
  document.set(ecs['event.module'], 'dpas');
  document.set(ecs['event.dataset'], dataset);
  document.set(ecs['event.timezone'], 'UTC');
  document.set(ecs['tags[0]'], 'forwarded');
  document.set(ecs['organization.id'], tenantId === '' ? undefined : tenantId);
  document.set(ecs['observer.vendor'], observer.vendor);
  document.set(ecs['observer.product'], observer.product);
  document.set(ecs['observer.version'], observer.version);
  document.set(ecs['observer.hostname'], baseUrl === undefined ? undefined : hostOf(baseUrl));
  return document;
}

function withOutcome(constant: EcsDocument, { category, type, action, outcome, code, severity }: Outcome): EcsDocument {
  const document = constant.copy();
  document.set(ecs['event.category[0]'], category?.[0]);
  document.set(ecs['event.category[1]'], category?.[1]);
  document.set(ecs['event.type[0]'], type?.[0]);
  document.set(ecs['event.action'], action);
  document.set(ecs['event.outcome'], outcome);
  document.set(ecs['event.code'], code);
  document.set(ecs['event.severity'], String(severity));
  return document;
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
