/** The record itself, after privacy, as one line. */
import type { Encode } from '../model/event.ts';

export function raw(): Encode {
  return ({ document }) => {
    const text = document.event.original;
    // In JSON a line break can stand only between tokens, where a blank means the same.
    return /[\r\n]/.test(text) ? text.replace(/\r\n|\r|\n/g, ' ') : text;
  };
}
