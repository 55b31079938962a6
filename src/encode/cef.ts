/**
 * One line of ArcSight's Common Event Format, always `CEF:0`, with keys defined since version 0.1:
 * docs/formats.md, "CEF". Escaping prevents a file name from forging another field or event.
 */
import { ecsNumbers as ecs } from '../record/ecs.ts';
import type { EcsEvent, EcsObserver } from '../record/event.ts';
import { cut } from '../record/text.ts';
import { defineFormat, type Render, textEncoder } from './define.ts';
import type { CefSettings } from './settings.ts';

/** Length limits by key, in UTF-16 code units before escaping (CEF implementation standard v27). */
const textMax = 1023;
const nameMax = 512;
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
  encoder: (settings) => textEncoder(renderCef(settings.cef)),
});

function renderCef(settings: CefSettings): Render {
  const headers = new WeakMap<EcsObserver, string>();
  return (event) => {
    const { document, observer } = event;
    let header = headers.get(observer);
    if (header === undefined) {
      header = headerOf(observer);
      headers.set(observer, header);
    }
    const code = headerField(document.text(ecs['event.code']) ?? '', 1023);
    return `${header}${code}|${headerField(event.name, nameMax)}|${event.severity}|${extensionOf(event, settings)}`;
  };
}

/** The fields that are constant for a source. */
function headerOf(observer: EcsObserver): string {
  return `CEF:0|${headerField(observer.vendor, 63)}|${headerField(observer.product, 63)}|${headerField(observer.version, 31)}|`;
}

/** A text is tested for these characters first: most texts contain none. */
const headerSpecial = /[\\|\p{Cc}\u2028\u2029]/u;

function headerField(text: string, max: number): string {
  if (!headerSpecial.test(text)) return cut(text, max);
  return cut(text.replace(/\r\n|\p{Cc}|[\u2028\u2029]/gu, ' '), max).replace(/[\\|]/g, '\\$&');
}

function extensionOf({ document, time }: EcsEvent, settings: CefSettings): string {
  const ms = Math.floor(time / 1000);
  const id = document.text(ecs['event.id']);
  const outcome = document.text(ecs['event.outcome']) ?? '';
  const reason = document.text(ecs['event.reason']);
  const ip = document.text(ecs['source.ip']);
  const mac = document.text(ecs['source.mac']);
  const domain = document.text(ecs['host.domain']);
  const isFile = document.text(ecs['event.category[0]']) === 'file';
  const isIpv4 = document.text(ecs['network.type']) === 'ipv4';

  let text = `rt=${ms} start=${ms}`;
  if (id !== undefined && id.length <= externalIdMax) text += pair('externalId', id, externalIdMax);
  text += pair('cat', document.text(ecs['dpas.action_attempted']), textMax);
  text += pair('act', isFile ? verdictOf(outcome) : reason, verbMax);
  text += ` outcome=${outcome}`;
  text += pair('reason', reason, textMax);
  text += pair('suid', document.text(ecs['user.id']), textMax);
  text += pair('suser', document.text(ecs['user.email']), textMax);
  text += pair('duid', document.text(ecs['file.uid']), textMax);
  text += pair('duser', document.text(ecs['file.owner']), textMax);
  text += pair('fname', document.text(ecs['file.name']), textMax);
  text += pair('fileId', document.text(ecs['dpas.payload.id']), textMax);
  if (ip !== undefined) {
    text += isIpv4 || settings.ipv6 === 'src' ? ` src=${ip}` : ` c6a2=${ip} c6a2Label=Source IPv6 Address`;
  }
  // CEF has no type for an address of eight bytes.
  if (mac?.length === 17) text += ` smac=${mac.replaceAll('-', ':')}`;
  text += pair('shost', document.text(ecs['host.hostname']), textMax);
  text += pair(domain?.includes('.') ? 'sourceDnsDomain' : 'sntdom', domain, domainMax);
  text += pair('deviceExternalId', document.text(ecs['organization.id']), deviceIdMax);
  text += pair('dvchost', document.text(ecs['observer.hostname']), deviceHostMax);
  text += labelled('cs1', document.text(ecs['dpas.result']), 'Result');
  text += labelled('cs2', document.text(ecs['dpas.network.name']), 'NetworkName');
  text += labelled('cs3', document.text(ecs['dpas.network.service_provider']), 'ServiceProvider');
  text += labelled('cs4', document.text(ecs['dpas.network.device_type']), 'DeviceType');
  text += labelled('cs5', document.text(ecs['dpas.network.uuid']), 'DeviceUuid');
  text += labelled('cs6', document.text(ecs['dpas.network.address']), 'Address');
  text += positionOf(document.text(ecs['source.geo.location.lat']), document.text(ecs['source.geo.location.lon']), settings.geo);
  text += pair('WaybillDpasUid', document.text(ecs['dpas.uid']), textMax);
  text += pair('WaybillDpasNetworkId', document.text(ecs['dpas.network.id']), textMax);
  text += pair('WaybillDpasUserName', document.text(ecs['dpas.user.last_name_first_name']), textMax);
  text += pair('WaybillDpasOwnerName', document.text(ecs['dpas.owner.last_name_first_name']), textMax);
  return text + pair('msg', document.text(ecs.message), textMax);
}

function verdictOf(outcome: string): string | undefined {
  return outcome === 'success' ? 'Allowed' : outcome === 'failure' ? 'Denied' : undefined;
}

function positionOf(lat: string | undefined, lon: string | undefined, geo: CefSettings['geo']): string {
  if (lat === undefined || lon === undefined) return '';
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

/**
 * A value is tested for these characters first: most values contain none, and a test is 12 times
 * faster than the replacements.
 */
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
