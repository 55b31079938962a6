/** Parses the file name from a message of each format, with parsers independent of the encoders. */
import type { Format } from '../../../src/encode/index.ts';
import { parseCef } from './cef-parser.ts';
import { parseLeef } from './leef-parser.ts';

const inDocument = (text: string): unknown => (JSON.parse(text) as { file: { name: unknown } }).file.name;

export const fileNameIn: Readonly<Record<Format, (text: string) => unknown>> = {
  ecs: inDocument,
  cef: (text) => parseCef(text).extension.find(([key]) => key === 'fname')?.[1],
  leef: (text) => parseLeef(text).values.get('fileName'),
  ocsf: inDocument,
  raw: (text) => (JSON.parse(text) as { payloadName: unknown }).payloadName,
};
