/** A line of ArcSight's CEF, always `CEF:0`, with keys since 0.1 (docs/formats.md, "CEF"). No file name can forge a field or event. */
import { ecsNumbers as ecs } from '../record/ecs.ts';
import type { EcsEvent, EcsObserver, Encode } from '../record/event.ts';
import { cut } from '../record/text.ts';
import { defineFormat, type EncodeSettings } from './define.ts';
import { headers, LineWriter, pairOf, partOf } from './line-writer.ts';
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
  encoder: encodeCef,
});

function encodeCef(settings: EncodeSettings): Encode {
  const line = new LineWriter({ isUsual: (character) => character !== '\\' && character !== '=', clean: extensionValue });
  const header = headers(headerOf);
  return (event) => {
    const { document, observer } = event;
    const code = headerField(document.text(ecs['event.code']) ?? '', 1023);
    line.begin(document);
    line.part(header(observer));
    line.text(`${code}|${headerField(event.name, nameMax)}|${event.severity}|`);
    writeExtension(line, event, settings.cef);
    return line.end();
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

const category = pairOf(' cat=', 'dpas.action_attempted', textMax);
const reasonAsAction = pairOf(' act=', 'event.reason', verbMax);
const subjectAndObject = [
  pairOf(' reason=', 'event.reason', textMax),
  pairOf(' suid=', 'user.id', textMax),
  pairOf(' suser=', 'user.email', textMax),
  pairOf(' duid=', 'file.uid', textMax),
  pairOf(' duser=', 'file.owner', textMax),
  pairOf(' fname=', 'file.name', textMax),
  pairOf(' fileId=', 'dpas.payload.id', textMax),
];
const host = pairOf(' shost=', 'host.hostname', textMax);
const dnsDomain = pairOf(' sourceDnsDomain=', 'host.domain', domainMax);
const netbiosDomain = pairOf(' sntdom=', 'host.domain', domainMax);
const deviceAndCustom = [
  pairOf(' deviceExternalId=', 'organization.id', deviceIdMax),
  pairOf(' dvchost=', 'observer.hostname', deviceHostMax),
  pairOf(' cs1=', 'dpas.result', customMax, ' cs1Label=Result'),
  pairOf(' cs2=', 'dpas.network.name', customMax, ' cs2Label=NetworkName'),
  pairOf(' cs3=', 'dpas.network.service_provider', customMax, ' cs3Label=ServiceProvider'),
  pairOf(' cs4=', 'dpas.network.device_type', customMax, ' cs4Label=DeviceType'),
  pairOf(' cs5=', 'dpas.network.uuid', customMax, ' cs5Label=DeviceUuid'),
  pairOf(' cs6=', 'dpas.network.address', customMax, ' cs6Label=Address'),
];
const last = [
  pairOf(' WaybillDpasUid=', 'dpas.uid', textMax),
  pairOf(' WaybillDpasNetworkId=', 'dpas.network.id', textMax),
  pairOf(' WaybillDpasUserName=', 'dpas.user.last_name_first_name', textMax),
  pairOf(' WaybillDpasOwnerName=', 'dpas.owner.last_name_first_name', textMax),
  pairOf(' msg=', 'message', textMax),
];
const externalId = pairOf(' externalId=', 'event.id', externalIdMax);
const action = partOf(' act=');

function writeExtension(line: LineWriter, { document, time }: EcsEvent, settings: CefSettings): void {
  const ms = Math.floor(time / 1000);
  const id = document.text(ecs['event.id']);
  const outcome = document.text(ecs['event.outcome']) ?? '';
  const ip = document.text(ecs['source.ip']);
  const mac = document.text(ecs['source.mac']);
  line.text(`rt=${ms} start=${ms}`);
  // A truncated id could be the id of another record.
  if (id !== undefined && id.length <= externalIdMax) line.pair(document, externalId);
  line.pair(document, category);
  if (document.text(ecs['event.category[0]']) === 'file') line.value(action, verdictOf(outcome), verbMax);
  else line.pair(document, reasonAsAction);
  line.text(` outcome=${outcome}`);
  line.pairs(document, subjectAndObject);
  if (ip !== undefined) {
    const isIpv4 = document.text(ecs['network.type']) === 'ipv4';
    line.text(isIpv4 || settings.ipv6 === 'src' ? ` src=${ip}` : ` c6a2=${ip} c6a2Label=Source IPv6 Address`);
  }
  // CEF has no type for an address of eight bytes.
  if (mac?.length === 17) line.text(` smac=${mac.replaceAll('-', ':')}`);
  line.pair(document, host);
  line.pair(document, document.text(ecs['host.domain'])?.includes('.') ? dnsDomain : netbiosDomain);
  line.pairs(document, deviceAndCustom);
  line.text(positionOf(document.text(ecs['source.geo.location.lat']), document.text(ecs['source.geo.location.lon']), settings.geo));
  line.pairs(document, last);
}

function verdictOf(outcome: string): string | undefined {
  return outcome === 'success' ? 'Allowed' : outcome === 'failure' ? 'Denied' : undefined;
}

function positionOf(lat: string | undefined, lon: string | undefined, geo: CefSettings['geo']): string {
  if (lat === undefined || lon === undefined) return '';
  return geo === 'slat' ? ` slat=${lat} slong=${lon}` : ` cfp1=${lat} cfp1Label=Latitude cfp2=${lon} cfp2Label=Longitude`;
}

/** A value is tested for these characters first: most contain none, and a test is 12 times faster than the replacements. */
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
