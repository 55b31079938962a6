/** The record's own JSON, after privacy, on one line. */
import type { Encode } from '../record/event.ts';
import { defineFormat } from './define.ts';

const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const nothing = Buffer.alloc(0);

export const raw = defineFormat('raw', {
  contentType: 'application/json',
  shape: 'document',
  shorten: 'record',
  encoder: encodeRaw,
});

function encodeRaw(): Encode {
  return ({ document }) => {
    const bytes = document.original?.bytes ?? nothing;
    if (!bytes.includes(lineFeed) && !bytes.includes(carriageReturn)) return bytes;
    // JSON allows a line break only between tokens, where a space is equivalent.
    return Buffer.from(bytes.toString().replace(/\r\n|\r|\n/g, ' '));
  };
}
