/**
 * One JSON object of OCSF 1.8.0 without attributes that 1.9.0 deprecates (docs/formats.md, "OCSF"). Actions on a file are File System
 * Activity, actions on its policy Entity Management, all others a Base Event.
 */
import type { EcsDocument } from '../record/document.ts';
import { ecsNumbers as ecs } from '../record/ecs.ts';
import type { EcsEvent } from '../record/event.ts';
import { defineFormat, type Render, textEncoder } from './define.ts';
import type { EncodeSettings } from './define.ts';
import { endpointOf, isLedger, observablesOf, present, unknownDevice, unmappedOf, userOf } from './ocsf-objects.ts';

/** Shared by statuses and dispositions: 1 success and allowed, 2 failure and blocked. */
const statusIds: Readonly<Record<string, number>> = { success: 1, failure: 2, unknown: 0 };
const alertSeverity = 7;
const sha256 = 3;

interface Class {
  readonly category_uid: number;
  readonly class_uid: number;
  readonly activity_id: number;
  readonly activity_name: string | undefined;
}

export const ocsf = defineFormat('ocsf', {
  contentType: 'application/json',
  shape: 'document',
  shorten: 'document',
  encoder: (settings) => textEncoder(renderOcsf(settings)),
});

function renderOcsf(settings: EncodeSettings): Render {
  return (event) => {
    const { document, time, severity } = event;
    const kind = classOf(document);
    return JSON.stringify({
      time: Math.floor(time / 1000),
      timezone_offset: 0,
      ...periodOf(document),
      severity_id: severityOf(severity),
      message: document.text(ecs.message),
      status_id: statusOf(document),
      status_code: document.text(ecs['event.reason']),
      metadata: metadataOf(document, kind),
      raw_data: settings.includeOriginal ? document.original?.bytes.toString() : undefined,
      raw_data_hash: { algorithm_id: sha256, value: document.hash },
      ...kind,
      type_uid: kind.class_uid * 100 + kind.activity_id,
      ...objectsOf(event, kind.class_uid),
    });
  };
}

/** Only a ledger entry has one. */
function periodOf(document: EcsDocument): object | undefined {
  const start = document.text(ecs['event.start']);
  const end = document.text(ecs['event.end']);
  return start === undefined || end === undefined ? undefined : { start_time: Date.parse(start), end_time: Date.parse(end) };
}

function statusOf(document: EcsDocument): number {
  return statusIds[document.text(ecs['event.outcome']) ?? ''] ?? 0;
}

function classOf(document: EcsDocument): Class {
  const reason = document.text(ecs['event.reason']);
  switch (document.text(ecs['dpas.action_attempted'])) {
    case 'Encrypt':
    case 'EncryptionRequest':
      return { category_uid: 1, class_uid: 1001, activity_id: 10, activity_name: undefined };
    case 'Decrypt':
      return { category_uid: 1, class_uid: 1001, activity_id: 11, activity_name: undefined };
    case 'Audit':
      if (reason === 'Created') return { category_uid: 3, class_uid: 3004, activity_id: 1, activity_name: undefined };
      if (reason === 'Changed') return { category_uid: 3, class_uid: 3004, activity_id: 3, activity_name: undefined };
      return { category_uid: 3, class_uid: 3004, activity_id: 99, activity_name: reason ?? 'Unknown' };
    default:
      return { category_uid: 0, class_uid: 0, activity_id: 99, activity_name: document.text(ecs['event.action']) };
  }
}

function severityOf(severity: number): number {
  if (severity >= 9) return 5;
  return severity >= 7 ? 4 : severity >= 5 ? 3 : severity >= 3 ? 2 : 1;
}

function metadataOf(document: EcsDocument, { class_uid }: Class): object {
  return {
    version: '1.8.0',
    product: {
      name: document.text(ecs['observer.product']),
      vendor_name: document.text(ecs['observer.vendor']),
      version: document.text(ecs['observer.version']),
    },
    uid: document.text(ecs['dpas.uid']),
    original_event_uid: document.text(ecs['event.id']),
    event_code: document.text(ecs['event.code']),
    original_time: document.text(ecs['dpas.log_time']),
    log_name: isLedger(document) ? 'ledger' : 'audit',
    log_provider: document.text(ecs['event.provider']),
    logged_time: Date.parse(document.text(ecs['event.created']) ?? ''),
    tenant_uid: document.text(ecs['organization.id']),
    profiles: class_uid === 1001 ? ['security_control'] : undefined,
  };
}

/** The attributes of the OCSF class; a value without an attribute is in `unmapped`. */
function objectsOf({ document, severity }: EcsEvent, classUid: number): object {
  const user = userOf(document.text(ecs['user.id']), document.text(ecs['user.email']), document.text(ecs['user.full_name']));
  if (classUid === 1001) {
    const verdict = statusOf(document) || undefined;
    return {
      actor: { user: user ?? { name: 'Unknown', type_id: 0 } },
      file: fileOf(document),
      action_id: verdict,
      disposition_id: verdict,
      is_alert: severity >= alertSeverity,
      device: endpointOf(document) ?? unknownDevice(document),
      unmapped: unmappedOf(document, 'file'),
      observables: observablesOf(document, 'device'),
    };
  }
  if (classUid === 3004) {
    const endpoint = endpointOf(document);
    return {
      actor: user && { user },
      entity: entityOf(document),
      src_endpoint: endpoint && {
        ...endpoint,
        zone: document.text(ecs['dpas.network.name']),
        isp: document.text(ecs['dpas.network.service_provider']),
      },
      unmapped: unmappedOf(document, endpoint ? 'entity' : 'entity without endpoint'),
      observables: observablesOf(document, 'src_endpoint'),
    };
  }
  return { unmapped: unmappedOf(document, 'nothing') };
}

function fileOf(document: EcsDocument): object {
  return {
    name: document.text(ecs['file.name']) ?? 'Unknown',
    type_id: 1,
    uid: document.text(ecs['dpas.payload.id']),
    ext: document.text(ecs['file.extension']),
    owner: ownerOf(document),
  };
}

function ownerOf(document: EcsDocument): object | undefined {
  return userOf(document.text(ecs['file.uid']), document.text(ecs['file.owner']), document.text(ecs['dpas.owner.full_name']));
}

/** The policy of a payload, or the payload itself when its owner changes. */
function entityOf(document: EcsDocument): object {
  const uid = document.text(ecs['dpas.payload.id']);
  const result = document.text(ecs['dpas.result']);
  const fileName = document.text(ecs['file.name']);
  const data = present({ payloadId: uid, payloadName: fileName, currentPayloadOwnerId: document.text(ecs['file.uid']) });
  if (result === 'AuthorChanged') {
    const user = ownerOf(document);
    const name = fileName ?? (uid === undefined && user === undefined ? 'Unknown' : undefined);
    return { type_id: 99, type: 'Payload', uid, name, user, data };
  }
  return { type_id: 5, type: 'Policy', name: result, uid, policy: { name: result, uid, type: 'Payload access policy' }, data };
}
