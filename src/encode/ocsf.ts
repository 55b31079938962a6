/**
 * One JSON object of the Open Cybersecurity Schema Framework 1.8.0, without attributes that 1.9.0
 * deprecates: docs/formats.md, "OCSF". Actions on a file are File System Activity, actions on its
 * policy Entity Management, all others a Base Event.
 */
import type { EcsDocument, EcsEvent, Encode } from '../model/event.ts';
import { defineFormat } from './define.ts';
import type { EncodeSettings } from './define.ts';
import { endpointOf, observablesOf, present, unknownDevice, unmappedOf, userOf } from './ocsf-objects.ts';

/** Shared by statuses and dispositions: 1 success and allowed, 2 failure and blocked. */
const statusIds = { success: 1, failure: 2, unknown: 0 } as const;
const alertSeverity = 7;
/** `algorithm_id` of SHA-256 in a fingerprint. */
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
  encoder: encodeOcsf,
});

function encodeOcsf(settings: EncodeSettings): Encode {
  return (event) => {
    const { document, time, severity } = event;
    const { outcome, reason, original, hash } = document.event;
    const kind = classOf(document);
    return JSON.stringify({
      time: Math.floor(time / 1000),
      timezone_offset: 0,
      ...periodOf(document),
      severity_id: severityOf(severity),
      message: document.message,
      status_id: statusIds[outcome],
      status_code: reason,
      metadata: metadataOf(document, kind),
      raw_data: settings.includeOriginal ? original : undefined,
      raw_data_hash: { algorithm_id: sha256, value: hash },
      ...kind,
      type_uid: kind.class_uid * 100 + kind.activity_id,
      ...objectsOf(event, kind.class_uid),
    });
  };
}

/** Only a ledger entry has one. */
function periodOf({ event: { start, end } }: EcsDocument): object | undefined {
  return start === undefined || end === undefined ? undefined : { start_time: Date.parse(start), end_time: Date.parse(end) };
}

function classOf({ event, dpas }: EcsDocument): Class {
  switch (dpas.action_attempted) {
    case 'Encrypt':
    case 'EncryptionRequest':
      return { category_uid: 1, class_uid: 1001, activity_id: 10, activity_name: undefined };
    case 'Decrypt':
      return { category_uid: 1, class_uid: 1001, activity_id: 11, activity_name: undefined };
    case 'Audit':
      if (event.reason === 'Created') return { category_uid: 3, class_uid: 3004, activity_id: 1, activity_name: undefined };
      if (event.reason === 'Changed') return { category_uid: 3, class_uid: 3004, activity_id: 3, activity_name: undefined };
      return { category_uid: 3, class_uid: 3004, activity_id: 99, activity_name: event.reason ?? 'Unknown' };
    default:
      return { category_uid: 0, class_uid: 0, activity_id: 99, activity_name: event.action };
  }
}

function severityOf(severity: number): number {
  if (severity >= 9) return 5;
  return severity >= 7 ? 4 : severity >= 5 ? 3 : severity >= 3 ? 2 : 1;
}

function metadataOf({ event, dpas, observer, organization }: EcsDocument, { class_uid }: Class): object {
  return {
    version: '1.8.0',
    product: { name: observer.product, vendor_name: observer.vendor, version: observer.version },
    uid: dpas.uid,
    original_event_uid: event.id,
    event_code: event.code,
    original_time: dpas.log_time,
    log_name: dpas.ledger ? 'ledger' : 'audit',
    log_provider: event.provider,
    logged_time: Date.parse(event.created),
    tenant_uid: organization?.id,
    profiles: class_uid === 1001 ? ['security_control'] : undefined,
  };
}

/** The attributes of the class, and the values without one. */
function objectsOf({ document, severity }: EcsEvent, classUid: number): object {
  const user = userOf(document.user?.id, document.user?.email, document.user?.full_name);
  if (classUid === 1001) {
    const verdict = statusIds[document.event.outcome] || undefined;
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
    const network = document.dpas.network;
    return {
      actor: user && { user },
      entity: entityOf(document),
      src_endpoint: endpoint && { ...endpoint, zone: network?.name, isp: network?.service_provider },
      unmapped: unmappedOf(document, endpoint ? 'entity' : 'entity without endpoint'),
      observables: observablesOf(document, 'src_endpoint'),
    };
  }
  return { unmapped: unmappedOf(document, 'nothing') };
}

function fileOf({ file, dpas }: EcsDocument): object {
  return {
    name: file?.name ?? 'Unknown',
    type_id: 1,
    uid: dpas.payload?.id,
    ext: file?.extension,
    owner: userOf(file?.uid, file?.owner, dpas.owner?.full_name),
  };
}

/** The policy of a payload, or the payload itself when its owner changes. */
function entityOf({ file, dpas }: EcsDocument): object {
  const uid = dpas.payload?.id;
  const data = present({ payloadId: uid, payloadName: file?.name, currentPayloadOwnerId: file?.uid });
  if (dpas.result === 'AuthorChanged') {
    const user = userOf(file?.uid, file?.owner, dpas.owner?.full_name);
    const name = file?.name ?? (uid === undefined && user === undefined ? 'Unknown' : undefined);
    return { type_id: 99, type: 'Payload', uid, name, user, data };
  }
  return { type_id: 5, type: 'Policy', name: dpas.result, uid, policy: { name: dpas.result, uid, type: 'Payload access policy' }, data };
}
