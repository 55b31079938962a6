/**
 * One line of ArcSight's Common Event Format, always `CEF:0`, with keys that exist since version 0.1 of it: docs/formats.md, "CEF". The
 * escaping is what keeps a file name from forging another field, or another event.
 */
import type { EcsDocument, EcsEvent, EcsObserver, Encode } from '../model/event.ts';
import { cut } from '../record/text.ts';

export interface CefSettings {
  /** Where an IPv6 address goes: the key that the standard has for it, or `src`, where Sentinel, Splunk and Elastic look. */
  readonly ipv6: 'c6a2' | 'src';
  /** Where a position goes: custom floating point numbers, or `slat` and `slong`, which by the standard only consumers may set. */
  readonly geo: 'cfp' | 'slat';
}

/** Longest values by key, in UTF-16 code units before escaping (CEF implementation standard v27). */
const textMax = 1023;
const customMax = 4000;
const verbMax = 63;
const externalIdMax = 40;
const domainMax = 255;
const deviceIdMax = 255;
const deviceHostMax = 100;

export function cef(settings: CefSettings): Encode {
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

/** The part of the line that is the same for every event of a source. */
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
  // An address of eight bytes is none to CEF.
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

/** A custom string with its label right behind it, or neither. */
function labelled(key: string, value: string | undefined, label: string): string {
  const text = pair(key, value, customMax);
  return text === '' ? '' : `${text} ${key}Label=${label}`;
}

/** ` key=value`, or nothing when there is no value. */
function pair(key: string, value: string | undefined, max: number): string {
  if (value === undefined) return '';
  const text = extensionValue(value, max);
  return text === '' ? '' : ` ${key}=${text}`;
}

/** Most values need no escaping, and finding that out first is 12 times faster than a chain of replacements. */
const special = /[\\=\p{Cc}\u2028\u2029]/u;
const escapes: Readonly<Record<string, string>> = { '\\': '\\\\', '=': '\\=', '\r\n': '\\n', '\n': '\\n', '\r': '\\r' };

/** The value trimmed, cut and escaped. A pipe stays: in the extension it has no meaning, and consumers would show its backslash. */
function extensionValue(value: string, max: number): string {
  const text = cut(value.trim(), max).trimEnd();
  if (!special.test(text)) return text;
  return cut(value.replace(/(?![\r\n])[\p{Cc}\u2028\u2029]/gu, ' ').trim(), max)
    .trimEnd()
    .replace(/\r\n|[\\=\r\n]/g, (found) => escapes[found] ?? ' ');
}
