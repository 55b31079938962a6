/** The release that runs, as the package says; beside `src` and beside `dist` alike. */
import { readFileSync } from 'node:fs';

export const version: string = (JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string })
  .version;
