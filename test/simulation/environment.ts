/**
 * What a seed draws before anything runs: how the service counts and pages, how its records come to be seen, which faults there are and how
 * often, and how the daemon is set up. Each class of faults is off, rare or heavy, so that rare pairs meet.
 */
import type { Micros } from '../../src/model/time.ts';
import { Chance } from './chance.ts';

type Level = 'off' | 'rare' | 'heavy';

export interface Environment {
  readonly seed: number;
  /** True time at the beginning, ms since 1970. */
  readonly beginMs: number;
  /** How long faults last. */
  readonly safetyMs: number;
  readonly daemon: {
    readonly pollMs: number;
    readonly closeDelayMs: number;
    readonly agesMs: readonly number[];
    readonly pageSize: number | 'auto';
    /** How long before the beginning the ledger begins. */
    readonly historyMs: number;
    /** Pages of 4096 bytes that the state may use; undefined: enough. */
    readonly quotaPages: number | undefined;
    readonly retentionMs: number;
    /** Live polls reach back as far as records were measured to be out of order. */
    readonly measuresOverlap: boolean;
    /** Delivery loops reach the journal by messages, as in a separate thread. */
    readonly hasDeliveryThread: boolean;
  };
  readonly records: {
    readonly count: number;
    /** Share that comes in bursts. */
    readonly bursts: number;
    readonly lateness: Level;
    /** Records that come to be seen while the pages of their window are read. */
    readonly surprises: Level;
    readonly ties: Level;
    readonly edges: Level;
    readonly sameLogId: Level;
    /** Records that another one shares its whole identity with. */
    readonly collisions: boolean;
    readonly unreadable: Level;
    /** Whether a record without a readable time matches every query, or those around the time at which it was written. */
    readonly unreadableMatches: 'always' | 'its time';
    readonly wrongNode: Level;
    readonly padBytes: number;
    readonly purge: boolean;
  };
  /** What the credentials do not show for a while: a field of every record, or every record. Begun once there is what can tell. */
  readonly rights: 'whole' | 'fields' | 'rows';
  /** A field is shown again just after a page without it: before the daemon reads a reference record. */
  readonly returns: boolean;
  /** What a person adds to the ledger; undefined: nothing. */
  readonly history: HistoryEnvironment | undefined;
  readonly service: {
    readonly firstPage: number;
    readonly pageCap: number;
    readonly capChanges: Level;
    readonly admitsCap: boolean;
    readonly refuseAbove: number;
    /** A query with both times further apart is refused. */
    readonly widestMicros: Micros;
    /** What answers say they are: the page they are, the one that was asked for, or always the first. */
    readonly numbers: 'right' | 'asked' | 'first';
    readonly order: 'ascending' | 'ignored' | 'unstable ties';
    /** Rows that are counted, and taken out of pages until faults end. */
    readonly hidden: Level;
    readonly pastEnd: 'empty' | 'last' | '404';
    readonly lowerBound: 'included' | 'excluded';
    readonly upperBound: 'included' | 'excluded';
    readonly cutMicros: number;
    readonly total: 'true' | 'missing' | 'capped' | 'lagging' | 'served';
    readonly totalCap: number;
    readonly totalLagMs: number;
    readonly dates: 'right' | 'none' | 'a node ahead' | 'a node behind';
    readonly nodeOffMs: number;
    /** For a while every answer is dated ahead, until somebody sets the clock right; undefined: never. */
    readonly lead: LeadEnvironment | undefined;
    readonly latencyMs: number;
    readonly transport: Level;
    readonly unauthorized: Level;
    readonly cached: Level;
    readonly outages: Level;
  };
  readonly sinks: readonly SinkEnvironment[];
  /** What stands otherwise in the configuration of some lives; undefined: nothing. */
  readonly changes: ChangesEnvironment | undefined;
  /** Somebody who looks after the sinks; undefined: nobody. */
  readonly caretaker: CaretakerEnvironment | undefined;
  /** The source is not in the configuration of some lives, and comes back; undefined: it always is. */
  readonly absence: AbsenceEnvironment | undefined;
  readonly machine: {
    /** Effects between two kills in the mean. */
    readonly killEvery: number;
    /** Kills at moments that are worth it, and where. */
    readonly aimed: boolean;
    readonly powerCuts: number;
    readonly orderly: number;
    readonly skew: Level;
    /** ms by which the local clock is ahead at the beginning. */
    readonly aheadMs: number;
    readonly secondDaemon: boolean;
    readonly restored: boolean;
    /** Commits that take long. */
    readonly slowSync: Level;
  };
}

/** A person edits the configuration while the daemon is away. */
export interface ChangesEnvironment {
  /** `pollInterval`, `closeDelay` and `pageSize` change; `closeDelay` only to more, so that totals never lag longer. */
  readonly settings: boolean;
  /** A sink that is taken out, and whether it comes back, or is retired. */
  readonly sink: { readonly id: string; readonly end: 'back' | 'retired' } | undefined;
}

/** The whole service has a clock that is ahead, by less than suspends the source. */
interface LeadEnvironment {
  readonly ms: number;
  /** ms after the beginning. */
  readonly fromMs: number;
  readonly untilMs: number;
  /** What is written meanwhile is dated by that clock as well. */
  readonly isDated: boolean;
}

/** A source that is gone for a while: its ledger stands still, its journal is delivered. */
export interface AbsenceEnvironment {
  /** How long a life without it lasts unless it is killed before, ms in the mean. */
  readonly lastsMs: number;
  /** A person retires it before it comes back. */
  readonly isRetired: boolean;
}

/** A person who sends dead letters again, discards them, and has parts of the journal sent again. */
export interface CaretakerEnvironment {
  /** Between two visits, in the mean. */
  readonly everyMs: number;
}

/** History that a person asks for while faults are on, and what he does with it then. */
export interface HistoryEnvironment {
  /** When it is asked for, ms after the beginning. */
  readonly atMs: number;
  /** How long before the ledger it begins, and how long behind its begin it ends (less than 0: before), ms. */
  readonly beforeMs: number;
  readonly behindMs: number;
  /** Records that lie there, beside those of the run. */
  readonly records: number;
  /** Requests a second. */
  readonly rate: number | undefined;
  /** Only these sinks get it. */
  readonly sinks: readonly string[] | undefined;
  /**
   * One after another, each so many ms behind the one before it. `more`: a stretch that begins earlier and covers the first. `older`: one that
   * begins still earlier, once all that was asked for before is read.
   */
  readonly operations: readonly { readonly what: 'pause' | 'resume' | 'cancel' | 'more' | 'older'; readonly afterMs: number }[];
}

export type SinkKind = 'uids' | 'position' | 'plain';

export interface SinkEnvironment {
  readonly id: string;
  readonly kind: SinkKind;
  readonly format: 'ecs' | 'raw' | 'cef';
  readonly batchRecords: number;
  readonly waitMs: number;
  readonly latencyMs: number;
  readonly down: Level;
  readonly slow: Level;
  readonly busy: Level;
  readonly lost: Level;
  /** How many of a hundred records it refuses for good, and how it says so. */
  readonly refused: number;
  readonly refusal: 'named' | 'whole';
  readonly rollovers: Level;
  readonly oldPosition: boolean;
  /** Takes some messages of a batch, and wants the others again. */
  readonly partial: Level;
  /** Only records with this result are for it. */
  readonly filter: string | undefined;
  /** Ledger entries are for it too. */
  readonly ledger: boolean;
  /** It is the real sink `archive`, in place of a model. */
  readonly isArchive: boolean;
}

const second = 1_000;
const minute = 60 * second;
const day = 86_400 * second;
const levels = ['off', 'off', 'rare', 'heavy'] as const;

/** How likely a fault of a level is, where nothing else is said. */
export function probability(level: Level, rare: number, heavy: number): number {
  return level === 'off' ? 0 : level === 'rare' ? rare : heavy;
}

function heavyIf(condition: boolean, level: Level): Level {
  return condition ? 'heavy' : level;
}

function offIf(condition: boolean, level: Level): Level {
  return condition ? 'off' : level;
}

const purgeShare = 0.15;
/** Long enough for a daemon to measure the clock of the service and to close several windows. */
const measuredMs = 120 * second;

export function drawEnvironment(seed: number): Environment {
  const chance = new Chance(seed, 'environment');
  const level = (): Level => chance.pick(levels);
  const closeDelayMs = chance.pick([6, 10, 15, 20]) * second;
  const firstAge = closeDelayMs + chance.whole(10, 20) * second;
  const agesMs = [firstAge, firstAge + chance.whole(10, 20) * second, firstAge + chance.whole(25, 60) * second];
  // A day, or a bucket of ten minutes, ends while the simulation runs.
  const beginMs = Date.UTC(2026, 10, 20) + (chance.is(0.15) ? day - chance.whole(1, 180) * second : chance.whole(0, 86_000) * second);
  // Most runs are short: many faults in little time find more than much time does.
  const isShort = chance.is(0.7);
  const shortMs = (isShort ? chance.whole(20, 45) : chance.whole(40, 110)) * second;
  const total = isShort
    ? chance.pick(['true', 'true', 'missing', 'lagging'])
    : chance.pick(['true', 'true', 'missing', 'capped', 'lagging', 'served']);
  const isCapped = total === 'capped' || total === 'served';
  const dates = chance.pick(['right', 'right', 'right', 'none', 'a node ahead', 'a node behind'] as const);
  const lead = dates === 'right' ? drawLead(seed) : undefined;
  const aheadMs = dates === 'a node ahead' ? drawAhead(seed) : 0;
  // Long enough for windows to be counted for the last time by a clock that is ahead, and for records to come behind that.
  const leadMs = lead ? lead.untilMs + 15 * second : 0;
  const safetyMs = Math.max(shortMs, leadMs, aheadMs > 0 ? measuredMs : 0);
  const isQuota = !isShort && chance.is(0.1);
  const aimed = chance.is(0.5);
  const pageCap = chance.pick([7, 10, 20, 50, 1000]);
  const sink = (id: string, kind: SinkKind): SinkEnvironment => {
    const drawn = drawSink(id, kind);
    // A stream of its own: what it decides leaves all other draws as they were. A line format holds records only.
    const ledger = drawn.format !== 'cef' && new Chance(seed, `ledger ${id}`).is(0.5);
    const isArchive = kind === 'position' && changes?.sink?.id !== id && new Chance(seed, 'archive').is(0.3);
    if (!isArchive) return { ...drawn, ledger, isArchive };
    // An archive takes every entry, and has no older copy that it is restored from.
    return { ...drawn, format: 'raw', refused: 0, slow: 'off', oldPosition: false, ledger: true, isArchive };
  };
  const drawSink = (id: string, kind: SinkKind): Omit<SinkEnvironment, 'ledger' | 'isArchive'> => ({
    id,
    kind,
    format: chance.pick(['ecs', 'raw', 'raw', 'cef']),
    batchRecords: chance.pick([2, 5, 10, 25, 100]),
    waitMs: chance.pick([0, 200, 1_000, 3_000]),
    latencyMs: chance.pick([1, 20, 400]),
    down: isQuota ? 'heavy' : level(),
    slow: chance.pick(['off', 'off', 'off', 'rare', 'heavy']),
    busy: level(),
    lost: level(),
    // The percents that are left for dead letters are a page or two of so small a quota: they are held by unit tests.
    refused: chance.pick([0, 0, 3, 15]) * (isQuota ? 0 : 1),
    // One that keeps our position must not move it over a record whose dead letter is not kept yet: it refuses the request.
    refusal: kind === 'position' ? 'whole' : chance.pick(['named', 'whole']),
    rollovers: kind === 'uids' ? level() : 'off',
    oldPosition: kind === 'position' && chance.is(0.15),
    // One that keeps our position takes a batch whole or not at all.
    partial: kind === 'position' ? 'off' : drawPartial(seed, id),
    filter: chance.is(0.25) ? 'AccessDenied' : undefined,
  });
  // A stream of its own: what it decides leaves all other draws as they were.
  const shrinking = new Chance(seed, 'rights');
  const rights = shrinking.is(0.18) ? shrinking.pick(['fields', 'fields', 'rows'] as const) : 'whole';
  const isWhole = rights === 'whole';
  const returns = rights === 'fields' && shrinking.is(0.3);
  const isFields = rights === 'fields';
  const changes = isQuota ? undefined : drawChanges(seed);
  const drawn: Environment = {
    seed,
    beginMs,
    safetyMs,
    daemon: {
      pollMs: chance.pick([3, 5, 10]) * second,
      closeDelayMs,
      agesMs,
      pageSize: chance.pick(['auto', 'auto', 10, 40]),
      historyMs: (isShort ? chance.pick([0, 1]) : chance.pick([0, 1, 3, 12])) * minute,
      quotaPages: isQuota ? chance.whole(64, 70) : undefined,
      // Drawn all the same, so that the draws behind it stay as they are.
      retentionMs: [chance.pick([minute, 30 * day]), ...(changes?.sink ? [3 * second] : [])].reduce((a, b) => Math.min(a, b)),
      measuresOverlap: new Chance(seed, 'overlap').is(0.5),
      hasDeliveryThread: new Chance(seed, 'delivery thread').is(0.5),
    },
    records: {
      count: isCapped || isQuota ? chance.whole(120, 220) : isShort ? chance.whole(8, 50) : chance.whole(20, 140),
      bursts: isCapped ? 0.9 : chance.pick([0, 0.3, 0.9]),
      lateness: heavyIf(lead !== undefined, level()),
      surprises: level(),
      ties: level(),
      edges: level(),
      sameLogId: level(),
      collisions: chance.is(0.04),
      // What is no object has no field.
      unreadable: offIf(isFields, level()),
      unreadableMatches: chance.pick(['always', 'its time']),
      wrongNode: level(),
      padBytes: isQuota ? 1_500 : 0,
      // One cause at a time: a record that is deleted while it is not shown cannot be told from one that is only not shown.
      purge: chance.is(purgeShare) && isWhole,
    },
    rights,
    returns,
    history: isWhole ? drawHistory(seed, safetyMs) : undefined,
    service: {
      firstPage: chance.pick([0, 1]),
      // A page that is larger than the journal may be is never stored: the smallest quota of the configuration is 2,000 times what is drawn here.
      pageCap: isQuota ? Math.min(pageCap, 50) : pageCap,
      capChanges: pageCap <= 50 ? level() : 'off',
      admitsCap: chance.is(0.7),
      refuseAbove: chance.pick([Infinity, Infinity, 500, 100]),
      // So many windows more are no matter of faults: they would need room, and time behind the end of faults.
      widestMicros: isQuota || (isWhole && drawHistory(seed, safetyMs)) ? Infinity : drawWidest(seed),
      numbers: new Chance(seed, 'page numbers').pick(['right', 'right', 'right', 'right', 'right', 'right', 'asked', 'first'] as const),
      order: chance.pick(['ascending', 'ascending', 'ignored', 'unstable ties']),
      // One cause at a time, and only where a count is one: a total that lags lacks as many as are hidden, and no count shows either.
      hidden: offIf(!isWhole || isCapped || isQuota || total === 'lagging', drawHidden(seed)),
      pastEnd: chance.pick(['empty', 'last', '404']),
      lowerBound: chance.pick(['included', 'excluded']),
      upperBound: chance.pick(['included', 'excluded']),
      cutMicros: chance.pick([1, 1, 10_000, 1_000_000]),
      // Without a total no window is proven, and no reference record is known.
      total: isFields && total === 'missing' ? 'true' : total,
      totalCap: chance.whole(100, 110),
      // `closeDelay` must be longer (docs/guarantees.md).
      totalLagMs: chance.whole(1_000, closeDelayMs),
      dates,
      nodeOffMs: chance.pick([6, 40, 3_000, 90_000]) * second,
      lead,
      latencyMs: chance.pick([2, 20, 200, 1_500]),
      transport: level(),
      unauthorized: level(),
      cached: level(),
      outages: offIf(lead !== undefined, level()),
    },
    sinks: [sink('by-uid', 'uids'), sink('by-position', 'position'), sink('plain', 'plain')],
    changes,
    caretaker: isQuota ? undefined : drawCaretaker(seed),
    absence: isQuota ? undefined : drawAbsence(seed),
    machine: {
      // Each life measures the clock of the service before it closes a window.
      killEvery: Math.max(chance.pick([25, 60, 120, 250]), aheadMs > 0 ? 400 : lead ? 200 : 0),
      aimed,
      powerCuts: chance.pick([0, 0.3, 1]),
      orderly: chance.pick([0, 0.1, 0.3]),
      // Where no answer has a date the wall clock stands in for it: then it is right. Nor are both clocks ahead at once.
      skew: offIf(lead !== undefined, dates === 'none' ? 'off' : level()),
      aheadMs,
      secondDaemon: chance.is(0.1),
      restored: chance.is(0.15),
      slowSync: new Chance(seed, 'sync').pick(['off', 'off', 'off', 'rare', 'heavy']),
    },
  };
  // One cause at a time: what history lacks because it is deleted, or waits for room, could not be told from what it lacks by a fault.
  if (!drawn.records.purge && !isQuota) return drawn;
  return { ...drawn, history: undefined, service: { ...drawn.service, hidden: 'off' } };
}

/** In a share of seeds. */
function drawHidden(seed: number): Level {
  const chance = new Chance(seed, 'hidden');
  return chance.is(0.1) ? chance.pick(['rare', 'heavy']) : 'off';
}

/** In a share of seeds; padding is two seconds. */
function drawWidest(seed: number): Micros {
  const chance = new Chance(seed, 'widest');
  return chance.is(0.15) ? chance.pick([12, 22, 62]) * 1_000_000 : Infinity;
}

/** In a share of seeds: by less than the last recount age, by more, and by almost an hour. */
function drawLead(seed: number): LeadEnvironment | undefined {
  const chance = new Chance(seed, 'lead');
  if (!chance.is(0.08)) return undefined;
  const fromMs = chance.is(0.4) ? 0 : chance.between(0, 20 * second);
  const ms = chance.pick([30, 120, 600, 3_000]) * second;
  return { ms, fromMs, untilMs: fromMs + chance.between(30 * second, 90 * second), isDated: chance.is(0.3) };
}

/**
 * In half of the seeds. Windows are planned with the earlier of two clocks, so a local clock that is
 * right hides a bound that follows the node ahead. The source is suspended while the bound is more
 * than an hour later than the local clock: only a year hides nothing of a node that is 25 h ahead.
 */
function drawAhead(seed: number): number {
  const chance = new Chance(seed, 'local clock');
  return chance.is(0.5) ? chance.pick([2 * 3_600, 365 * 86_400]) * second : 0;
}

/** In a share of seeds. One cause at a time: what is read of history while less is shown may be too old to be read again. */
function drawHistory(seed: number, safetyMs: number): HistoryEnvironment | undefined {
  const chance = new Chance(seed, 'backfill');
  if (!chance.is(0.2)) return undefined;
  const acts = chance.pick([[], ['pause', 'resume'], ['pause', 'resume', 'cancel'], ['cancel'], ['more'], ['cancel', 'more']] as const);
  const last = new Chance(seed, 'older history').is(0.5) ? (['older'] as const) : [];
  return {
    atMs: chance.between(second, safetyMs * 0.4),
    beforeMs: chance.pick([15, 60, 200, 900]) * second + chance.whole(0, 999),
    behindMs: chance.pick([0, 0, 5, 30, -8]) * second,
    records: chance.whole(5, 40),
    rate: chance.is(0.25) ? chance.pick([0.5, 2]) : undefined,
    sinks: chance.is(0.25) ? ['by-uid', 'plain'] : undefined,
    operations: [...acts, ...last].map((what) => ({ what, afterMs: chance.distance(6 * second) })),
  };
}

/** In a share of seeds. */
function drawChanges(seed: number): ChangesEnvironment | undefined {
  const chance = new Chance(seed, 'changes');
  if (!chance.is(0.25)) return undefined;
  const settings = chance.is(0.5);
  const id = chance.pick(['by-uid', 'by-position', 'plain']);
  const end = chance.pick(['back', 'back', 'retired'] as const);
  return { settings, sink: settings && chance.is(0.5) ? undefined : { id, end } };
}

/** In a share of seeds. */
function drawAbsence(seed: number): AbsenceEnvironment | undefined {
  const chance = new Chance(seed, 'absence');
  if (!chance.is(0.12)) return undefined;
  return { lastsMs: chance.pick([2, 6, 20]) * second, isRetired: chance.is(0.3) };
}

/** In a share of seeds. */
function drawPartial(seed: number, sink: string): Level {
  const isDrawn = new Chance(seed, 'partial').is(0.2);
  return isDrawn ? new Chance(seed, `partial ${sink}`).pick(['off', 'rare', 'heavy']) : 'off';
}

/** In a share of seeds. */
function drawCaretaker(seed: number): CaretakerEnvironment | undefined {
  const chance = new Chance(seed, 'caretaker');
  return chance.is(0.25) ? { everyMs: chance.pick([1, 4]) * second } : undefined;
}
