/** The sentence that a person reads in a list of events. */
import { cut } from '../record/text.ts';

const partMax = 256;

/**
 * `<name>: <who> / <payload name> (<reason>)`; what is absent is left out with its separator. Control characters become blanks; who and
 * payload name are cut to 256 characters each.
 */
export function messageText(name: string, actor: string | undefined, payloadName: string | undefined, reason: string | undefined): string {
  let text = name;
  if (actor !== undefined) text += `: ${cut(actor, partMax)}`;
  if (payloadName !== undefined) text += `${actor === undefined ? ': ' : ' / '}${cut(payloadName, partMax)}`;
  if (reason !== undefined) text += ` (${reason})`;
  return /[\u0000-\u001f\u007f-\u009f]/.test(text) ? text.replace(/[\u0000-\u001f\u007f-\u009f]/g, ' ') : text;
}
