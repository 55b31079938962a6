/** One denial on a line of 78 columns: when, why, who, what, and how soon it was read. Pure. */
import { printable } from '../../../escape.ts';
import { cut } from '../../../report/text-table.ts';

/** The parts of an event (ECS, docs/formats.md) that the line shows. */
export interface Denial {
  readonly '@timestamp': string;
  readonly event: { readonly reason?: string; readonly created: string };
  readonly user?: { readonly email?: string; readonly id?: string };
  readonly file?: { readonly name?: string };
}

/**
 * Columns of everything but reason, user and file: time, word, delay, and the blanks between them.
 */
const fixed = 28;
const width = 78;
const reasonLeast = 19;

/**
 * `15:03:59 DENIED UserPayloadNoAccess  echo-sample@…  Review 5407.txt  0.2 s`.
 * @param mark  colours the word
 */
export function denialLine({ '@timestamp': at, event, user, file }: Denial, mark = (word: string): string => word): string {
  const seconds = (Date.parse(event.created) - Date.parse(at)) / 1000;
  const delay = seconds < 60 ? `${seconds.toFixed(1)} s` : `${Math.round(seconds / 60)} min`;
  const reason = printable(event.reason ?? 'no reason given').padEnd(reasonLeast);
  const left = Math.max(0, width - fixed - reason.length);
  const who = printable(user?.email ?? user?.id ?? '-').replace(/@.*/, '@…');
  const what = printable(file?.name ?? '-');
  const forWho = Math.max(Math.floor(left / 2), left - what.length);
  const shownWho = cut(who, forWho);
  return [
    `${at.slice(11, 19)} ${mark('DENIED')} ${reason}`,
    shownWho.padEnd(Math.floor(left / 2)),
    cut(what, left - Math.max(shownWho.length, Math.floor(left / 2))),
    delay,
  ].join('  ');
}
