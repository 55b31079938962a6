/** Files that belong to the file of a sink. */
import { basename, dirname, join } from 'node:path';

/**
 * In the folder `.waybill` next to the file: a program that reads `<path>*`, or each file of the directory, reads messages only. Not in the
 * state directory: a position there would be restored together with an older state, and a lock there would not stop a second daemon.
 */
export function sideFile(path: string, ending: string): string {
  return join(dirname(path), '.waybill', `${basename(path)}.${ending}`);
}
