/** Escapes control characters and direction marks: text of a server must neither control a terminal nor forge a line. */

/** Writes control characters, line breaks too, and direction marks as `\u001b`. */
export function printable(text: string): string {
  return harmless(text).replace(/[\u0000-\u001f]/g, escape);
}

/**
 * Writes DEL, C1 controls, separators and direction marks, which JSON does not escape, as `\u009b`. C0 controls stay: JSON escapes them.
 * The result for a JSON text is JSON of the same value.
 */
export function harmless(text: string): string {
  return text.replace(/[\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, escape);
}

/** One UTF-16 code unit as `\u001b`. */
export function escape(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
