/**
 * Makes the message of an event fit into a frame of so many bytes: docs/formats.md, "Shortened messages". The event is shortened and encoded
 * again, so a message that was shortened is as well-formed as any other; nothing is cut inside a character or an escape.
 */
import type { EcsDocument, EcsEvent, Encode } from '../model/event.ts';
import type { JsonValue } from '../model/record.ts';
import { isRawNumber, parseRecord } from '../record/json.ts';
import { cut } from '../record/text.ts';

type Path = readonly string[];
/** What holds a string: an object or a list of the copy that is being shortened. */
type Holder = Record<string, unknown>;
/** A text that may be cut, and where it stands. */
interface Text {
  readonly holder: Holder;
  readonly key: string;
  readonly whole: string;
}

/** What a line can do without, first to last: the sentence, what describes the network, then the names. */
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

/** A document can do without the text of the record: its hash stays. */
const documentOrder: readonly Path[] = [['event', 'original']];

/** Strings are not cut to less than this: identities, times and names of fields stay whole. */
const minUnits = 64;

/**
 * The event in at most so many bytes of UTF-8.
 * @returns undefined when that cannot be done without cutting what tells one event from another
 */
export function shorten(format: 'line' | 'document' | 'record', event: EcsEvent, encode: Encode, most: number): string | undefined {
  if (format === 'record') return shortenRecord(event, encode, most);
  // Everything in it is text, a number or a list of texts.
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

/** A record as received, of which only long texts are cut; it is written anew, since nobody can cut within its own bytes. */
function shortenRecord(event: EcsEvent, encode: Encode, most: number): string | undefined {
  const root: Holder = { value: parseRecord(event.document.event.original) };
  const render = (): string => {
    const original = JSON.stringify(root['value']);
    return encode({ ...event, document: { ...event.document, event: { ...event.document.event, original } } });
  };
  // All of it is in the message, each text with one byte a unit at least: what is hopeless is known without writing it.
  const minBytes = textsOf(root).reduce((sum, { whole }) => sum + Math.min(whole.length, minUnits - 1), 0);
  return minBytes > most ? undefined : shortenLongest(root, render, most);
}

/** Cuts the longest text, then the next, until everything fits. How many must be cut is found by halves: a record may have thousands. */
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

/** Leaves as much of one text as fits; `least` code units of it where nothing fits, and nothing at all for `least` 0. */
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
