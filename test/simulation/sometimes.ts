/**
 * The states that a campaign must have reached: a rule that was never at stake was not tested. Each has the count that 2,000 seeds must show
 * at least; a shorter campaign counts them all the same and asks for none.
 */

/** By the name of the state: how often 2,000 seeds must reach it. */
export const sometimesLeast = {
  'page drift inside a proven window': 200,
  'tie across a page boundary': 1_000,
  'record exactly on an edge, bound excluded': 100,
  'late record found at the first age': 20,
  'late record found at the second age': 100,
  'late record found at the last age': 100,
  'window of one second': 10,
  'cap changed half-way': 50,
  '401 half-way through a window': 10,
  'total lagged, then proven': 20,
  'gap opened, then closed': 100,
  'total a multiple of the page size': 100,
  'kill between append and next page': 150,
  'kill between taking and acknowledging': 1_000,
  'kill between commit at the sink and ours': 100,
  'kill during recovery': 100,
  'dead letter found by halving': 100,
  // The quotas that are drawn are not reached any more since runs are short: counted, and not asked for until they are drawn anew.
  'quota reached and left': 0,
  'rolled-back state blocked': 20,
  'second daemon refused': 20,
  'kill while history is read': 100,
  'history read to its end': 100,
  'history cut off': 40,
  'orphaned sink holds pruning': 20,
  'pruned behind a retired sink': 20,
  'commit that took seconds': 100,
  'hold entered and left': 20,
  'hold while rights were less': 20,
  'witness still there': 3,
  'window vanished': 0,
  'window accepted': 0,
} as const;

export type State = keyof typeof sometimesLeast;

export class Sometimes {
  readonly counts: Partial<Record<State, number>> = {};

  count(state: State, times = 1): void {
    this.counts[state] = (this.counts[state] ?? 0) + times;
  }
}
