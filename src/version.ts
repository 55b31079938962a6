/** The version in package.json, which is the parent of both `src` and `dist`. */
import { readFileSync } from 'node:fs';

export const version: string = (JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string })
  .version;
