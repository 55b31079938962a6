/**
 * The draws of a seed before its run: how the service counts and pages, when records become
 * visible, the faults and their frequency, and the settings of the daemon. Each class of faults is
 * off, rare or heavy, so that rare combinations occur.
 */
import type { Micros } from '../../src/model/time.ts';
import { Chance } from './chance.ts';

type Level = 'off' | 'rare' | 'heavy';

/** The id of the source that every seed has. */
export const firstSource = 'service';

export interface Environment {
  readonly seed: number;
  /** True time at the start, ms since 1970. */
  readonly beginMs: number;
  /** How long faults last. */
  readonly safetyMs: number;
  readonly daemon: {
    readonly pollMs: number;
    readonly closeDelayMs: number;
    readonly agesMs: readonly number[];
    readonly pageSize: number | 'auto';
    /** How long before the start of the run the ledger starts. */
    readonly historyMs: number;
    /** Limit of the state in pages of 4096 bytes; undefined: no practical limit. */
    readonly quotaPages: number | undefined;
    readonly retentionMs: number;
    /** The overlap of live polls follows the measured disorder of records. */
    readonly measuresOverlap: boolean;
  };
  readonly records: {
    readonly count: number;
    /** Share of records that arrive in bursts. */
    readonly bursts: number;
    readonly lateness: Level;
    /** Records that become visible while the pages of their window are read. */
    readonly surprises: Level;
    readonly ties: Level;
    readonly edges: Level;
    readonly sameLogId: Level;
    /** Two records may share their whole identity. */
    readonly collisions: boolean;
    readonly unreadable: Level;
    /**
     * A record without a readable time matches every query, or only queries around the time at
     * which it was written.
     */
    readonly unreadableMatches: 'always' | 'its time';
    readonly wrongNode: Level;
    readonly padBytes: number;
    readonly purge: boolean;
    /** Records with null in place of optional members, and of a part of their identity. */
    readonly nulls: Level;
    /** A few records have a date that no window can hold: of the year 1, of 1970, or of 9999. */
    readonly placeholders: boolean;
  };
  /**
   * The records or fields that the service hides while the credentials lack rights: none (`whole`), a
   * field of every record, or every record. The loss starts only when the daemon has enough data to
   * detect it.
   */
  readonly rights: 'whole' | 'fields' | 'rows';
  /** The field returns just after a page without it, before the daemon reads a reference record. */
  readonly returns: boolean;
  /** The history that an operator adds to the ledger; undefined: none. */
  readonly history: HistoryEnvironment | undefined;
  readonly service: {
    readonly firstPage: number;
    readonly pageCap: number;
    readonly capChanges: Level;
    readonly admitsCap: boolean;
    readonly refuseAbove: number;
    /** The service refuses a query whose two times are further apart. */
    readonly widestMicros: Micros;
    /** The page number in an answer: its real number, the requested one, always the first, or counted from another base. */
    readonly numbers: 'right' | 'asked' | 'first' | 'shifted';
    /** The answer to a page number before the first page. */
    readonly beforeFirst: 'refused' | 'first' | 'empty';
    /** The answer to a query without matches: a page with numbers, or no content. */
    readonly empties: 'page' | 'no content';
    /** For a while a gateway refuses every request, or answers it with a page of HTML. */
    readonly gateway: Level;
    /** Until faults end a gateway refuses every query with these times. */
    readonly refusedForm: 'none' | QueryForm;
    /** Until faults end the filter reads the times of queries in another zone; undefined: always UTC. */
    readonly zone: ZoneEnvironment | undefined;
    /** Until faults end no name server answers for the host: a request fails after a long wait. Never of the first source. */
    readonly hasDeadName: boolean;
    readonly order: 'ascending' | 'ignored' | 'unstable ties';
    /** Rows that totals count and pages omit until faults end. */
    readonly hidden: Level;
    readonly pastEnd: 'empty' | 'last' | '404';
    readonly lowerBound: 'included' | 'excluded';
    readonly upperBound: 'included' | 'excluded';
    readonly cutMicros: number;
    /** `items`: the number of records on the page. */
    readonly total: 'true' | 'missing' | 'capped' | 'lagging' | 'served' | 'items';
    readonly totalCap: number;
    readonly totalLagMs: number;
    readonly dates: 'right' | 'none' | 'a node ahead' | 'a node behind';
    readonly nodeOffMs: number;
    /**
     * For a while every answer has a date in the future, until the clock is corrected; undefined:
     * never.
     */
    readonly lead: LeadEnvironment | undefined;
    readonly latencyMs: number;
    readonly transport: Level;
    readonly unauthorized: Level;
    readonly cached: Level;
    readonly outages: Level;
  };
  readonly sinks: readonly SinkEnvironment[];
  /** Changes of the configuration between lives; undefined: none. */
  readonly changes: ChangesEnvironment | undefined;
  /** An operator who looks after the sinks; undefined: none. */
  readonly caretaker: CaretakerEnvironment | undefined;
  /**
   * The source is missing from the configuration of some lives, and returns; undefined: always
   * configured.
   */
  readonly absence: AbsenceEnvironment | undefined;
  /** Further sources of the same daemon. */
  readonly others: readonly OtherSource[];
  /** Answers of all services arrive at multiples of this, ms, so that several sources store at one moment; 0: at any moment. */
  readonly answersEveryMs: number;
  readonly machine: {
    /** Mean number of effects between two kills. */
    readonly killEvery: number;
    /** A life is killed after this time at the latest; undefined: no limit. */
    readonly lifeMs: number | undefined;
    /** Kills preferably between a delivery and its acknowledgement. */
    readonly aimed: boolean;
    readonly powerCuts: number;
    readonly orderly: number;
    readonly skew: Level;
    /** Offset of the local clock at the start, in ms ahead. */
    readonly aheadMs: number;
    readonly secondDaemon: boolean;
    readonly restored: boolean;
    /** Slow commits. */
    readonly slowSync: Level;
  };
}

/** A source with a separate service and records; it shares daemon, sinks and machine with the first. */
interface OtherSource extends Pick<Environment, 'seed' | 'records' | 'service'> {
  readonly id: string;
}

/** An operator edits the configuration while the daemon is down. */
export interface ChangesEnvironment {
  /**
   * `pollInterval`, `closeDelay` and `pageSize` change. `closeDelay` only grows, so that totals
   * never lag by more than it.
   */
  readonly settings: boolean;
  /** A sink removed from the configuration, and later restored or retired. */
  readonly sink: { readonly id: string; readonly end: 'back' | 'retired' } | undefined;
}

/** The times of a query: neither, the start only, or both. No query of the program has an end only. */
type QueryForm = 'no times' | 'start' | 'both times';

interface ZoneEnvironment {
  /** The zone minus UTC. */
  readonly offsetMicros: Micros;
  /** ms after the start. */
  readonly fromMs: number;
}

/** The clock of the whole service is ahead, but by too little to suspend the source. */
interface LeadEnvironment {
  readonly ms: number;
  /** ms after the start. */
  readonly fromMs: number;
  readonly untilMs: number;
  /** Records written in that time have timestamps of that clock too. */
  readonly isDated: boolean;
}

/**
 * A source missing from the configuration for a while: its ledger stands still, and its journal is
 * still delivered.
 */
export interface AbsenceEnvironment {
  /** Mean time without the source, in ms, unless a kill ends it earlier. */
  readonly lastsMs: number;
  /** An operator retires the source while it is missing; it returns later. */
  readonly isRetired: boolean;
}

/** An operator who retries and discards dead letters, and replays parts of the journal. */
export interface CaretakerEnvironment {
  /** Mean time between two actions of the operator. */
  readonly everyMs: number;
}

/**
 * A backfill that an operator requests while faults are on, and the operations on it that follow.
 */
export interface HistoryEnvironment {
  /** Time of the request, ms after the start. */
  readonly atMs: number;
  /**
   * How long before the start of the ledger the history starts, and how long after that start it
   * ends (negative: before it), ms.
   */
  readonly beforeMs: number;
  readonly behindMs: number;
  /** Number of records in that history, in addition to the records of the run. */
  readonly records: number;
  /** Requests per second. */
  readonly rate: number | undefined;
  /** Only these sinks receive the history. */
  readonly sinks: readonly string[] | undefined;
  /**
   * In this order, each so many ms after the previous one. `more`: a range that starts earlier and
   * contains the first one. `older`: a range that starts still earlier, requested once all earlier
   * ranges are read.
   */
  readonly operations: readonly { readonly what: 'pause' | 'resume' | 'cancel' | 'more' | 'older'; readonly afterMs: number }[];
}

export type SinkKind = 'uids' | 'position' | 'plain';

/**
 * How a receiver rejects a record: by its name; the whole request; with a reason that may be its own (a pipeline that fails); it ends the
 * connection there; or it drops the record on purpose, and says so.
 */
type Refusal = 'named' | 'whole' | 'pipeline' | 'ends' | 'drops';

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
  /** Percentage of records that the sink rejects permanently, and how it reports a rejection. */
  readonly refused: number;
  readonly refusal: Refusal;
  readonly rollovers: Level;
  readonly oldPosition: boolean;
  /** Accepts some messages of a batch, and requests a retry of the others. */
  readonly partial: Level;
  /** The sink receives only records with this result. */
  readonly filter: string | undefined;
  /** The sink receives ledger entries too. */
  readonly ledger: boolean;
  /** The real sink `archive` instead of a model. */
  readonly isArchive: boolean;
}

const second = 1_000;
const minute = 60 * second;
const day = 86_400 * second;
const levels = ['off', 'off', 'rare', 'heavy'] as const;

/** The probability of a fault at a level. */
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
/** Offsets of zones of the tz database, some with daylight saving. */
const zoneHours = [-11, -9.5, -5, -4, -3.5, 1, 2, 5.5, 5.75, 10.5, 13.75] as const;
/** Long enough for the daemon to measure the clock of the service and to close several windows. */
const measuredMs = 120 * second;

export function drawEnvironment(seed: number): Environment {
  const drawn = drawFirst(seed);
  return { ...drawn, ...drawOthers(drawn) };
}

/** The environment of another source, as its service and its records see it. */
export function environmentOf({ seed, records, service }: OtherSource, first: Environment): Environment {
  return {
    ...first,
    seed,
    records,
    service,
    rights: 'whole',
    returns: false,
    history: undefined,
    caretaker: undefined,
    absence: undefined,
  };
}

/** In a share of seeds: sources drawn by other seeds, adapted to the daemon and the clock of this seed. */
function drawOthers({ seed, daemon }: Environment): Pick<Environment, 'others' | 'answersEveryMs'> {
  const chance = new Chance(seed, 'other sources');
  // One cause at a time: with a small quota one source waits for the space of another.
  if (daemon.quotaPages !== undefined || !chance.is(0.25)) return { others: [], answersEveryMs: 0 };
  const others = Array.from({ length: chance.pick([1, 1, 2]) }, (_, i): OtherSource => {
    const drawn = drawFirst(chance.whole(1, 4_000_000_000));
    const { records, service } = drawn;
    const isCapped = service.total === 'capped' || service.total === 'served';
    return {
      id: `other-${i + 1}`,
      seed: drawn.seed,
      records: { ...records, count: Math.min(records.count, 60), padBytes: 0, purge: false },
      service: {
        ...service,
        // A total is cut only if a window holds more records than the cap.
        total: isCapped ? 'true' : service.total,
        totalLagMs: Math.min(service.totalLagMs, daemon.closeDelayMs),
        // Clock faults depend on the machine, which is drawn for the first source.
        dates: service.dates === 'a node behind' ? 'a node behind' : 'right',
        lead: undefined,
        hasDeadName: chance.is(0.3),
        // After a gap that is tried again a day later, narrow windows would take hours.
        widestMicros: Infinity,
      },
    };
  });
  return { others, answersEveryMs: chance.pick([0, 50, 500]) };
}

function drawFirst(seed: number): Environment {
  const chance = new Chance(seed, 'environment');
  const level = (): Level => chance.pick(levels);
  const closeDelayMs = chance.pick([6, 10, 15, 20]) * second;
  const firstAge = closeDelayMs + chance.whole(10, 20) * second;
  const agesMs = [firstAge, firstAge + chance.whole(10, 20) * second, firstAge + chance.whole(25, 60) * second];
  // In some seeds a day, and with it a bucket of ten minutes, ends during the run.
  const beginMs = Date.UTC(2026, 10, 20) + (chance.is(0.15) ? day - chance.whole(1, 180) * second : chance.whole(0, 86_000) * second);
  // Most runs are short: many faults in little time find more than a longer run does.
  const isShort = chance.is(0.7);
  const shortMs = (isShort ? chance.whole(20, 45) : chance.whole(40, 110)) * second;
  const total = isShort
    ? chance.pick(['true', 'true', 'missing', 'lagging'])
    : chance.pick(['true', 'true', 'missing', 'capped', 'lagging', 'served']);
  const isCapped = total === 'capped' || total === 'served';
  const dates = chance.pick(['right', 'right', 'right', 'none', 'a node ahead', 'a node behind'] as const);
  const lead = dates === 'right' ? drawLead(seed) : undefined;
  const aheadMs = dates === 'a node ahead' ? drawAhead(seed) : 0;
  // Long enough for the last recounts of windows by a clock that is ahead, and for records that
  // arrive later.
  const leadMs = lead ? lead.untilMs + 15 * second : 0;
  const safetyMs = Math.max(shortMs, leadMs, aheadMs > 0 ? measuredMs : 0);
  const isQuota = !isShort && chance.is(0.1);
  const aimed = chance.is(0.5);
  const pageCap = chance.pick([7, 10, 20, 50, 1000]);
  const sink = (id: string, kind: SinkKind): SinkEnvironment => {
    const drawn = drawSink(id, kind);
    // A separate stream: its draws change no others. A line format holds records only.
    const ledger = drawn.format !== 'cef' && new Chance(seed, `ledger ${id}`).is(0.5);
    const isArchive = kind === 'position' && changes?.sink?.id !== id && new Chance(seed, 'archive').is(0.3);
    const poison = kind === 'position' ? undefined : new Chance(seed, `poison of ${id}`).pick([undefined, 'pipeline', 'ends'] as const);
    const drops = kind !== 'position' && poison === undefined && new Chance(seed, `pipeline of ${id}`).is(0.3);
    const refusal = drops ? 'drops' : (poison ?? drawn.refusal);
    if (!isArchive) return { ...drawn, refusal, ledger, isArchive };
    // An archive receives every entry, and no older copy of it is restored.
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
    // The percentage of the quota reserved for dead letters is only a page or two here; unit tests
    // cover it.
    refused: chance.pick([0, 0, 3, 15]) * (isQuota ? 0 : 1),
    // A sink that stores our position must not move it past a record whose dead letter is not
    // stored yet: it rejects the request.
    refusal: kind === 'position' ? 'whole' : chance.pick(['named', 'whole']),
    rollovers: kind === 'uids' ? level() : 'off',
    oldPosition: kind === 'position' && chance.is(0.15),
    // A sink that stores our position accepts a batch as a whole or not at all.
    partial: kind === 'position' ? 'off' : drawPartial(seed, id),
    filter: chance.is(0.25) ? 'AccessDenied' : undefined,
  });
  // A separate stream: its draws change no others.
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
      // Always drawn, so that later draws stay the same.
      retentionMs: [chance.pick([minute, 30 * day]), ...(changes?.sink ? [3 * second] : [])].reduce((a, b) => Math.min(a, b)),
      measuresOverlap: new Chance(seed, 'overlap').is(0.5),
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
      // Only an object has fields.
      unreadable: offIf(isFields, level()),
      unreadableMatches: chance.pick(['always', 'its time']),
      wrongNode: level(),
      padBytes: isQuota ? 1_500 : 0,
      // One cause at a time: a deleted record looks the same as a hidden one.
      purge: chance.is(purgeShare) && isWhole,
      nulls: new Chance(seed, 'null members').pick(['off', 'off', 'rare', 'heavy'] as const),
      placeholders: false,
    },
    rights,
    returns,
    history: isWhole ? drawHistory(seed, safetyMs) : undefined,
    service: {
      firstPage: chance.pick([0, 1]),
      // A page larger than the journal is never stored; the smallest quota of the configuration is
      // 2,000 times the quota here.
      pageCap: isQuota ? Math.min(pageCap, 50) : pageCap,
      capChanges: pageCap <= 50 ? level() : 'off',
      admitsCap: chance.is(0.7),
      refuseAbove: chance.pick([Infinity, Infinity, 500, 100]),
      // The many additional windows are no fault, but they need space in the journal, and time
      // after faults end.
      widestMicros: isQuota || (isWhole && drawHistory(seed, safetyMs)) ? Infinity : drawWidest(seed),
      numbers: new Chance(seed, 'page numbers').pick(['right', 'right', 'right', 'right', 'asked', 'first', 'shifted', 'shifted'] as const),
      beforeFirst: new Chance(seed, 'page before the first').pick(['refused', 'first', 'empty'] as const),
      empties: new Chance(seed, 'empty pages').pick(['page', 'page', 'no content'] as const),
      gateway: offIf(lead !== undefined, new Chance(seed, 'gateway').pick(['off', 'off', 'rare', 'heavy'] as const)),
      refusedForm: 'none',
      zone: undefined,
      hasDeadName: false,
      order: chance.pick(['ascending', 'ascending', 'ignored', 'unstable ties']),
      // One cause at a time, and only with exact totals: a lagging total can omit as many records
      // as are hidden, and then no count shows it.
      hidden: offIf(!isWhole || isCapped || isQuota || total === 'lagging', drawHidden(seed)),
      pastEnd: chance.pick(['empty', 'last', '404']),
      lowerBound: chance.pick(['included', 'excluded']),
      upperBound: chance.pick(['included', 'excluded']),
      cutMicros: chance.pick([1, 1, 10_000, 1_000_000]),
      // Without a total no window is proven, and no reference record is known.
      total: isFields && total === 'missing' ? 'true' : total,
      totalCap: chance.whole(100, 110),
      // Less than `closeDelay`, as docs/guarantees.md requires.
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
    others: [],
    answersEveryMs: 0,
    machine: {
      // Each life measures the clock of the service before it closes a window.
      killEvery: Math.max(chance.pick([25, 60, 120, 250]), aheadMs > 0 ? 400 : lead ? 200 : 0),
      lifeMs: aheadMs > 0 || lead ? undefined : drawLife(seed),
      aimed,
      powerCuts: chance.pick([0, 0.3, 1]),
      orderly: chance.pick([0, 0.1, 0.3]),
      // If responses have no Date, the local clock replaces the clock of the service, so it must be
      // right. The two clocks are never both ahead.
      skew: offIf(lead !== undefined, dates === 'none' ? 'off' : level()),
      aheadMs,
      secondDaemon: chance.is(0.1),
      restored: chance.is(0.15),
      slowSync: new Chance(seed, 'sync').pick(['off', 'off', 'off', 'rare', 'heavy']),
    },
  };
  // One cause at a time: history that lacks records because of deletion or a full journal looks the
  // same as history that lacks them by a fault.
  if (!drawn.records.purge && !isQuota) return withOddity(drawn);
  return { ...drawn, history: undefined, service: { ...drawn.service, hidden: 'off' } };
}

/** In a share of seeds the service has one trait that only a comparison of its answers shows. One cause at a time. */
function withOddity(drawn: Environment): Environment {
  const { seed, rights, service } = drawn;
  const chance = new Chance(seed, 'oddity');
  const isExact = service.total !== 'capped' && service.total !== 'served';
  if (rights !== 'whole' || service.lead || !isExact || !chance.is(0.3)) return drawn;
  const odd = (more: Partial<Environment['service']>): Environment => ({ ...drawn, service: { ...service, hidden: 'off', ...more } });
  const what = chance.pick(['zone', 'zone', 'form', 'items', 'placeholders'] as const);
  switch (what) {
    case 'zone': {
      const zone = { offsetMicros: chance.pick(zoneHours) * 3_600_000_000, fromMs: chance.is(0.7) ? 0 : chance.between(0, 30 * second) };
      // Windows must become due before faults end: each life measures the clock of the service first.
      const machine = { ...drawn.machine, killEvery: Math.max(drawn.machine.killEvery, 400), lifeMs: undefined };
      return { ...odd({ zone }), safetyMs: Math.max(drawn.safetyMs, measuredMs), machine };
    }
    case 'form':
      // The oracle takes a query with both times for that of a window.
      return odd({ refusedForm: chance.pick(drawn.history ? ['no times', 'both times'] : ['no times', 'start', 'both times']) });
    case 'items':
      return odd({ total: 'items' });
    case 'placeholders':
      return { ...drawn, records: { ...drawn.records, placeholders: true } };
  }
}

/** Nonzero in a share of seeds. */
function drawLife(seed: number): number | undefined {
  const chance = new Chance(seed, 'lives');
  return chance.is(0.1) ? chance.whole(3, 10) * second : undefined;
}

/** Nonzero in a share of seeds. */
function drawHidden(seed: number): Level {
  const chance = new Chance(seed, 'hidden');
  return chance.is(0.1) ? chance.pick(['rare', 'heavy']) : 'off';
}

/** Limited in a share of seeds; padding is two seconds. */
function drawWidest(seed: number): Micros {
  const chance = new Chance(seed, 'widest');
  return chance.is(0.15) ? chance.pick([12, 22, 62]) * 1_000_000 : Infinity;
}

/** In a share of seeds: by less than the last recount age, by more, or by almost an hour. */
function drawLead(seed: number): LeadEnvironment | undefined {
  const chance = new Chance(seed, 'lead');
  if (!chance.is(0.08)) return undefined;
  const fromMs = chance.is(0.4) ? 0 : chance.between(0, 20 * second);
  const ms = chance.pick([30, 120, 600, 3_000]) * second;
  return { ms, fromMs, untilMs: fromMs + chance.between(30 * second, 90 * second), isDated: chance.is(0.3) };
}

/**
 * Nonzero in half of the seeds. The earlier of the two clocks limits the plan of windows. So with a
 * correct local clock, a bound that wrongly follows the node ahead would have no effect. A bound more
 * than an hour later than the local clock suspends the source. So only with a local clock a year ahead
 * would a bound that follows a node 25 h ahead have an effect.
 */
function drawAhead(seed: number): number {
  const chance = new Chance(seed, 'local clock');
  return chance.is(0.5) ? chance.pick([2 * 3_600, 365 * 86_400]) * second : 0;
}

/**
 * In a share of seeds. One cause at a time: history read while fields or records are hidden may be
 * too old for a second read.
 */
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

/** Nonzero in a share of seeds. */
function drawPartial(seed: number, sink: string): Level {
  const isDrawn = new Chance(seed, 'partial').is(0.2);
  return isDrawn ? new Chance(seed, `partial ${sink}`).pick(['off', 'rare', 'heavy']) : 'off';
}

/** In a share of seeds. */
function drawCaretaker(seed: number): CaretakerEnvironment | undefined {
  const chance = new Chance(seed, 'caretaker');
  return chance.is(0.25) ? { everyMs: chance.pick([1, 4]) * second } : undefined;
}
