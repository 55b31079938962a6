/** The result of `waybill compare`, as text and as JSON. Pure. */
import { printable } from '../../../errors/escape.ts';
import type { Window } from '../../../model/ledger.ts';
import { counted, grouped, rfc3339 } from '../../../report/format-time.ts';
import type { Period } from './read-period.ts';
import type { Kind, Tallied, Tally } from './tally.ts';

const shown = 20;
export const kinds: readonly Kind[] = ['missing', 'doubled', 'unknown'];
const meanings = {
  missing: 'MISSING in --ids',
  doubled: 'DUPLICATED in --ids',
};

interface Found {
  readonly id: string;
  readonly period: Window;
  readonly read: Period;
  readonly theirs: { readonly ids: number; readonly withoutId: number };
  readonly counts: Readonly<Record<Kind, { readonly ids: number; readonly records: number }>>;
  readonly tally: Tally;
  /** The period ends within the last `closeDelay`. */
  readonly early: boolean;
}

export function* textOf({ id, period, read, theirs, counts, tally, early }: Found): Generator<string> {
  const proven = read.windows - read.unproven.length;
  const lines = [
    `Source ${id}, ${rfc3339(period.from)} to ${rfc3339(period.to)}: ${counted(read.records, 'record')} at the service, ${grouped(proven)} of ${counted(read.windows, 'window')} proven.`,
    `In --ids: ${counted(theirs.ids, 'id')}${theirs.withoutId === 0 ? '' : `, ${counted(theirs.withoutId, 'line')} without an id`}.`,
    ...(read.withoutId === 0 ? [] : [`${counted(read.withoutId, 'record')} without a logId: not compared.`]),
    ...(early ? ['The period ends within the last closeDelay: more of its records may still become visible.'] : []),
    ...read.unproven.map(
      (window) =>
        `NOT PROVEN: ${rfc3339(window.from)} to ${rfc3339(window.to)} (${window.reason}): ${printable(window.message)}; more may be missing`,
    ),
  ];
  yield `${lines.join('\n')}\n`;
  yield* differences(tally, counts, 'UNKNOWN to the service (another period, another source, or not a record)', 'logId');
}

/** The first records of each kind, and how many there are. */
export function* differences(tally: Tally, counts: Found['counts'], unknown: string, name: string): Generator<string> {
  for (const kind of kinds) {
    const { ids, records } = counts[kind];
    yield `${kind === 'unknown' ? unknown : meanings[kind]}: ${grouped(records)}${ids === records ? '' : ` (${counted(ids, 'id')})`}\n`;
    let left = shown;
    for (const tallied of tally.of(kind)) {
      if ((left -= 1) < 0) break;
      yield `  ${name} ${lineOf(kind, tallied)}\n`;
    }
    if (ids > shown) yield `  and ${grouped(ids - shown)} more; --json shows all\n`;
  }
}

function lineOf(kind: Kind, { id, here, there, time }: Tallied): string {
  const at = time === null ? '' : `  ${rfc3339(time)}`;
  const times = kind === 'unknown' ? (there === 1 ? '' : `  ${there} times`) : here === 1 && there === 0 ? '' : `  ${there} of ${here}`;
  return `${printable(id)}${at}${times}`;
}

/** One object, written in chunks: the lists may be long. */
export function* jsonOf({ id, period, read, theirs, counts, tally }: Found): Generator<string> {
  const head = {
    source: id,
    from: rfc3339(period.from),
    to: rfc3339(period.to),
    complete: counts.missing.ids === 0 && read.unproven.length === 0,
    records: read.records,
    recordsWithoutId: read.withoutId,
    windows: read.windows,
    unproven: read.unproven.map((window) => ({ ...window, from: rfc3339(window.from), to: rfc3339(window.to) })),
    ids: theirs.ids,
    linesWithoutId: theirs.withoutId,
    counts: Object.fromEntries(kinds.map((kind) => [kind, counts[kind].records])),
  };
  yield JSON.stringify(head, null, 2).slice(0, -2);
  for (const kind of kinds) {
    yield `,\n  "${kind}": [`;
    let separator = '\n';
    for (const { id: logId, here, there, time } of tally.of(kind)) {
      const item = { logId, logTimestamp: time === null ? null : rfc3339(time), service: here, there };
      yield `${separator}    ${JSON.stringify(item)}`;
      separator = ',\n';
    }
    yield separator === '\n' ? ']' : '\n  ]';
  }
  yield '\n}\n';
}
