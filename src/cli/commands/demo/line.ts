/** One denial on a line of 78 to 110 columns: time, reason, user, file and delay until receipt. Pure. */
import { printable } from '../../../errors/escape.ts';
import { outcomes } from '../../../normalize/outcomes.ts';
import { cut } from '../../../report/text-table.ts';

/** The parts of an event (ECS, docs/formats.md) that the line shows. */
export interface Denial {
  readonly '@timestamp': string;
  readonly event: { readonly reason?: string; readonly code?: string; readonly created: string };
  readonly user?: { readonly email?: string; readonly id?: string };
  readonly file?: { readonly name?: string };
}

/** Columns of the time, the word `DENIED`, the delay and the blanks between the parts. */
const fixed = 29;
const narrowest = 78;
const widest = 110;
/** Minimum and maximum width of the reason column: most reasons fit into the first, GeoValidationCountryExclusionFailed fills the second. */
const reasonLeast = 19;
const reasonLongest = 35;

/**
 * `15:03:59 DENIED UserPayloadNoAccess  echo-sample@…  Review 5407.txt  0.2 s`.
 * @param mark  colours the word
 * @param width  columns of the terminal
 */
export function denialLine(denial: Denial, mark = (word: string): string => word, width: number = narrowest): string {
  const parts = eventParts(denial);
  const columns = Math.min(widest, Math.max(narrowest, width));
  const reason = parts.reason.padEnd(columns === widest ? reasonLongest : reasonLeast);
  const left = Math.max(0, columns - fixed - reason.length);
  const forWho = Math.floor(left / 2);
  const who = parts.who.replace(/@.*/, '@…');
  return [
    `${parts.time} ${mark('DENIED')} ${reason}`,
    cut(who, forWho).padEnd(forWho),
    cut(parts.file, left - forWho).padEnd(left - forWho),
    parts.delay,
  ].join('  ');
}

/** `Protected file open denied (UserPayloadNoAccess)`, as docs/formats.md names the outcome. */
export function outcomeName(code = '-'): string {
  const outcome = outcomes.find((each) => each.code === code);
  if (!outcome) return printable(code);
  return outcome.outcome === 'failure' ? `${outcome.name} (${outcome.resultReason})` : outcome.name;
}

/** The texts of an event, without control characters. */
export function eventParts({
  '@timestamp': at,
  event,
  user,
  file,
}: Denial): Readonly<Record<'time' | 'what' | 'reason' | 'who' | 'file' | 'delay', string>> {
  const seconds = (Date.parse(event.created) - Date.parse(at)) / 1000;
  return {
    time: at.slice(11, 19),
    what: outcomeName(event.code),
    reason: printable(event.reason ?? 'no reason given'),
    who: printable(user?.email ?? user?.id ?? '-'),
    file: printable(file?.name ?? '-'),
    delay: seconds < 60 ? `${seconds.toFixed(1)} s` : `${Math.round(seconds / 60)} min`,
  };
}
