/** The version in package.json. */
import { readFileSync } from 'node:fs';
import { packageFile } from './files.ts';

export const version: string = (JSON.parse(readFileSync(packageFile('package.json'), 'utf8')) as { version: string }).version;
