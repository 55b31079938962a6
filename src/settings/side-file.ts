/** Files that belong to the file of a sink. */
import { basename, dirname, join } from 'node:path';

/**
 * In the folder `.waybill` next to the file: programs that read `<path>*` or the whole directory read messages only. Not in the state
 * directory: a position there would be restored with an older state, and a lock there would not stop a second daemon.
 */
export function sideFile(path: string, ending: string): string {
  return join(dirname(path), '.waybill', `${basename(path)}.${ending}`);
}
