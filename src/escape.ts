/** Escapes characters that a terminal obeys or that reorder text, so that text of a server can neither steer a terminal nor forge a line. */

/** Control characters and marks of direction as `\u001b`, line breaks too: one line stays one line. */
export function printable(text: string): string {
  return harmless(text).replace(/[\u0000-\u001f]/g, escape);
}

/**
 * DEL, C1 controls, separators and marks of direction as `\u009b`, which a terminal would obey and JSON lets pass. C0 controls stay: JSON escapes
 * them itself. Of JSON text the result is JSON of the same value.
 */
export function harmless(text: string): string {
  return text.replace(/[\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, escape);
}

/** One UTF-16 code unit as `\u001b`. */
export function escape(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
