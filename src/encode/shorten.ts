/**
 * Shortens a message to a byte limit: docs/formats.md, "Truncated messages". It cuts the event's texts and
 * encodes the event again, so the message stays well-formed: no character or escape is cut in half.
 */
import type { EcsDocument, EcsEvent, Encode } from '../model/event.ts';
import type { JsonValue } from '../model/record.ts';
import { isRawNumber, parseRecord } from '../record/json.ts';
import { cut } from '../record/text.ts';
import type { ShortenKind } from './define.ts';

type Path = readonly string[];
/** The object or list that contains a string, in the copy that is shortened. */
type Holder = Record<string, unknown>;
/** A text that may be cut, with its place. */
interface Text {
  readonly holder: Holder;
  readonly key: string;
  readonly whole: string;
}

/** The order in which a line's texts are cut: the message, the network's description, then the names. */
const lineOrder: readonly Path[] = [
  ['message'],
  ['dpas', 'network', 'name'],
  ['dpas', 'network', 'service_provider'],
  ['dpas', 'network', 'device_type'],
  ['dpas', 'network', 'uuid'],
  ['dpas', 'network', 'address'],
  ['file', 'name'],
  ['dpas', 'user', 'last_name_first_name'],
  ['dpas', 'owner', 'last_name_first_name'],
];

/** A document omits the record's text first; the hash stays. */
const documentOrder: readonly Path[] = [['event', 'original']];

/** Minimum length of a cut text: identities, times and field names stay whole. */
const minUnits = 64;

/**
 * @param most  limit in bytes of UTF-8
 * @returns undefined when a message within the limit would lose what identifies the event
 */
export function shorten(format: ShortenKind, event: EcsEvent, encode: Encode, most: number): string | undefined {
  if (format === 'record') return shortenRecord(event, encode, most);
  const document: EcsDocument = structuredClone(event.document);
  const render = (): string => encode({ ...event, document });
  for (const path of format === 'line' ? lineOrder : documentOrder) {
    const holder = path
      .slice(0, -1)
      .reduce<Holder | undefined>((at, key) => at?.[key] as Holder | undefined, document as unknown as Holder);
    const key = path.at(-1) ?? '';
    if (typeof holder?.[key] !== 'string') continue;
    if (format === 'document') holder[key] = undefined;
    else cutToFit(holder, key, 0, render, most);
    if (fits(render(), most)) return render();
  }
  return shortenLongest(document as unknown as Holder, render, most);
}

/** Parses the record, cuts long texts only, and serializes it again. */
function shortenRecord(event: EcsEvent, encode: Encode, most: number): string | undefined {
  const root: Holder = { value: parseRecord(event.document.event.original) };
  const render = (): string => {
    const original = JSON.stringify(root['value']);
    return encode({ ...event, document: { ...event.document, event: { ...event.document.event, original } } });
  };
  // Lower bound of the message's size, one byte a code unit: rejects an impossible limit without encoding.
  const minBytes = textsOf(root).reduce((sum, { whole }) => sum + Math.min(whole.length, minUnits - 1), 0);
  return minBytes > most ? undefined : shortenLongest(root, render, most);
}

/** Cuts the longest texts until the message fits; a binary search finds how many, since a record may have thousands. */
function shortenLongest(root: Holder, render: () => string, most: number): string | undefined {
  const longest = textsOf(root)
    .filter(({ whole }) => whole.length > minUnits)
    .sort((one, other) => other.whole.length - one.whole.length);
  const fitsWithFirstCut = (count: number): boolean => {
    for (const [i, { holder, key, whole }] of longest.entries()) holder[key] = i < count ? cut(whole, minUnits) : whole;
    return fits(render(), most);
  };
  let [low, high] = [1, longest.length];
  if (high === 0 || !fitsWithFirstCut(high)) return undefined;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (fitsWithFirstCut(middle)) high = middle;
    else low = middle + 1;
  }
  fitsWithFirstCut(low - 1);
  const last = longest[low - 1];
  if (last) cutToFit(last.holder, last.key, minUnits, render, most);
  return render();
}

/** Cuts one text to the longest prefix that fits, but not below `least` code units; with `least` 0 it is removed if need be. */
function cutToFit(holder: Holder, key: string, least: number, render: () => string, most: number): void {
  const whole = String(holder[key]);
  const cutTo = (units: number): void => {
    holder[key] = units === 0 ? undefined : cut(whole, units);
  };
  cutTo(least);
  if (!fits(render(), most)) return;
  let [low, high] = [least, whole.length];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    cutTo(middle);
    if (fits(render(), most)) low = middle;
    else high = middle - 1;
  }
  cutTo(low);
}

function textsOf(value: unknown, found: Text[] = []): Text[] {
  if (typeof value !== 'object' || value === null || isRawNumber(value as JsonValue)) return found;
  for (const [key, item] of Object.entries(value)) {
    if (typeof item === 'string') found.push({ holder: value as Holder, key, whole: item });
    else textsOf(item, found);
  }
  return found;
}

function fits(text: string, most: number): boolean {
  return Buffer.byteLength(text) <= most;
}
