/**
 * One line of ArcSight's Common Event Format, always `CEF:0`, with keys defined since version 0.1:
 * docs/formats.md, "CEF". Escaping prevents a file name from forging another field or event.
 */
import type { EcsDocument, EcsEvent, EcsObserver, Encode } from '../model/event.ts';
import { cut } from '../record/text.ts';
import { defineFormat } from './define.ts';
import type { CefSettings } from './settings.ts';

/** Length limits by key, in UTF-16 code units before escaping (CEF implementation standard v27). */
const textMax = 1023;
const customMax = 4000;
const verbMax = 63;
const externalIdMax = 40;
const domainMax = 255;
const deviceIdMax = 255;
const deviceHostMax = 100;

export const cef = defineFormat('cef', {
  contentType: 'text/plain; charset=utf-8',
  shape: 'line',
  shorten: 'line',
  encoder: (settings) => encodeCef(settings.cef),
});

function encodeCef(settings: CefSettings): Encode {
  const headers = new WeakMap<EcsObserver, string>();
  return (event) => {
    const { document } = event;
    let header = headers.get(document.observer);
    if (header === undefined) {
      header = headerOf(document.observer);
      headers.set(document.observer, header);
    }
    return `${header}${headerField(document.event.code, 1023)}|${event.name}|${event.severity}|${extensionOf(event, settings)}`;
  };
}

/** The fields that are constant for a source. */
function headerOf(observer: EcsObserver): string {
  return `CEF:0|${headerField(observer.vendor, 63)}|${headerField(observer.product, 63)}|${headerField(observer.version, 31)}|`;
}

function headerField(text: string, max: number): string {
  return cut(text.replace(/\r\n|\p{Cc}|[\u2028\u2029]/gu, ' '), max).replace(/[\\|]/g, '\\$&');
}

function extensionOf({ document, time }: EcsEvent, settings: CefSettings): string {
  const { event, dpas, user, file, source, host, network, organization, observer } = document;
  const ms = Math.floor(time / 1000);
  const isFile = event.category?.includes('file') ?? false;
  const ipv4 = network?.type === 'ipv4';
  const dotted = host?.domain?.includes('.') ?? false;

  let text = `rt=${ms} start=${ms}`;
  if (event.id !== undefined && event.id.length <= externalIdMax) text += pair('externalId', event.id, externalIdMax);
  text += pair('cat', dpas.action_attempted, textMax);
  text += pair('act', isFile ? verdictOf(event.outcome) : event.reason, verbMax);
  text += ` outcome=${event.outcome}`;
  text += pair('reason', event.reason, textMax);
  text += pair('suid', user?.id, textMax);
  text += pair('suser', user?.email, textMax);
  text += pair('duid', file?.uid, textMax);
  text += pair('duser', file?.owner, textMax);
  text += pair('fname', file?.name, textMax);
  text += pair('fileId', dpas.payload?.id, textMax);
  if (source?.ip !== undefined) {
    text += ipv4 || settings.ipv6 === 'src' ? ` src=${source.ip}` : ` c6a2=${source.ip} c6a2Label=Source IPv6 Address`;
  }
  // CEF has no type for an address of eight bytes.
  if (source?.mac?.length === 17) text += ` smac=${source.mac.replaceAll('-', ':')}`;
  text += pair('shost', host?.hostname, textMax);
  text += pair(dotted ? 'sourceDnsDomain' : 'sntdom', host?.domain, domainMax);
  text += pair('deviceExternalId', organization?.id, deviceIdMax);
  text += pair('dvchost', observer.hostname, deviceHostMax);
  text += labelled('cs1', dpas.result, 'Result');
  text += labelled('cs2', dpas.network?.name, 'NetworkName');
  text += labelled('cs3', dpas.network?.service_provider, 'ServiceProvider');
  text += labelled('cs4', dpas.network?.device_type, 'DeviceType');
  text += labelled('cs5', dpas.network?.uuid, 'DeviceUuid');
  text += labelled('cs6', dpas.network?.address, 'Address');
  text += positionOf(source?.geo?.location, settings.geo);
  text += pair('WaybillDpasUid', dpas.uid, textMax);
  text += pair('WaybillDpasNetworkId', dpas.network?.id, textMax);
  text += pair('WaybillDpasUserName', dpas.user?.last_name_first_name, textMax);
  text += pair('WaybillDpasOwnerName', dpas.owner?.last_name_first_name, textMax);
  return text + pair('msg', document.message, textMax);
}

function verdictOf(outcome: EcsDocument['event']['outcome']): string | undefined {
  return outcome === 'success' ? 'Allowed' : outcome === 'failure' ? 'Denied' : undefined;
}

function positionOf(location: { readonly lat: number; readonly lon: number } | undefined, geo: CefSettings['geo']): string {
  if (location === undefined) return '';
  const { lat, lon } = location;
  return geo === 'slat' ? ` slat=${lat} slong=${lon}` : ` cfp1=${lat} cfp1Label=Latitude cfp2=${lon} cfp2Label=Longitude`;
}

/** A custom string followed by its label; empty without a value. */
function labelled(key: string, value: string | undefined, label: string): string {
  const text = pair(key, value, customMax);
  return text === '' ? '' : `${text} ${key}Label=${label}`;
}

/** ` key=value`; empty without a value. */
function pair(key: string, value: string | undefined, max: number): string {
  if (value === undefined) return '';
  const text = extensionValue(value, max);
  return text === '' ? '' : ` ${key}=${text}`;
}

/** Tested first: most values need no escape, and the test is 12 times faster than the replacements. */
const special = /[\\=\p{Cc}\u2028\u2029]/u;
const escapes: Readonly<Record<string, string>> = { '\\': '\\\\', '=': '\\=', '\r\n': '\\n', '\n': '\\n', '\r': '\\r' };

/** Trims, cuts and escapes. A pipe stays: it has no meaning in the extension, and consumers would show its backslash. */
function extensionValue(value: string, max: number): string {
  const text = cut(value.trim(), max).trimEnd();
  if (!special.test(text)) return text;
  return cut(value.replace(/(?![\r\n])[\p{Cc}\u2028\u2029]/gu, ' ').trim(), max)
    .trimEnd()
    .replace(/\r\n|[\\=\r\n]/g, (found) => escapes[found] ?? ' ');
}
