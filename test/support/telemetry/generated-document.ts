/** Documents whose tables a test generates; the text above the mark is written by hand. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const mark = /<!-- generated below this line by [^>]* -->\n/;

/** The document as it must be: the text up to and including the mark, then the generated part. */
export function documentWith(document: string, generated: string): { readonly text: string; readonly path: string } {
  const path = fileURLToPath(new URL(`../../../${document}`, import.meta.url));
  const present = readFileSync(path, 'utf8');
  const found = mark.exec(present);
  if (!found) throw new Error(`${document} has no mark for the generated part`);
  return { text: `${present.slice(0, found.index + found[0].length)}\n${generated}`, path };
}
