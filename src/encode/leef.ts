/**
 * One line of IBM's Log Event Extended Format 2.0, tab-separated: docs/formats.md, "LEEF". The format
 * defines no escape, so a control character becomes a space.
 */
import type { EcsEvent, EcsObserver, Encode } from '../model/event.ts';
import { cut } from '../record/text.ts';
import { defineFormat } from './define.ts';

/** Length limits in UTF-16 code units; the LEEF standard limits `usrName` and the EventID. */
const textMax = 1023;
const shortMax = 255;

export const leef = defineFormat('leef', {
  contentType: 'text/plain; charset=utf-8',
  shape: 'line',
  shorten: 'line',
  encoder: encodeLeef,
});

function encodeLeef(): Encode {
  const headers = new WeakMap<EcsObserver, string>();
  return (event) => {
    const { observer, event: meta } = event.document;
    const header = headers.get(observer) ?? headerOf(observer);
    headers.set(observer, header);
    return `${header}${headerField(meta.code)}|x09|${attributesOf(event)}`;
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
  const { event, dpas, user, file, source, host, organization } = document;
  const location = source?.geo?.location;
  let text = `devTime=${Math.floor(time / 1000)}`;
  text += pair('cat', dpas.action_attempted);
  text += `\tsev=${Math.max(1, severity)}`;
  text += pair('usrName', user?.email ?? user?.id, shortMax);
  text += pair('src', source?.ip);
  // LEEF has no type for an address of eight bytes.
  if (source?.mac?.length === 17) text += `\tsrcMAC=${source.mac.replaceAll('-', ':')}`;
  text += pair('domain', host?.domain);
  text += pair('resource', host?.hostname);
  text += pair('uid', dpas.uid);
  // A truncated id could be the id of another record.
  if (event.id !== undefined && event.id.length <= textMax) text += pair('logId', event.id);
  text += pair('action', event.action);
  text += pair('outcome', event.outcome);
  text += pair('result', dpas.result);
  text += pair('reason', event.reason);
  text += pair('userId', user?.id);
  text += pair('userFullName', user?.full_name);
  text += pair('ownerId', file?.uid);
  text += pair('ownerEmail', file?.owner);
  text += pair('ownerFullName', dpas.owner?.full_name);
  text += pair('payloadId', dpas.payload?.id);
  text += pair('fileName', file?.name);
  if (location !== undefined) text += `\tlatitude=${location.lat}\tlongitude=${location.lon}`;
  text += pair('serviceProvider', dpas.network?.service_provider);
  text += pair('networkName', dpas.network?.name);
  text += pair('networkId', dpas.network?.id);
  text += pair('deviceType', dpas.network?.device_type);
  text += pair('deviceUuid', dpas.network?.uuid);
  text += pair('address', dpas.network?.address);
  return text + pair('tenantId', organization?.id);
}

/** A tab and `key=value`; empty without a value. */
function pair(key: string, value: string | undefined, max = textMax): string {
  if (value === undefined) return '';
  const text = cut(spaced(value).trim(), max).trimEnd();
  return text === '' ? '' : `\t${key}=${text}`;
}

/** Tested first: most texts contain none, and a test is cheaper than a replacement. */
const special = /[\p{Cc}\u2028\u2029]/u;

function spaced(text: string): string {
  return special.test(text) ? text.replace(/[\p{Cc}\u2028\u2029]/gu, ' ') : text;
}
