/** The programs that tests start. */
import { join, resolve } from 'node:path';

/** Set by built-program.ts; a script without vitest starts the sources. */
const built = process.env['WAYBILL_TEST_PROGRAM'];
const root = resolve(import.meta.dirname, '../..');

export const waybillProgram = join(built ?? root, 'bin/waybill.js');
export const referenceProgram = join(built ?? root, built === undefined ? 'src/reference/main.ts' : 'dist/reference/main.js');
