/** Lengths of text, where a format or a message limits them: in UTF-16 code units, and never inside a character. */

/** The text, or its first `max` code units; one less if that would split a surrogate pair. */
export function cut(text: string, max: number): string {
  if (text.length <= max) return text;
  const last = text.charCodeAt(max - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? max - 1 : max);
}
