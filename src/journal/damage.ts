/** What is said when the state does not hold what was written to it: the same advice wherever it is found. */
import { WaybillError, messageOf } from '../errors.ts';

const advice =
  'keep the directory, check the disk, and begin a new state with "start" at the old frontier (docs/operations.md, state_corrupt)';

/** A `state_corrupt`; `words` say where, or are those of SQLite. */
export function damaged(message: string, cause?: unknown, directory?: string): WaybillError {
  const where = directory === undefined ? '' : ` in "${directory}"`;
  return new WaybillError('state_corrupt', `cannot read the state${where}: it is damaged; ${advice}: ${message}`, { cause });
}

/** Reads back what the journal keeps as JSON text. @throws WaybillError `state_corrupt` */
export function storedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw damaged(messageOf(cause), cause);
  }
}
