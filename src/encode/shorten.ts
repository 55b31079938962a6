/**
 * Makes the message of an event fit into a frame of so many bytes: docs/formats.md, "Shortened messages". The event is shortened and encoded
 * again, so a message that was shortened is as well-formed as any other; nothing is cut inside a character or an escape.
 */
import type { EcsDocument, EcsEvent, Encode } from '../model.ts';
import { parseRecord } from '../record/json.ts';
import { cut } from '../record/text.ts';

type Path = readonly string[];
/** What holds a string: an object or a list of the copy that is being shortened. */
type Holder = Record<string, unknown>;

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
const leastUnits = 64;

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
  return shortenLongest(root, render, most);
}

/** Cuts the longest text, then the next, until everything fits. */
function shortenLongest(root: Holder, render: () => string, most: number): string | undefined {
  const leaves = textsOf(root).sort(([one, a], [other, b]) => lengthAt(other, b) - lengthAt(one, a));
  for (const [holder, key] of leaves) {
    if (lengthAt(holder, key) <= leastUnits) return undefined;
    cutToFit(holder, key, leastUnits, render, most);
    const text = render();
    if (fits(text, most)) return text;
  }
  return undefined;
}

/** Leaves as much of one text as fits; `least` code units of it where nothing fits, and nothing at all for `least` 0. */
function cutToFit(holder: Holder, key: string, least: number, render: () => string, most: number): void {
  const whole = String(holder[key]);
  let [low, high] = [least, whole.length];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    holder[key] = cut(whole, middle);
    if (fits(render(), most)) low = middle;
    else high = middle - 1;
  }
  holder[key] = low === 0 ? undefined : cut(whole, low);
}

function textsOf(value: unknown, found: [Holder, string][] = []): [Holder, string][] {
  if (typeof value !== 'object' || value === null) return found;
  for (const [key, item] of Object.entries(value)) {
    if (typeof item === 'string') found.push([value as Holder, key]);
    else textsOf(item, found);
  }
  return found;
}

function lengthAt(holder: Holder, key: string): number {
  return String(holder[key]).length;
}

function fits(text: string, most: number): boolean {
  return Buffer.byteLength(text) <= most;
}
