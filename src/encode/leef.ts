/**
 * One line of IBM's Log Event Extended Format 2.0, tab-separated: docs/formats.md, "LEEF". The format
 * defines no escape, so a control character becomes a space.
 */
import { ecsNumbers as ecs } from '../record/ecs.ts';
import type { EcsEvent, EcsObserver } from '../record/event.ts';
import { cut } from '../record/text.ts';
import { defineFormat, type Render, textEncoder } from './define.ts';

/** Length limits in UTF-16 code units; the LEEF standard limits `usrName` and the EventID. */
const textMax = 1023;
const shortMax = 255;

export const leef = defineFormat('leef', {
  contentType: 'text/plain; charset=utf-8',
  shape: 'line',
  shorten: 'line',
  encoder: () => textEncoder(renderLeef()),
});

function renderLeef(): Render {
  const headers = new WeakMap<EcsObserver, string>();
  return (event) => {
    const { document, observer } = event;
    const header = headers.get(observer) ?? headerOf(observer);
    headers.set(observer, header);
    return `${header}${headerField(document.text(ecs['event.code']) ?? '')}|x09|${attributesOf(event)}`;
  };
}

/** The fields that are constant for a source. */
function headerOf({ vendor, product, version }: EcsObserver): string {
  return `LEEF:2.0|${headerField(vendor)}|${headerField(product)}|${headerField(version)}|`;
}

function headerField(text: string): string {
  return cut(spaced(text).replaceAll('|', '/'), shortMax);
}

function attributesOf({ document, time, severity }: EcsEvent): string {
  const id = document.text(ecs['event.id']);
  const userId = document.text(ecs['user.id']);
  const mac = document.text(ecs['source.mac']);
  const lat = document.text(ecs['source.geo.location.lat']);
  let text = `devTime=${Math.floor(time / 1000)}`;
  text += pair('cat', document.text(ecs['dpas.action_attempted']));
  text += `\tsev=${Math.max(1, severity)}`;
  text += pair('usrName', document.text(ecs['user.email']) ?? userId, shortMax);
  text += pair('src', document.text(ecs['source.ip']));
  // LEEF has no type for an address of eight bytes.
  if (mac?.length === 17) text += `\tsrcMAC=${mac.replaceAll('-', ':')}`;
  text += pair('domain', document.text(ecs['host.domain']));
  text += pair('resource', document.text(ecs['host.hostname']));
  text += pair('uid', document.text(ecs['dpas.uid']));
  // A truncated id could be the id of another record.
  if (id !== undefined && id.length <= textMax) text += pair('logId', id);
  text += pair('action', document.text(ecs['event.action']));
  text += pair('outcome', document.text(ecs['event.outcome']));
  text += pair('result', document.text(ecs['dpas.result']));
  text += pair('reason', document.text(ecs['event.reason']));
  text += pair('userId', userId);
  text += pair('userFullName', document.text(ecs['user.full_name']));
  text += pair('ownerId', document.text(ecs['file.uid']));
  text += pair('ownerEmail', document.text(ecs['file.owner']));
  text += pair('ownerFullName', document.text(ecs['dpas.owner.full_name']));
  text += pair('payloadId', document.text(ecs['dpas.payload.id']));
  text += pair('fileName', document.text(ecs['file.name']));
  if (lat !== undefined) text += `\tlatitude=${lat}\tlongitude=${document.text(ecs['source.geo.location.lon']) ?? ''}`;
  text += pair('serviceProvider', document.text(ecs['dpas.network.service_provider']));
  text += pair('networkName', document.text(ecs['dpas.network.name']));
  text += pair('networkId', document.text(ecs['dpas.network.id']));
  text += pair('deviceType', document.text(ecs['dpas.network.device_type']));
  text += pair('deviceUuid', document.text(ecs['dpas.network.uuid']));
  text += pair('address', document.text(ecs['dpas.network.address']));
  return text + pair('tenantId', document.text(ecs['organization.id']));
}

/** A tab and `key=value`; empty without a value. */
function pair(key: string, value: string | undefined, max = textMax): string {
  if (value === undefined) return '';
  const text = cut(spaced(value).trim(), max).trimEnd();
  return text === '' ? '' : `\t${key}=${text}`;
}

/**
 * A text is tested for these characters first: most texts contain none, and a test is cheaper than
 * a replacement.
 */
const special = /[\p{Cc}\u2028\u2029]/u;

function spaced(text: string): string {
  return special.test(text) ? text.replace(/[\p{Cc}\u2028\u2029]/gu, ' ') : text;
}
