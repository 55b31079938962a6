/** The `markup` template: it escapes every value except the result of another template. */
import { printable } from '../errors/escape.ts';
import { joined, type Chunks } from './chunks.ts';

/** HTML text, in chunks if it is long. Prettier reformats templates with the tag `html`. */
export class Html {
  readonly chunks: Chunks;

  constructor(chunks: Chunks) {
    this.chunks = chunks;
  }
}

type Value = string | Html | readonly Html[];

/** Escapes strings; inserts templates and arrays of templates. A chunked template can be read only once. */
export function markup(texts: TemplateStringsArray, ...values: readonly Value[]): Html {
  const parts: Chunks[] = [];
  let text = texts[0] ?? '';
  for (const [i, value] of values.entries()) {
    for (const part of value instanceof Array ? value : [value]) {
      if (typeof part === 'string') text += escaped(part);
      else if (typeof part.chunks === 'string') text += part.chunks;
      else {
        parts.push(text, part.chunks);
        text = '';
      }
    }
    text += texts[i + 1] ?? '';
  }
  return parts.length === 0 ? new Html(text) : new Html(joined([...parts, text], ''));
}

export function lines(parts: Iterable<Html>): Html {
  return new Html(joined(chunksOf(parts), '\n'));
}

/** A constant of this program that is not escaped. Never pass a value of a report. */
export function trusted(text: string): Html {
  return new Html(text);
}

function* chunksOf(parts: Iterable<Html>): Generator<Chunks, void, void> {
  for (const { chunks } of parts) yield chunks;
}

/** Safe in text and in a quoted attribute; control characters and direction marks become visible escapes. */
function escaped(value: string): string {
  return printable(value).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

export const none = trusted('');
