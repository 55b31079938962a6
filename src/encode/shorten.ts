/** Shortens a message to a byte limit (docs/formats.md, "Truncated messages"): cuts the event's texts and encodes it again. */
import type { JsonValue } from '../model/record.ts';
import { ecsNumbers as ecs, ecsPaths, ecsTable } from '../record/ecs.ts';
import type { EcsEvent, Encode } from '../record/event.ts';
import { isRawNumber } from '../record/json.ts';
import { readText } from '../record/read.ts';
import { cut } from '../record/text.ts';
import type { ShortenKind } from './define.ts';

/** A text that may be cut. */
interface Text {
  readonly whole: string;
  /** Replaces it; undefined removes it. */
  readonly set: (text: string | undefined) => void;
}

/** The order in which a line's texts are cut: the message, the network's description, then the names. */
const lineOrder = [
  ecs.message,
  ecs['dpas.network.name'],
  ecs['dpas.network.service_provider'],
  ecs['dpas.network.device_type'],
  ecs['dpas.network.uuid'],
  ecs['dpas.network.address'],
  ecs['file.name'],
  ecs['dpas.user.last_name_first_name'],
  ecs['dpas.owner.last_name_first_name'],
];

const textFields = ecsPaths.filter((path) => ecsTable[path] !== 'number').map((path) => ecs[path]);

/** Minimum length of a cut text: identities, times and field names stay whole. */
const minUnits = 64;

/** @param maxBytes  of UTF-8 @returns undefined when a message within the limit would lose what identifies the event */
export function shorten(format: ShortenKind, event: EcsEvent, encode: Encode, maxBytes: number): Buffer | undefined {
  if (format === 'record') return shortenRecord(event, encode, maxBytes);
  const document = event.document.copy();
  const render = (): Buffer => encode({ ...event, document });
  const textOf = (field: number): Text => ({ whole: document.text(field) ?? '', set: (text) => document.set(field, text) });
  if (format === 'document') {
    // A document omits the record's text first; the hash stays.
    document.setOriginal(undefined);
    if (render().length <= maxBytes) return render();
  } else {
    for (const field of lineOrder) {
      if (document.text(field) === undefined) continue;
      cutToFit(textOf(field), 0, render, maxBytes);
      if (render().length <= maxBytes) return render();
    }
  }
  return shortenLongest(textFields.map(textOf), render, maxBytes);
}

/** Parses the record, cuts long texts only, and serializes it again. */
function shortenRecord(event: EcsEvent, encode: Encode, maxBytes: number): Buffer | undefined {
  const root = { value: event.document.original?.tree() };
  const document = event.document.copy();
  const render = (): Buffer => {
    document.setOriginal(readText(JSON.stringify(root.value)));
    return encode({ ...event, document });
  };
  const texts = textsOf(root);
  // Lower bound of the message's size, one byte a code unit: rejects an impossible limit without encoding.
  const minBytes = texts.reduce((sum, { whole }) => sum + Math.min(whole.length, minUnits - 1), 0);
  return minBytes > maxBytes ? undefined : shortenLongest(texts, render, maxBytes);
}

/** Cuts the longest texts until the message fits; a binary search finds how many, since a record may have thousands. */
function shortenLongest(texts: readonly Text[], render: () => Buffer, maxBytes: number): Buffer | undefined {
  const longest = texts.filter(({ whole }) => whole.length > minUnits).sort((one, other) => other.whole.length - one.whole.length);
  const fitsWithFirstCut = (count: number): boolean => {
    for (const [i, { whole, set }] of longest.entries()) set(i < count ? cut(whole, minUnits) : whole);
    return render().length <= maxBytes;
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
  if (last) cutToFit(last, minUnits, render, maxBytes);
  return render();
}

/** Cuts one text to the longest prefix that fits, but not below `min` code units; with `min` 0 it is removed if need be. */
function cutToFit({ whole, set }: Text, min: number, render: () => Buffer, maxBytes: number): void {
  const cutTo = (units: number): void => set(units === 0 ? undefined : cut(whole, units));
  cutTo(min);
  if (render().length > maxBytes) return;
  let [low, high] = [min, whole.length];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    cutTo(middle);
    if (render().length <= maxBytes) low = middle;
    else high = middle - 1;
  }
  cutTo(low);
}

function textsOf(value: unknown, found: Text[] = []): Text[] {
  if (typeof value !== 'object' || value === null || isRawNumber(value as JsonValue)) return found;
  const holder = value as Record<string, unknown>;
  for (const [key, item] of Object.entries(holder)) {
    if (typeof item !== 'string') {
      textsOf(item, found);
      continue;
    }
    const set = (text: string | undefined): void => {
      holder[key] = text;
    };
    found.push({ whole: item, set });
  }
  return found;
}
