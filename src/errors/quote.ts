/**
 * Makes text of the other side safe for a message: short, on one line, without control characters and known secrets. Bodies, headers,
 * statuses, responses of every protocol and errors of libraries pass through `quote`.
 */
import { escape } from './escape.ts';
import { withoutSecrets, withoutSecretWords } from './secrets.ts';

/** Control characters, characters that reorder or hide text, and lone surrogates. */
const unprintable = /[\u0000-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\p{Cs}]/gu;

/** Node suggests a command line option that Waybill does not have. */
const hintOfNode = /; if the root CA is installed locally, try running Node\.js with --use-system-ca/g;

/** Characters to examine: far more than a message shows, so that no message shows a secret that ends after them. */
const readMax = 65_536;

/** @param max  characters to show */
export function quote(text: string, max: number): string {
  const clean = withoutSecretWords(withoutSecrets(text.slice(0, readMax))).replace(hintOfNode, '');
  const cut = clean.length > max || text.length > readMax ? `${clean.slice(0, max)}…` : clean;
  return cut.replace(unprintable, (character) => {
    if (character === '\n') return '\\n';
    if (character === '\r') return '\\r';
    if (character === '\t') return '\\t';
    return escape(character);
  });
}

/** Describes a body without its text: `512 bytes of text/html`. */
export function sizeAndType(body: Uint8Array | string, mediaType: string | readonly string[] | undefined): string {
  const bytes = typeof body === 'string' ? Buffer.byteLength(body) : body.byteLength;
  // Parameters are removed last: a secret may contain a semicolon.
  const type =
    quote(typeof mediaType === 'string' ? mediaType : (mediaType?.[0] ?? ''), 60)
      .split(';')[0]
      ?.trim() ?? '';
  return `${bytes} ${bytes === 1 ? 'byte' : 'bytes'} of ${type === '' ? 'no media type' : type}`;
}
