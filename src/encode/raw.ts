/** The record's own JSON, after privacy, on one line. */
import type { Encode } from '../model/event.ts';
import { defineFormat } from './define.ts';

export const raw = defineFormat('raw', {
  contentType: 'application/json',
  shape: 'document',
  shorten: 'record',
  encoder: encodeRaw,
});

function encodeRaw(): Encode {
  return ({ document }) => {
    const text = document.event.original;
    // JSON allows a line break only between tokens, where a space is equivalent.
    return /[\r\n]/.test(text) ? text.replace(/\r\n|\r|\n/g, ' ') : text;
  };
}
