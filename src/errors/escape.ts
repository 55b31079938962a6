/**
 * Escapes what would let text of a server control a terminal or forge a line: control characters and direction marks. Undoes URL escapes.
 */

/** Writes control characters, line breaks too, and direction marks as `\u001b`. */
export function printable(text: string): string {
  return harmless(text).replace(/[\u0000-\u001f]/g, escape);
}

/** Writes DEL, C1 controls, separators and direction marks, which JSON does not escape, as `\u009b`. A JSON text keeps its value. */
export function harmless(text: string): string {
  return text.replace(/[\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, escape);
}

/** One UTF-16 code unit as `\u001b`. */
export function escape(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** The bytes of a text with the escapes of a URL (RFC 3986 section 2.1). A `%` that begins no escape stands for itself, as in curl. */
export function unescaped(text: string): Buffer {
  const bytes = text.replace(/%([0-9a-f]{2})/gi, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)));
  return Buffer.from(bytes, 'latin1');
}
