/**
 * A line of IBM's LEEF 2.0, tab-separated (docs/formats.md, "LEEF"). It defines no escape, so control characters become spaces. IBM permits
 * `x09` and `0x09` for the tab in the header; the OpenTelemetry Collector reads only `0x09`.
 */
import { ecsNumbers as ecs } from '../record/ecs.ts';
import type { EcsEvent, EcsObserver, Encode } from '../record/event.ts';
import { cut } from '../record/text.ts';
import { defineFormat } from './define.ts';
import { headers, LineWriter, pairOf } from './line-writer.ts';

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
  const line = new LineWriter({ isUsual: () => true, clean });
  const header = headers(headerOf);
  return (event) => {
    const { document, observer } = event;
    line.begin(document);
    line.part(header(observer));
    line.text(`${headerField(document.text(ecs['event.code']) ?? '')}|0x09|`);
    writeAttributes(line, event);
    return line.end();
  };
}

/** The fields that are constant for a source. */
function headerOf({ vendor, product, version }: EcsObserver): string {
  return `LEEF:2.0|${headerField(vendor)}|${headerField(product)}|${headerField(version)}|`;
}

function headerField(text: string): string {
  return cut(spaced(text).replaceAll('|', '/'), shortMax);
}

const category = pairOf('\tcat=', 'dpas.action_attempted', textMax);
const email = pairOf('\tusrName=', 'user.email', shortMax);
const userIdAsName = pairOf('\tusrName=', 'user.id', shortMax);
const address = pairOf('\tsrc=', 'source.ip', textMax);
const place = [
  pairOf('\tdomain=', 'host.domain', textMax),
  pairOf('\tresource=', 'host.hostname', textMax),
  pairOf('\tuid=', 'dpas.uid', textMax),
];
const logId = pairOf('\tlogId=', 'event.id', textMax);
const subjectAndObject = [
  pairOf('\taction=', 'event.action', textMax),
  pairOf('\toutcome=', 'event.outcome', textMax),
  pairOf('\tresult=', 'dpas.result', textMax),
  pairOf('\treason=', 'event.reason', textMax),
  pairOf('\tuserId=', 'user.id', textMax),
  pairOf('\tuserFullName=', 'user.full_name', textMax),
  pairOf('\townerId=', 'file.uid', textMax),
  pairOf('\townerEmail=', 'file.owner', textMax),
  pairOf('\townerFullName=', 'dpas.owner.full_name', textMax),
  pairOf('\tpayloadId=', 'dpas.payload.id', textMax),
  pairOf('\tfileName=', 'file.name', textMax),
];
const network = [
  pairOf('\tserviceProvider=', 'dpas.network.service_provider', textMax),
  pairOf('\tnetworkName=', 'dpas.network.name', textMax),
  pairOf('\tnetworkId=', 'dpas.network.id', textMax),
  pairOf('\tdeviceType=', 'dpas.network.device_type', textMax),
  pairOf('\tdeviceUuid=', 'dpas.network.uuid', textMax),
  pairOf('\taddress=', 'dpas.network.address', textMax),
  pairOf('\ttenantId=', 'organization.id', textMax),
];

function writeAttributes(line: LineWriter, { document, time, severity }: EcsEvent): void {
  const id = document.text(ecs['event.id']);
  const mac = document.text(ecs['source.mac']);
  const lat = document.text(ecs['source.geo.location.lat']);
  line.text(`devTime=${Math.floor(time / 1000)}`);
  line.pair(document, category);
  line.text(`\tsev=${Math.max(1, severity)}`);
  line.pair(document, document.text(ecs['user.email']) === undefined ? userIdAsName : email);
  line.pair(document, address);
  // LEEF has no type for an address of eight bytes.
  if (mac?.length === 17) line.text(`\tsrcMAC=${mac.replaceAll('-', ':')}`);
  line.pairs(document, place);
  // A truncated id could be the id of another record.
  if (id !== undefined && id.length <= textMax) line.pair(document, logId);
  line.pairs(document, subjectAndObject);
  if (lat !== undefined) line.text(`\tlatitude=${lat}\tlongitude=${document.text(ecs['source.geo.location.lon']) ?? ''}`);
  line.pairs(document, network);
}

function clean(value: string, max: number): string {
  return cut(spaced(value).trim(), max).trimEnd();
}

/** A text is tested for these characters first: most contain none, and a test is cheaper than a replacement. */
const special = /[\p{Cc}\u2028\u2029]/u;

function spaced(text: string): string {
  return special.test(text) ? text.replace(/[\p{Cc}\u2028\u2029]/gu, ' ') : text;
}
