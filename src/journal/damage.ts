/** Errors and parsing for a damaged state. */
import { WaybillError, messageOf } from '../errors/errors.ts';

const advice =
  'keep the directory, check the disk, and start a new state with "start" at the time until which it was complete (docs/operations.md, state_corrupt)';

/** A `state_corrupt` error. `message` names the damaged part, or is SQLite's own. */
export function damaged(message: string, cause?: unknown, directory?: string): WaybillError {
  const where = directory === undefined ? '' : ` in "${directory}"`;
  return new WaybillError('state_corrupt', `cannot read the state${where}: it is damaged; ${advice}: ${message}`, { cause });
}

/** Parses JSON that the journal stored. @throws WaybillError `state_corrupt` */
export function storedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw damaged(messageOf(cause), cause);
  }
}
