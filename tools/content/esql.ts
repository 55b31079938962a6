/**
 * Detection rules as queries of ES|QL, with functions that Elasticsearch 8.15 has; a list of accounts needs LOOKUP JOIN of 8.18.
 *
 * A query sees the events that arrived within the reach of the rule (`from`), and counts by event time, each record once.
 *
 * Alert suppression needs a paid licence. Without it, a query that only counts raises an alert in each run of a burst. So a query also says
 * what a run ten minutes ago saw, from the events that had arrived then, and fires if that run would not have fired. Runs come every five
 * minutes, so a burst is an alert in two runs, and a run that starts five minutes late loses none: better twice than never. A burst that
 * continues is an alert again in each period of the suppression.
 */
import { suppressionOf } from '../../src/detections/evaluate.ts';
import type { Condition, DetectionOf, Rule } from '../../src/detections/rule.ts';

export const auditPattern = 'logs-dpas.audit-*';
export const ledgerPattern = 'logs-dpas.ledger-*';

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;
/** Events that arrive later are not counted. */
const latest = day;
/** Runs every 5 minutes. */
const interval = 5 * minute;
const sinceLastRun = 2 * interval;

/** Of a rule that only counts what arrived, ms. */
export const countedReachOf = ({ window }: { readonly window: number }): number => window + interval;

/** How long ago the oldest event of a query may have arrived, ms. */
export function reachOf({ detect }: Rule): number {
  switch (detect.kind) {
    case 'single':
      return 2 * interval;
    case 'baseline':
      return detect.history + detect.window + latest + sinceLastRun;
    case 'first-seen':
      return detect.history + interval;
    case 'silence':
      return day;
    default:
      return countedReachOf(detect) + sinceLastRun;
  }
}

/** How old an event may be, by its own time, ms: late, and at the start of a window. */
export const ageOf = (window: number): number => (window <= hour ? latest : latest + window);

/** A duration in the words of ES|QL. @param ms at least a minute */
function span(ms: number): string {
  const [count, unit] = ms % day === 0 ? [ms / day, 'day'] : ms % hour === 0 ? [ms / hour, 'hour'] : [ms / minute, 'minute'];
  return `${count} ${unit}${count === 1 ? '' : 's'}`;
}

const literal = (text: string): string => JSON.stringify(text);
const present = (fields: readonly string[]): readonly string[] => fields.map((field) => `${field} IS NOT NULL`);
const then = `NOW() - ${span(sinceLastRun)}`;
const arrived = `Esql.arrived >= ${then}`;
const isEarly = `event.ingested <= ${then}`;
/** Whether a period began since the run ten minutes ago. @param ms the period */
const isNewPeriod = (ms: number): string => `DATE_TRUNC(${span(ms)}, NOW()) > ${then}`;

function conditionOf({ fields, differ }: Condition): string {
  const parts = Object.entries(fields).map(([field, values]) => {
    if (values.includes('*')) return `${field} IS NOT NULL`;
    return values.length === 1 ? `${field} == ${literal(values[0] ?? '')}` : `${field} IN (${values.map(literal).join(', ')})`;
  });
  return [...parts, ...(differ ? [`${differ[0]} != ${differ[1]}`] : [])].join(' AND ');
}

function whereOf(where: readonly Condition[]): string {
  return where.length === 1 && where[0] ? conditionOf(where[0]) : `(${where.map((one) => `(${conditionOf(one)})`).join(' OR ')})`;
}

/** Fields that an alert names beside its group. */
const named = ['user.id', 'user.name', 'user.email', 'host.name', 'source.ip'];
const ofUser = ['user.name', 'user.email'];
const fileNames = 'Esql.file_name_values';
/** Several files may have the same name, and a file may have none. */
const fileName = 'COALESCE(file.name, dpas.payload.id)';
const fileIds = 'files';
const who = `CONCAT(${['user.name', 'user.email', 'user.id', 'host.name', 'TO_STRING(source.ip)'].map((field) => `COALESCE(${field}, "-")`).join(', ", ", ')})`;
/** Who took a step of a sequence: name, mail, id, host and address. */
const takersOf = ({ name }: { readonly name: string }): string => `Esql.${name}_by_values`;
/** Without the tab that separates joined values. */
const untabbed = (value: string): string => `REPLACE(${value}, "\\t", " ")`;

function columnsOf(group: readonly string[]): readonly (readonly [column: string, field: string])[] {
  const files = group.includes('dpas.payload.id')
    ? ([['file.name', fileName]] as const)
    : ([
        [fileNames, fileName],
        [fileIds, 'dpas.payload.id'],
      ] as const);
  return [...named.filter((field) => !group.includes(field)).map((field) => [field, field] as const), ...files];
}

/** Collects what an alert names. */
const collect = (group: readonly string[]): readonly string[] => columnsOf(group).map(([column, field]) => `${column} = VALUES(${field})`);
/** Joins what rows of the same group collected. */
const collectAgain = (group: readonly string[]): readonly string[] => columnsOf(group).map(([column]) => `${column} = VALUES(${column})`);

/** One name of a user or file of the group; ten of others, and the number of the remaining files. */
function lastCommands(group: readonly string[], takers: readonly string[] = []): readonly string[] {
  const columns = [...columnsOf(group).map(([column]) => column), ...takers].filter((column) => column !== fileIds);
  const isOne = (column: string): boolean => (group.includes('user.id') ? ofUser.includes(column) : false) || column === 'file.name';
  const more = columns.includes(fileNames)
    ? [`Esql.file_name_more = CASE(MV_COUNT(${fileIds}) > MV_COUNT(${fileNames}), MV_COUNT(${fileIds}) - MV_COUNT(${fileNames}), 0)`]
    : [];
  const short = columns.map((column) => (isOne(column) ? `${column} = MV_FIRST(${column})` : `${column} = MV_SLICE(${column}, 0, 9)`));
  return [
    `EVAL ${[...short, ...more].join(', ')}`,
    `KEEP ${[...group, ...columns.filter((column) => !column.startsWith('Esql.')), 'Esql.*'].join(', ')}`,
  ];
}

const joined = (commands: readonly string[]): string => commands.join('\n| ');
const from = (pattern: string): string => `FROM ${pattern}`;
const stats = (columns: readonly string[], by: readonly string[]): string => `STATS ${columns.join(', ')} BY ${by.join(', ')}`;
const times = ['Esql.started = MIN(@timestamp)', 'Esql.ended = MAX(@timestamp)', 'Esql.arrived = MAX(event.ingested)'];
const timesAgain = ['Esql.started = MIN(Esql.started)', 'Esql.ended = MAX(Esql.ended)', 'Esql.arrived = MAX(Esql.arrived)'];

/**
 * Each event is in two buckets of twice the window, one window apart, so that one of them contains each burst completely.
 * @param ms  the window
 */
function buckets(ms: number): readonly string[] {
  const [step, half] = [span(2 * ms), span(ms)];
  return [
    `EVAL bucket = MV_APPEND(DATE_TRUNC(${step}, @timestamp), DATE_TRUNC(${step}, @timestamp + ${half}) - ${half})`,
    'MV_EXPAND bucket',
  ];
}

/** Copies of each event for windows that end now, half a window ago and a window ago, so that late events count too. */
function shifted(ms: number): readonly string[] {
  const shifts = [0, 0.5, 1].map((part) => (part * ms) / 1_000);
  return [`EVAL age = DATE_DIFF("seconds", @timestamp, NOW()), shift = [${shifts.join(', ')}]`, 'MV_EXPAND shift', 'WHERE age >= shift'];
}

/** @throws Error for a kind that has another form */
export function esqlOf({ detect }: Rule): string {
  switch (detect.kind) {
    case 'count':
      return bursts(detect, 'dpas.uid');
    case 'distinct':
      return bursts(detect, detect.distinct);
    case 'baseline':
      return aboveAverage(detect);
    case 'distance':
      return farApart(detect);
    case 'first-seen':
      return firstSeen(detect);
    case 'silence':
      return silence(detect);
    case 'sequence':
      return detect.across ? across(detect, detect.across) : sequence(detect);
    case 'single':
      return outsideList(detect);
  }
}

function bursts(detect: DetectionOf<'count' | 'distinct'>, counted: string): string {
  const { where, group, window, threshold } = detect;
  // The older ones are those that only the run ten minutes ago saw.
  const isSeen = `event.ingested > NOW() - ${span(countedReachOf(detect))}`;
  return joined([
    from(auditPattern),
    `WHERE ${[whereOf(where), ...present(group), `@timestamp >= NOW() - ${span(ageOf(window))}`].join(' AND ')}`,
    ...buckets(window),
    stats(
      [
        `Esql.counted = COUNT_DISTINCT(CASE(${isSeen}, ${counted}, NULL))`,
        `early = COUNT_DISTINCT(CASE(${isEarly}, ${counted}, NULL))`,
        ...times,
        ...collect(group),
      ],
      [...group, 'bucket'],
    ),
    `WHERE Esql.counted >= ${threshold} AND ${arrived}`,
    stats(['Esql.counted = MAX(Esql.counted)', 'early = MAX(early)', ...timesAgain, ...collectAgain(group)], group),
    `WHERE early < ${threshold} OR ${isNewPeriod(suppressionOf(detect))}`,
    ...lastCommands(group),
  ]);
}

function aboveAverage(detect: DetectionOf<'baseline'>): string {
  const { where, group, window, threshold, distinct, history, factor } = detect;
  const [recent, past, ago] = [window / 1_000, (window + history) / 1_000, sinceLastRun / 1_000];
  const isRecent = `age < shift + ${recent}`;
  // Without a division, which rounds integers.
  const isAbove = (counted: string, before: string): string =>
    `${counted} >= ${threshold} AND ${counted} * ${history / window} > ${factor} * ${before}`;
  const onlyRecent = (field: string): string => `CASE(${isRecent}, ${field}, NULL)`;
  return joined([
    from(auditPattern),
    `WHERE ${[whereOf(where), ...present(group), `@timestamp >= NOW() - ${span(history + window + latest)}`].join(' AND ')}`,
    ...shifted(window),
    stats(
      [
        `Esql.counted = COUNT_DISTINCT(${onlyRecent(distinct)})`,
        `Esql.before = COUNT_DISTINCT(CASE(age >= shift + ${recent} AND age < shift + ${past}, dpas.uid, NULL))`,
        `early = COUNT_DISTINCT(CASE(age >= shift + ${ago} AND age < shift + ${recent + ago} AND ${isEarly}, ${distinct}, NULL))`,
        `early_before = COUNT_DISTINCT(CASE(age >= shift + ${recent + ago} AND age < shift + ${past + ago} AND ${isEarly}, dpas.uid, NULL))`,
        `Esql.started = MIN(${onlyRecent('@timestamp')})`,
        `Esql.ended = MAX(${onlyRecent('@timestamp')})`,
        `Esql.arrived = MAX(${onlyRecent('event.ingested')})`,
        ...columnsOf(group).map(([column, field]) => `${column} = VALUES(${onlyRecent(field)})`),
      ],
      [...group, 'shift'],
    ),
    `WHERE ${isAbove('Esql.counted', 'Esql.before')}`,
    `EVAL early = CASE(${isAbove('early', 'early_before')}, 1, 0)`,
    stats(
      ['Esql.counted = MAX(Esql.counted)', 'Esql.before = MIN(Esql.before)', 'early = MAX(early)', ...timesAgain, ...collectAgain(group)],
      group,
    ),
    // Old events leave the average without an arrival.
    `WHERE early == 0 OR (${isNewPeriod(suppressionOf(detect))} AND ${arrived})`,
    ...lastCommands(group),
  ]);
}

/**
 * Pairs of stays: the events of a group at one place within an hour, from the first to the last. Two stays in the same hour are farther
 * apart than one travels in an hour. VALUES takes no points in older stacks, but their texts, here to a tenth of a degree.
 */
function farApart(detect: DetectionOf<'distance'>): string {
  const { where, group, window, km, kmPerHour } = detect;
  if (km < kmPerHour) throw new Error('ES|QL compares the times of stays of an hour: a shorter way needs shorter stays');
  const place = 'source.geo.location';
  const ofStay = (name: string): string =>
    `"${['start', 'end', 'arrived', 'early_start', 'early_end', 'place'].map((part) => `%{${name}_${part}}`).join(';')}"`;
  const at = (column: string): string => `TO_DATETIME(${column})`;
  const isRecent = (column: string): string => `${at(column)} >= ${then}`;
  const secondsOf = (end: string, start: string): string => `DATE_DIFF("seconds", ${at(end)}, ${at(start)})`;
  const isTooFar = (seconds: string): string => `Esql.kilometres * 3600 > ${kmPerHour} * ${seconds} AND ${seconds} < ${window / 1_000}`;
  // A time that no event has is no time.
  const early = (column: string): string => `COALESCE(TO_STRING(${column}), "-")`;
  return joined([
    from(auditPattern),
    `WHERE ${[whereOf(where), ...present([...group, place].filter((field) => !(field in (where[0]?.fields ?? {})))), `@timestamp >= NOW() - ${span(ageOf(window))}`].join(' AND ')}`,
    `EVAL place = REPLACE(TO_STRING(${place}), "([.][0-9])[0-9]+", "$1"), hour = DATE_TRUNC(1 hour, @timestamp)`,
    stats(
      [
        ...times,
        `early_start = MIN(CASE(${isEarly}, @timestamp, NULL))`,
        `early_end = MAX(CASE(${isEarly}, @timestamp, NULL))`,
        ...collect(group),
      ],
      [...group, 'place', 'hour'],
    ),
    `EVAL stay = CONCAT(${['TO_STRING(Esql.started)', 'TO_STRING(Esql.ended)', 'TO_STRING(Esql.arrived)', early('early_start'), early('early_end'), 'place'].join(', ";", ')})`,
    stats(['stay = VALUES(stay)', 'places = COUNT_DISTINCT(place)', 'Esql.arrived = MAX(Esql.arrived)', ...collectAgain(group)], group),
    `WHERE places > 1 AND ${arrived}`,
    'EVAL other = stay',
    'MV_EXPAND stay',
    'MV_EXPAND other',
    `DISSECT stay ${ofStay('stay')}`,
    `DISSECT other ${ofStay('other')}`,
    'WHERE stay_place != other_place AND stay_start <= other_start',
    `EVAL Esql.kilometres = ST_DISTANCE(TO_GEOPOINT(stay_place), TO_GEOPOINT(other_place)) / 1000, seconds = ${secondsOf('stay_end', 'other_start')}, early_seconds = ${secondsOf('stay_early_end', 'other_early_start')}, place = MV_APPEND(stay_place, other_place)`,
    `WHERE Esql.kilometres > ${km} AND ${isTooFar('seconds')}`,
    `EVAL early = CASE(${isTooFar('early_seconds')}, 1, 0), fresh = CASE(${isRecent('stay_arrived')} OR ${isRecent('other_arrived')}, 1, 0)`,
    stats(
      [
        'early = MAX(early)',
        'fresh = MAX(fresh)',
        'Esql.kilometres = MAX(Esql.kilometres)',
        'Esql.place_values = VALUES(place)',
        `Esql.started = MIN(${at('stay_start')})`,
        `Esql.ended = MAX(${at('other_end')})`,
        ...collectAgain(group),
      ],
      group,
    ),
    `WHERE fresh == 1 AND (early == 0 OR ${isNewPeriod(suppressionOf(detect))})`,
    ...lastCommands(group),
  ]);
}

/** What arrived since the last run is new, and what arrived before it is known. */
function firstSeen({ where, group, of, history, known }: DetectionOf<'first-seen'>): string {
  const isNew = `event.ingested > ${then}`;
  const onlyNew = (field: string): string => `CASE(${isNew}, ${field}, NULL)`;
  const values = of.map((field, i) => ({ field, known: `known_${i}` }));
  return joined([
    from(auditPattern),
    `WHERE ${[whereOf(where), ...present(group), `@timestamp >= NOW() - ${span(history + latest)}`].join(' AND ')}`,
    `EVAL fresh = ${of.length === 1 ? (of[0] ?? '') : `CONCAT(${of.map(untabbed).join(', "\\t", ')})`}`,
    stats(
      [
        `begun = MIN(CASE(${isEarly}, @timestamp, NULL))`,
        ...values.map((each) => `${each.known} = VALUES(CASE(${isEarly}, ${untabbed(each.field)}, NULL))`),
        `fresh = VALUES(CASE(${isNew} AND @timestamp >= NOW() - ${span(latest)}, fresh, NULL))`,
        `Esql.started = MIN(${onlyNew('@timestamp')})`,
        `Esql.ended = MAX(${onlyNew('@timestamp')})`,
        ...columnsOf(group).map(([column, field]) => `${column} = VALUES(${onlyNew(field)})`),
      ],
      group,
    ),
    `WHERE begun <= NOW() - ${span(known)} AND fresh IS NOT NULL`,
    'MV_EXPAND fresh',
    `DISSECT fresh "${of.map((field) => `%{${field}}`).join('\\t')}"`,
    `WHERE ${values.map((each) => isMissing(each.known, each.field)).join(' AND ')}`,
    stats(
      [
        'Esql.started = MIN(Esql.started)',
        'Esql.ended = MAX(Esql.ended)',
        ...of.map((field) => `Esql.${field.replaceAll('.', '_')}_values = VALUES(${field})`),
        ...collectAgain(group),
      ],
      group,
    ),
    ...lastCommands(group),
  ]);
}

/** Whether the values of a column lack that of another: it is one more. */
const isMissing = (list: string, value: string): string =>
  `MV_COUNT(MV_DEDUPE(MV_APPEND(COALESCE(${list}, ""), ${value}))) > MV_COUNT(COALESCE(${list}, ""))`;

function silence({ where, group, window }: DetectionOf<'silence'>): string {
  return joined([
    from(ledgerPattern),
    `WHERE ${[whereOf(where), `@timestamp >= NOW() - ${span(day)}`].join(' AND ')}`,
    stats(['Esql.newest = MAX(@timestamp)'], group),
    // A silence may have begun while no rule ran.
    `WHERE Esql.newest < NOW() - ${span(window)} AND (Esql.newest >= NOW() - ${span(window + sinceLastRun)} OR ${isNewPeriod(window)})`,
    `KEEP ${[...group, 'Esql.*'].join(', ')}`,
  ]);
}

/** The first time of the first step, the last time of the last one, and each time of the steps between. */
function sequence(detect: DetectionOf<'sequence'>): string {
  const { group, window, steps } = detect;
  const [first, last] = [steps[0], steps.at(-1)];
  const between = steps.slice(1, -1);
  if (!first || !last || between.length > 1 || steps.some(({ times: repeated }) => repeated > 1))
    throw new Error('ES|QL says sequences of two or three steps, each of them once');
  const isStep = (where: readonly Condition[], field: string): string => `CASE(${whereOf(where)}, ${field}, NULL)`;
  const any = steps
    .map(({ where }) => whereOf(where))
    .map((one) => (one.startsWith('(') ? one : `(${one})`))
    .join(' OR ');
  const width = (window + sinceLastRun) / 1_000;
  const takers = steps.map(takersOf);
  const isEarlyStep = (where: readonly Condition[], field: string): string => `CASE(${whereOf(where)} AND ${isEarly}, ${field}, NULL)`;
  const wasEarly =
    between.length === 0
      ? 'early_started < early_ended'
      : `early_started < Esql.between AND Esql.between < early_ended AND MV_COUNT(MV_DEDUPE(MV_APPEND(early_between, TO_STRING(Esql.between)))) == MV_COUNT(early_between)`;
  return joined([
    from(auditPattern),
    `WHERE ${[`(${any})`, ...present(group), `@timestamp >= NOW() - ${span(ageOf(window))}`].join(' AND ')}`,
    ...shifted(window),
    `WHERE age < shift + ${width}`,
    `EVAL who = ${who}`,
    stats(
      [
        `Esql.started = MIN(${isStep(first.where, '@timestamp')})`,
        ...between.map(({ where }) => `Esql.between = VALUES(${isStep(where, '@timestamp')})`),
        `Esql.ended = MAX(${isStep(last.where, '@timestamp')})`,
        'Esql.arrived = MAX(event.ingested)',
        `early_started = MIN(${isEarlyStep(first.where, '@timestamp')})`,
        ...between.map(({ where }) => `early_between = VALUES(${isEarlyStep(where, 'TO_STRING(@timestamp)')})`),
        `early_ended = MAX(${isEarlyStep(last.where, '@timestamp')})`,
        ...collect(group),
        ...steps.map((step) => `${takersOf(step)} = VALUES(${isStep(step.where, 'who')})`),
      ],
      [...group, 'shift'],
    ),
    `WHERE Esql.started < Esql.ended AND ${arrived}`,
    ...(between.length === 0 ? [] : ['MV_EXPAND Esql.between', 'WHERE Esql.started < Esql.between AND Esql.between < Esql.ended']),
    `EVAL early = CASE(${wasEarly}, 1, 0)`,
    stats(['early = MAX(early)', ...timesAgain, ...collectAgain(group), ...takers.map((column) => `${column} = VALUES(${column})`)], group),
    `WHERE early == 0 OR ${isNewPeriod(suppressionOf(detect))}`,
    ...lastCommands(group, takers),
  ]);
}

/** Who took the last step of a sequence, once for each group: the texts keep time, people and places of a step together. */
function across(detect: DetectionOf<'sequence'>, { by, distinct, threshold }: NonNullable<DetectionOf<'sequence'>['across']>): string {
  const { group, window, steps } = detect;
  const [first, last] = steps;
  if (!first || !last || steps.length > 2 || by !== 'user.id') throw new Error('ES|QL counts the users of the last of two steps');
  const width = (window + sinceLastRun) / 1_000;
  const takers = takersOf(first);
  const others = named.filter((field) => field !== by);
  const textOf = (field: string): string => untabbed(`COALESCE(${field === 'source.ip' ? `TO_STRING(${field})` : field}, "")`);
  // The id is the last, and therefore may have a tab.
  const taken = `CONCAT(${['TO_STRING(@timestamp)', 'TO_STRING(event.ingested)', ...others.map(textOf), by].join(', "\\t", ')})`;
  const again = (columns: readonly string[]): readonly string[] => columns.map((column) => `${column} = VALUES(${column})`);
  return joined([
    from(auditPattern),
    `WHERE (${whereOf(first.where)} OR ${whereOf(last.where)}) AND ${[...present([...new Set([...group, by])]), `@timestamp >= NOW() - ${span(ageOf(window))}`].join(' AND ')}`,
    ...shifted(window),
    `WHERE age < shift + ${width}`,
    `EVAL taken = CASE(${whereOf(last.where)}, ${taken}, NULL), who = ${who}`,
    stats(
      [
        `Esql.started = MIN(CASE(${whereOf(first.where)}, @timestamp, NULL))`,
        `early_started = MIN(CASE(${whereOf(first.where)} AND ${isEarly}, @timestamp, NULL))`,
        'taken = VALUES(taken)',
        'Esql.arrived = MAX(event.ingested)',
        `file.name = MV_FIRST(VALUES(${fileName}))`,
        `${takers} = VALUES(CASE(${whereOf(first.where)}, who, NULL))`,
      ],
      [...group, 'shift'],
    ),
    'MV_EXPAND taken',
    `DISSECT taken "${['at', 'seen', ...others, by].map((field) => `%{${field}}`).join('\\t')}"`,
    `EVAL Esql.ended = TO_DATETIME(at), ${others.map((field) => `${field} = CASE(${field} == "", NULL, ${field})`).join(', ')}`,
    'WHERE Esql.started < Esql.ended',
    stats(
      [
        `Esql.counted = COUNT_DISTINCT(${distinct})`,
        `early = COUNT_DISTINCT(CASE(TO_DATETIME(seen) <= ${then} AND early_started < Esql.ended, ${distinct}, NULL))`,
        ...timesAgain,
        `${fileNames} = VALUES(file.name)`,
        `${fileIds} = VALUES(dpas.payload.id)`,
        ...again([...others, takers]),
      ],
      [by, 'shift'],
    ),
    `WHERE Esql.counted >= ${threshold} AND ${arrived}`,
    stats(['Esql.counted = MAX(Esql.counted)', 'early = MAX(early)', ...timesAgain, ...collectAgain([by]), ...again([takers])], [by]),
    `WHERE early < ${threshold} OR ${isNewPeriod(suppressionOf(detect))}`,
    ...lastCommands([by], [takers]),
  ]);
}

/** Events of listed accounts at other hours, or on other hosts, than the list permits. Without aggregation: Kibana knows each event by its _id. */
function outsideList({ where }: DetectionOf<'single'>): string {
  const [condition] = where;
  if (condition?.outside === undefined || where.length > 1) throw new Error('this rule on single records has a form in KQL');
  const clock = 'DATE_EXTRACT("hour_of_day", @timestamp)';
  return joined([
    `${from(auditPattern)} METADATA _id, _version, _index`,
    `WHERE ${conditionOf(condition)} AND user.id IS NOT NULL AND @timestamp >= NOW() - ${span(latest)}`,
    `LOOKUP JOIN ${lookupIndexOf(condition.outside)} ON user.id`,
    `EVAL clock = ${clock}`,
    'EVAL is_early_or_late = CASE(from_hour IS NULL OR to_hour IS NULL, false, from_hour <= to_hour, clock < from_hour OR clock >= to_hour, clock < from_hour AND clock >= to_hour)',
    `EVAL is_elsewhere = CASE(hosts IS NULL, false, host.hostname IS NULL, true, ${isMissing('hosts', 'host.hostname')})`,
    'WHERE is_early_or_late OR is_elsewhere',
    'KEEP _id, _version, _index, @timestamp, event.code, event.ingested, user.id, user.name, user.email, host.name, host.hostname, source.ip, file.name, dpas.payload.id',
  ]);
}

/** The index of a list of accounts. */
export const lookupIndexOf = (list: string): string => `dpas-${list}`;
