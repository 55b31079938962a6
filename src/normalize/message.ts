/** The `message` of an event: one sentence for lists of events. */
import { cut } from '../record/text.ts';

const partMax = 256;

/** `<name>: <user> / <payload name> (<reason>)` without absent parts. Control characters become spaces; user and payload are cut to 256. */
export function messageText(name: string, actor: string | undefined, payloadName: string | undefined, reason: string | undefined): string {
  let text = name;
  if (actor !== undefined) text += `: ${cut(actor, partMax)}`;
  if (payloadName !== undefined) text += `${actor === undefined ? ': ' : ' / '}${cut(payloadName, partMax)}`;
  if (reason !== undefined) text += ` (${reason})`;
  return /[\u0000-\u001f\u007f-\u009f]/.test(text) ? text.replace(/[\u0000-\u001f\u007f-\u009f]/g, ' ') : text;
}
