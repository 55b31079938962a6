/**
 * Puts words of the other side into a message of ours: short, on one line, with nothing in them that moves a terminal's cursor, and without
 * the secrets that we sent there.
 */

/** Control characters, what reorders or hides text, and lone surrogates: never shown as they are. */
const unprintable = /[\u0000-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\p{Cs}]/gu;

/**
 * The first characters in quotation marks, e.g. `"<html><head>…"`.
 * @param max  characters of the text before it is cut
 */
export function quote(text: string, max = 60): string {
  return `"${plain(text, max)}"`;
}

/** The same without quotation marks. */
export function plain(text: string, max: number): string {
  const cut = text.length > max ? `${text.slice(0, max)}…` : text;
  return cut.replace(unprintable, (character) => {
    if (character === '\n') return '\\n';
    if (character === '\r') return '\\r';
    if (character === '\t') return '\\t';
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}

/** The text with every occurrence of a secret, as it is, percent-encoded or in base64, replaced. */
export function redact(text: string, secrets: readonly string[]): string {
  let clean = text;
  for (const secret of secrets) {
    if (secret === '') continue;
    const bytes = Buffer.from(secret);
    const forms = [secret, encodeURIComponent(secret.toWellFormed()), bytes.toString('base64'), bytes.toString('base64url')];
    for (const form of forms) clean = clean.replaceAll(form, '[secret]');
  }
  return clean;
}
