/**
 * One script that is ended at every one of its effects: chance leaves out points, this leaves out none. Its environment is fixed, with every
 * fault off or rare; a run that is not killed counts the effects, and then there is one run for each: the daemon is killed exactly there. At
 * every fifth the power goes as well, and at pairs that are drawn it is killed twice, so that what mends a first end is ended too.
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
 * 200 records in two minutes and a quarter, the first of them history; a day ends meanwhile. The daemon ends in order now and then and goes on with
 * other settings, once without one of its sinks; a person adds history, stops and continues it, cuts it off and adds more.
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
    hasDeliveryThread: true,
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
    sink('plain', 'plain', { filter: 'AccessDenied', format: 'cef' }),
  ],
  changes: { settings: true, sink: { id: 'plain', end: 'back' } },
  absence: undefined,
  caretaker: undefined,
  machine: {
    killEvery: Infinity,
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

/** The scene to its end, without a kill: it says how many effects there are. */
export const undisturbed: Script = { ends: [], isPowerCut: false };

const powerCutEvery = 5;

/** Every run: each effect, every fifth with a power cut, and `pairs` of two ends. With `every` 20, each 20th of all that. */
export function* scripts(effects: number, pairs: number, every: number): Generator<Script, undefined> {
  for (let at = 1; at <= effects; at += every) yield { ends: [at], isPowerCut: false };
  for (let at = 1; at <= effects; at += every * powerCutEvery) yield { ends: [at], isPowerCut: true };
  const chance = new Chance(scene.seed, 'pairs');
  for (let pair = 0; pair < pairs / every; pair += 1) {
    const first = chance.whole(1, effects);
    // One half hits what mends the first end, the other half anything.
    const behind = chance.is(0.5) ? chance.whole(1, 120) : chance.whole(1, effects);
    yield { ends: [first, first + behind], isPowerCut: chance.is(0.3) };
  }
}

/** What repeats one of them, and shows everything that happens in it. */
export function commandOf({ ends, isPowerCut }: Script): string {
  return `npm run simulate -- --every-effect --only ${ends.join(',')}${isPowerCut ? ' --power-cut' : ''}`;
}
