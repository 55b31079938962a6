/**
 * One script ended at every one of its effects: random kills miss points, this misses none. The
 * environment is fixed, with every fault off or rare. A run without a kill counts the effects; then
 * one run per effect kills the daemon exactly there. Every fifth run cuts the power too. Further
 * runs kill at a random pair of effects, so that the recovery from the first kill is interrupted
 * too.
 */
import { Chance } from './chance.ts';
import type { Environment, SinkEnvironment, SinkKind } from './environment.ts';
import type { Script } from './simulate.ts';

const seconds = 1_000;

const sink = (id: string, kind: SinkKind, more: Partial<SinkEnvironment>): SinkEnvironment => ({
  ...{
    id,
    kind,
    format: 'raw',
    batchRecords: 25,
    waitMs: 1_000,
    latencyMs: 20,
    filter: undefined,
    ledger: more.format !== 'cef',
    isArchive: false,
  },
  ...{
    down: 'off',
    slow: 'off',
    busy: 'rare',
    lost: 'rare',
    refused: 3,
    refusal: 'named',
    rollovers: 'off',
    oldPosition: false,
    partial: 'off',
  },
  ...more,
});

/**
 * 200 records in two minutes and a quarter, the first of them history; a day ends in that time. The
 * daemon stops and restarts now and then with other settings, once without one of its sinks. An
 * operator adds history, pauses and resumes it, cuts it off and adds more. A real archive receives
 * every entry: the daemon can end before and after each of its files.
 */
export const scene: Environment = {
  seed: 9,
  beginMs: Date.UTC(2026, 10, 20, 23, 59, 10),
  safetyMs: 75 * seconds,
  daemon: {
    pollMs: 5 * seconds,
    closeDelayMs: 6 * seconds,
    agesMs: [16 * seconds, 28 * seconds, 45 * seconds],
    pageSize: 'auto',
    historyMs: 60 * seconds,
    quotaPages: undefined,
    retentionMs: 30 * seconds,
    measuresOverlap: true,
  },
  records: {
    count: 160,
    bursts: 0.3,
    lateness: 'rare',
    surprises: 'rare',
    ties: 'rare',
    edges: 'rare',
    sameLogId: 'rare',
    collisions: false,
    unreadable: 'rare',
    unreadableMatches: 'its time',
    wrongNode: 'rare',
    padBytes: 0,
    purge: false,
    nulls: 'off',
    placeholders: false,
  },
  rights: 'whole',
  returns: false,
  history: {
    atMs: 20 * seconds,
    beforeMs: 45 * seconds,
    behindMs: 0,
    records: 40,
    rate: 1,
    sinks: ['by-uid', 'by-position'],
    operations: [
      { what: 'pause', afterMs: 500 },
      { what: 'resume', afterMs: 4 * seconds },
      { what: 'cancel', afterMs: 3 * seconds },
      { what: 'more', afterMs: 3 * seconds },
    ],
  },
  service: {
    firstPage: 1,
    pageCap: 20,
    capChanges: 'off',
    admitsCap: true,
    refuseAbove: Infinity,
    widestMicros: Infinity,
    numbers: 'right',
    beforeFirst: 'refused',
    empties: 'page',
    gateway: 'off',
    refusedForm: 'none',
    zone: undefined,
    hasDeadName: false,
    order: 'ascending',
    hidden: 'off',
    pastEnd: 'empty',
    lowerBound: 'included',
    upperBound: 'excluded',
    cutMicros: 1,
    total: 'true',
    totalCap: 0,
    totalLagMs: 0,
    dates: 'right',
    nodeOffMs: 0,
    lead: undefined,
    latencyMs: 20,
    transport: 'rare',
    unauthorized: 'rare',
    cached: 'rare',
    outages: 'off',
  },
  sinks: [
    sink('by-uid', 'uids', { rollovers: 'rare', lost: 'heavy' }),
    sink('by-position', 'position', { refusal: 'whole' }),
    sink('archive', 'position', { refused: 0, isArchive: true, waitMs: 5_000 }),
    sink('plain', 'plain', { filter: 'AccessDenied', format: 'cef' }),
  ],
  changes: { settings: true, sink: { id: 'plain', end: 'back' } },
  absence: undefined,
  others: [],
  answersEveryMs: 0,
  caretaker: undefined,
  machine: {
    killEvery: Infinity,
    lifeMs: undefined,
    aimed: false,
    powerCuts: 0,
    orderly: 1,
    skew: 'off',
    aheadMs: 0,
    secondDaemon: false,
    restored: false,
    slowSync: 'off',
  },
};

/** The scene without a kill; it counts the effects. */
export const undisturbed: Script = { ends: [], isPowerCut: false };

const powerCutEvery = 5;

/**
 * Every run: each effect, every fifth with a power cut, and `pairs` of two kills. With `every` 20,
 * each 20th of these.
 */
export function* scripts(effects: number, pairs: number, every: number): Generator<Script, undefined> {
  for (let at = 1; at <= effects; at += every) yield { ends: [at], isPowerCut: false };
  for (let at = 1; at <= effects; at += every * powerCutEvery) yield { ends: [at], isPowerCut: true };
  const chance = new Chance(scene.seed, 'pairs');
  for (let pair = 0; pair < pairs / every; pair += 1) {
    const first = chance.whole(1, effects);
    // One half hits the recovery from the first kill, the other half any effect.
    const behind = chance.is(0.5) ? chance.whole(1, 120) : chance.whole(1, effects);
    yield { ends: [first, first + behind], isPowerCut: chance.is(0.3) };
  }
}

/** The command that repeats one script, with its trace. */
export function commandOf({ ends, isPowerCut }: Script): string {
  return `npm run simulate -- --every-effect --only ${ends.join(',')}${isPowerCut ? ' --power-cut' : ''}`;
}
