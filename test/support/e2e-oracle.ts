/**
 * The expected result, computed from the records of the service: the records in each sink, and their
 * number in each window. A second implementation of the specification, without code of the program.
 */
import { closeSync, existsSync, fstatSync, openSync, readFileSync, readSync } from 'node:fs';
import type { LedgerSource } from './e2e-daemon.ts';
import { until, patience } from './e2e-place.ts';
import type { Service } from './e2e-service.ts';

/**
 * The differences between the lines of a file and the expected records; all lists are empty if the
 * file holds each record exactly once.
 */
export interface Difference {
  readonly missing: readonly string[];
  readonly twice: readonly string[];
  readonly unknown: readonly string[];
  /** Text that is not a complete line of the format. */
  readonly torn: readonly string[];
}

export const exactlyOnce: Difference = { missing: [], twice: [], unknown: [], torn: [] };

/** The lines of a file. @throws Error if the last one does not end with a line break */
export function linesOf(file: string): string[] {
  const text = readFileSync(file, 'utf8');
  const lines = text.split('\n');
  if (lines.pop() !== '') throw new Error(`"${file}" ends in the middle of a line`);
  return lines;
}

/** The exact text of the record in an ECS line; undefined for another line. */
export function originalOf(line: string): string | undefined {
  try {
    const { event } = JSON.parse(line) as { event?: { original?: unknown } };
    return typeof event?.original === 'string' ? event.original : undefined;
  } catch {
    return undefined;
  }
}

/** Compares the records in the lines of a file with the records of the service. */
export function compare(lines: readonly string[], truth: readonly string[], recordOf: (line: string) => string | undefined): Difference {
  const counts = new Map<string, number>();
  for (const record of truth) counts.set(record, 0);
  const unknown: string[] = [];
  const torn: string[] = [];
  for (const line of lines) {
    const record = recordOf(line);
    if (record === undefined) torn.push(line);
    else {
      const count = counts.get(record);
      if (count === undefined) unknown.push(record);
      else counts.set(record, count + 1);
    }
  }
  const missing = [...counts].filter(([, count]) => count === 0).map(([record]) => record);
  const twice = [...counts].filter(([, count]) => count > 1).map(([record]) => record);
  return { missing: few(missing), twice: few(twice), unknown: few(unknown), torn: few(torn) };
}

/** Waits until each ECS file holds every record that the service shows now. @throws Error if a file holds more */
export async function delivered(service: Service, files: readonly string[], ms = patience): Promise<void> {
  const truth = await service.truth();
  const counts = files.map(lineCounter);
  let found: Difference[] = [];
  let lines: number[] = [];
  await until(
    () => `${truth.length} records in ${files.join(', ')}: ${lines.join(', ')} lines, ${JSON.stringify(found).slice(0, 2_000)}`,
    ms,
    () => {
      lines = counts.map((count) => count());
      // To compare long files at each question would take the CPU time that the daemon needs.
      if (lines.some((count) => count < truth.length)) return undefined;
      found = files.map((file) => compare(wholeLinesOf(file), truth, originalOf));
      return found.every(({ missing }) => missing.length === 0) ? true : undefined;
    },
  );
  for (const difference of found)
    if ([difference.twice, difference.unknown, difference.torn].some((list) => list.length > 0))
      throw new Error(`more than once, unknown or torn: ${JSON.stringify(difference).slice(0, 2_000)}`);
}

/** Counts the line breaks of a growing file; a call reads what is new. */
function lineCounter(file: string): () => number {
  const part = Buffer.alloc(1 << 20);
  let [lines, position] = [0, 0];
  return () => {
    if (!existsSync(file)) return 0;
    const descriptor = openSync(file, 'r');
    if (fstatSync(descriptor).size < position) [lines, position] = [0, 0];
    for (let length = -1; length !== 0; position += length) {
      length = readSync(descriptor, part, 0, part.length, position);
      for (let at = part.indexOf(10); at !== -1 && at < length; at = part.indexOf(10, at + 1)) lines += 1;
    }
    closeSync(descriptor);
    return lines;
  };
}

/** The complete lines of a file that is being written. */
function wholeLinesOf(file: string): string[] {
  return readFileSync(file, 'utf8').split('\n').slice(0, -1);
}

/** The number of records in each second since 1970, to count the records of a range. */
export class Seconds {
  readonly #counts = new Map<number, number>();
  readonly #onEdge = new Map<number, number>();
  first = Infinity;
  last = -Infinity;

  /**
   * `logTimestamp` is UTC without an offset, with any number of digits. Records
   * without one belong to no second.
   */
  constructor(truth: readonly string[]) {
    for (const text of truth) {
      const [, stamp, fraction] = /"logTimestamp":"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)([^"]*)"/.exec(text) ?? [];
      if (stamp === undefined) continue;
      const second = Date.parse(`${stamp}Z`) / 1000;
      this.#counts.set(second, (this.#counts.get(second) ?? 0) + 1);
      if (!/[1-9]/.test(fraction ?? '')) this.#onEdge.set(second, (this.#onEdge.get(second) ?? 0) + 1);
      this.first = Math.min(this.first, second);
      this.last = Math.max(this.last, second);
    }
  }

  /** Records in [from, until), whole seconds since 1970. */
  between(from: number, until: number): number {
    let sum = 0;
    for (let second = from; second < until; second += 1) sum += this.#counts.get(second) ?? 0;
    return sum;
  }

  /** Records in [from, until]: the matches of a service that includes both bounds. */
  matching(from: number, until: number): number {
    return this.between(from, until) + (this.#onEdge.get(until) ?? 0);
  }
}

/**
 * The faults in the ledger of a source: windows with holes or overlaps from `start` on, in a wrong
 * state, or with another number of records than the service has. Empty without a fault.
 * @param start   start of the range, whole seconds since 1970
 * @param states  the permitted states and reasons of a window, by its bounds in seconds
 */
export function faultsOf(
  ledger: LedgerSource,
  seconds: Seconds,
  start: number,
  states: (from: number, until: number) => readonly string[] = () => ['final', 'proven'],
): string[] {
  const faults: string[] = [];
  let at = start;
  for (const window of ledger.windows) {
    const from = secondOf(window.from);
    const until = secondOf(window.to);
    const name = `${window.from} to ${window.to}`;
    if (from !== at) faults.push(`window ${name} does not begin at ${new Date(at * 1000).toISOString()}`);
    if (until <= from) faults.push(`window ${name} is empty or turned round`);
    at = until;
    const state = window.reason === null ? window.state : `${window.state} ${window.reason}`;
    const allowed = states(from, until);
    if (!allowed.includes(state)) faults.push(`window ${name} is ${state}, not ${allowed.join(' or ')}`);
    const truth = seconds.between(from, until);
    if (window.records !== truth) faults.push(`window ${name} owns ${window.records}, the service has ${truth} there`);
    for (const [sink, { complete, deadLetters }] of Object.entries(window.sinks)) {
      if (from <= seconds.last && (!complete || deadLetters !== 0)) faults.push(`window ${name} is not complete at ${sink}`);
    }
  }
  if (secondOf(ledger.readUntil) !== at)
    faults.push(`the ledger reached ${ledger.readUntil}, its windows ${new Date(at * 1000).toISOString()}`);
  if (at <= seconds.last) faults.push(`the ledger ends at ${ledger.readUntil}, before the last record`);
  const firstGap = ledger.windows.find(({ state }) => state === 'gap');
  // Nothing is complete before a window is proven.
  const completeUntil = firstGap && secondOf(firstGap.from) === start ? null : (firstGap?.from ?? ledger.readUntil);
  if (ledger.completeUntil !== completeUntil)
    faults.push(`it is complete until ${ledger.completeUntil ?? 'null'}, not ${completeUntil ?? 'null'}`);
  return faults.slice(0, 20);
}

function secondOf(time: string): number {
  const ms = Date.parse(time);
  if (ms % 1000 !== 0) throw new Error(`${time} is not a whole second`);
  return ms / 1000;
}

function few(records: readonly string[]): string[] {
  return records.length <= 5 ? [...records] : [...records.slice(0, 5), `… ${records.length} in all`];
}
