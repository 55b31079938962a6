/**
 * Puts text of the other side into a message of ours: short, on one line, with nothing in it that moves a terminal's cursor, and without any
 * secret that this process knows. Bodies, headers, statuses, answers of every protocol and errors of libraries all pass here.
 */
import { escape } from './escape.ts';
import { withoutSecrets } from './secrets.ts';

/** Control characters, what reorders or hides text, and lone surrogates: never shown as they are. */
const unprintable = /[\u0000-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\p{Cs}]/gu;

/** Node recommends an option of its command line, which is not ours. */
const hintOfNode = /; if the root CA is installed locally, try running Node\.js with --use-system-ca/g;

/** Characters of the other side's text that are looked at; no message shows more. */
const readMax = 4_096;

/** @param max  characters that are shown before the text is cut */
export function quote(text: string, max: number): string {
  const clean = withoutSecrets(text.slice(0, readMax), true).replace(hintOfNode, '');
  const cut = clean.length > max || text.length > readMax ? `${clean.slice(0, max)}…` : clean;
  return cut.replace(unprintable, (character) => {
    if (character === '\n') return '\\n';
    if (character === '\r') return '\\r';
    if (character === '\t') return '\\t';
    return escape(character);
  });
}

/** What is shown of an answer's body where its words are not: `512 bytes of text/html`. */
export function sizeAndType(body: Uint8Array | string, mediaType: string | readonly string[] | undefined): string {
  const bytes = typeof body === 'string' ? Buffer.byteLength(body) : body.byteLength;
  // Parameters are cut off last: a secret may hold a semicolon.
  const type =
    quote(typeof mediaType === 'string' ? mediaType : (mediaType?.[0] ?? ''), 60)
      .split(';')[0]
      ?.trim() ?? '';
  return `${bytes} ${bytes === 1 ? 'byte' : 'bytes'} of ${type === '' ? 'no media type' : type}`;
}
