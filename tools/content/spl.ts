/**
 * Detection rules as searches of Splunk. A search selects events by the time of their arrival, and counts by the time of the event, each
 * record once. The results have the names of CIM that the app sets (props.conf). Throttling joins the results of following runs to one alert.
 */
import { newFor, suppressionOf } from '../../src/detections/evaluate.ts';
import type { Condition, DetectionOf, Rule } from '../../src/detections/rule.ts';
import { isOneDenial } from './rules.ts';

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;
/** Events that arrive later are not counted. */
const latest = day;

/** A rule that reads weeks runs each hour, the others every five minutes. */
export const intervalOf = ({ detect }: Rule): number => (isLong(detect.kind) ? hour : 5 * minute);
const isLong = (kind: string): boolean => kind === 'baseline' || kind === 'first-seen';

/** How old an event may be by its own time, ms: late, and at the start of a window. */
export function ageOf({ detect }: Rule): number {
  switch (detect.kind) {
    case 'single':
    case 'silence':
      return latest;
    case 'baseline':
      return detect.history + detect.window + latest;
    case 'first-seen':
      return detect.history;
    default:
      return detect.window <= hour ? latest : latest + detect.window;
  }
}

/** The fields whose values throttle, and for how long, ms. */
export function throttleOf({ detect }: Rule): { readonly fields: readonly string[]; readonly period: number } {
  return { fields: detect.kind === 'single' ? ['alert_key'] : groupOf(detect).map(nameOf), period: suppressionOf(detect) };
}

/** The fields of ECS that each alert has one value of. */
export const groupOf = (detect: Rule['detect']): readonly string[] =>
  detect.kind === 'sequence' && detect.across ? [detect.across.by] : detect.group;

const names: Readonly<Record<string, string>> = {
  'user.id': 'user_id',
  'dpas.payload.id': 'object_id',
  'file.uid': 'owner_id',
  'host.hostname': 'src_host',
  'source.ip': 'src',
  tags: 'tags{}',
};
/** The name of a field of ECS in the app. */
const nameOf = (field: string): string => names[field] ?? field;
/** A field in an expression: a name with a dot is quoted. */
const operand = (field: string): string => (/^\w+$/.test(nameOf(field)) ? nameOf(field) : `'${nameOf(field)}'`);
const quoted = (field: string): string => (/^\w+$/.test(nameOf(field)) ? nameOf(field) : text(nameOf(field)));
const text = (value: string): string => JSON.stringify(value);
const seconds = (ms: number): number => ms / 1_000;
const pipe = (...commands: readonly string[]): string => commands.filter((command) => command !== '').join(' | ');

export function splOf(rule: Rule): string {
  const { detect } = rule;
  switch (detect.kind) {
    case 'single':
      return single(rule, detect);
    case 'count':
      return bursts(rule, detect, 'count');
    case 'distinct':
      return bursts(rule, detect, `dc(${nameOf(detect.distinct)})`);
    case 'baseline':
      return aboveAverage(rule, detect);
    case 'first-seen':
      return firstSeen(rule, detect);
    case 'distance':
      return farApart(rule, detect);
    case 'sequence':
      return sequence(rule, detect);
    case 'silence':
      return silence(rule, detect);
  }
}

/** The conditions as terms of the first search. Two fields are compared later. */
function terms(where: readonly Condition[]): string {
  const all = where.map(({ fields }) =>
    Object.entries(fields)
      .map(([field, values]) => {
        const name = field === 'user.id' ? 'user_id' : field === 'tags' ? 'tags{}' : field;
        return values.includes('*') ? `${name}=*` : values.length === 1 ? `${name}=${text(values[0] ?? '')}` : `${name} IN (${values.map(text).join(', ')})`;
      })
      .join(' '),
  ); // prettier-ignore
  return all.length === 1 ? (all[0] ?? '') : `(${all.map((one) => `(${one})`).join(' OR ')})`;
}

/** The conditions as an expression. */
function expression(where: readonly Condition[]): string {
  const all = where.map(({ fields, differ }) =>
    [
      ...Object.entries(fields).map(([field, values]) => `in(${operand(field)}, ${values.map(text).join(', ')})`),
      ...(differ ? [`${operand(differ[0])} != ${operand(differ[1])}`] : []),
    ].join(' AND '),
  );
  return all.length === 1 ? (all[0] ?? '') : all.map((one) => `(${one})`).join(' OR ');
}

/** The events of a rule, each once, without those that its lists except. @param reach  how long ago an event may have arrived, ms */
function source({ dataset, exceptions }: Rule, search: string, reach?: number): string {
  const earliest = reach === undefined ? '' : `_index_earliest=-${reach / minute}m@m `;
  const macro = dataset === 'ledger' ? '`dpas_ledger_index`' : '`dpas_index`';
  const lists = Object.entries(exceptions).map(
    ([field, list]) =>
      `| lookup local=true ${lookupOf(list)} ${keyOf(list)} AS ${quoted(field)} OUTPUT ${keyOf(list)} AS excepted | where isnull(excepted)`,
  );
  return [`${macro} ${earliest}_index_latest=@m ${search} \`dpas_dedup\``, ...lists].join(' ');
}

/** The lookup of a list of exceptions or accounts, and its key. */
const lookupOf = (list: string): string => `dpas_${list.replaceAll('-', '_')}`;
const keyOf = (list: string): string => ({ offices: 'address', 'known-providers': 'provider' })[list] ?? 'user_id';

const ofUser = ['user', 'user_name', 'user_email'];
/** Who took a step of a sequence: name, mail, id, host and address. */
const who = ['user_name', 'user_email', 'user_id', 'src_host', 'src'].map((field) => `coalesce(${field}, "-")`).join(' . ", " . ');
const takersOf = ({ name }: { readonly name: string }): string => `${name}_by`;

/** What an alert names beside its group: each once, or ten and how many more. */
function columnsOf(group: readonly string[]): readonly (readonly [column: string, field: string])[] {
  const fields = [...(group.includes('user.id') ? ofUser : ['user']), 'src', 'src_host', 'object'];
  // Several files may have the same name.
  return [
    ...fields.map((field) => [field, field] as const),
    ...(group.includes('dpas.payload.id') ? [] : [[fileIds, 'object_id'] as const]),
  ];
}
const fileIds = 'object_ids';
const collect = (group: readonly string[], isCounted = (field: string): string => field): string =>
  columnsOf(group)
    .map(([column, field]) => `values(${isCounted(field)}) AS ${column}`)
    .join(' ');
/** Joins what rows of the same group collected, and the same of other columns. */
const collectAgain = (group: readonly string[], others: readonly string[] = []): string =>
  [...columnsOf(group).map(([column]) => column), ...others].map((column) => `values(${column}) AS ${column}`).join(' ');

function shortened(group: readonly string[], others: readonly string[] = []): string {
  const isOne = (field: string): boolean =>
    (group.includes('user.id') && ofUser.includes(field)) || (field === 'object' && group.includes('dpas.payload.id'));
  const columns = [...columnsOf(group).map(([column]) => column), ...others].filter((column) => column !== fileIds);
  const users = isOne('user') ? [] : ['more_users=if(mvcount(user) > 10, mvcount(user) - 10, 0)'];
  // An index behind the last value makes the result null.
  const first = (field: string): string =>
    isOne(field) ? `mvindex(${field}, 0)` : `if(mvcount(${field}) > 10, mvindex(${field}, 0, 9), ${field})`;
  const files = isOne('object')
    ? []
    : [`more_objects=if(mvcount(${fileIds}) > mvcount(object), mvcount(${fileIds}) - mvcount(object), 0)`, `${fileIds}=${first(fileIds)}`];
  return `eval ${[...users, ...columns.map((field) => `${field}=${first(field)}`), ...files].join(', ')}`;
}

const times = 'min(_time) AS started max(_time) AS ended';
const timesAgain = 'min(started) AS started max(ended) AS ended';
const readable = 'convert timeformat="%F %T" ctime(started) ctime(ended)';
const by = (group: readonly string[]): string => `BY ${group.map(nameOf).join(' ')}`;

function single(rule: Rule, { where, group }: DetectionOf<'single'>): string {
  const list = where[0]?.outside;
  const key = group.map(nameOf).join(' . ":" . ');
  // A column severity takes the place of the one that the notable's parameters give: that of the record (dpas_severities).
  const columns =
    rule.dataset === 'ledger'
      ? '_time event.action event.reason event.start event.end dpas.ledger.source dest'
      : `_time user user_id user_name user_email src src_host signature_id signature object object_id${isOneDenial(rule) ? ' severity' : ''}`;
  return pipe(
    source(rule, terms(where), 10 * minute),
    list === undefined ? '' : outside(list),
    `eval alert_key=coalesce(${key}, id, _time)`,
    `table ${columns} alert_key`,
  );
}

/** Events of listed accounts at other hours (UTC), or on other hosts, than the list permits. */
function outside(list: string): string {
  return pipe(
    `lookup local=true ${lookupOf(list)} user_id OUTPUT user_id AS listed from_hour to_hour hosts`,
    'where isnotnull(listed)',
    'eval hour_utc=floor(_time / 3600) % 24, is_within=case(isnull(from_hour) OR isnull(to_hour), 1, tonumber(from_hour) <= tonumber(to_hour), if(hour_utc >= tonumber(from_hour) AND hour_utc < tonumber(to_hour), 1, 0), true(), if(hour_utc >= tonumber(from_hour) OR hour_utc < tonumber(to_hour), 1, 0)), hosts=split(hosts, ","), ' +
      `is_elsewhere=case(isnull(hosts), 0, isnull(src_host), 1, ${isMissing('hosts', 'src_host')}, 1, true(), 0)`,
    'where is_within = 0 OR is_elsewhere = 1',
  );
}

/** Whether the values of a field lack that of another: with it they are more. */
const isMissing = (list: string, value: string): string =>
  `mvcount(mvdedup(mvappend(${list}, ${value}))) > coalesce(mvcount(mvdedup(${list})), 0)`;

/** Each event is in two buckets of twice the window, one window apart, so that one of them contains each burst completely. */
function buckets(ms: number): string {
  const [step, half] = [seconds(2 * ms), seconds(ms)];
  return pipe(
    'fields - _raw',
    `eval bucket=mvappend(floor(_time / ${step}) * ${step}, floor((_time + ${half}) / ${step}) * ${step} - ${half})`,
    'mvexpand bucket',
  );
}

const reachOf = (window: number): number => window + 5 * minute;

/** Groups with enough in one bucket. */
function counted(
  window: number,
  threshold: number,
  count: string,
  group: readonly string[],
  { begun = '_time', others = [] as readonly string[] } = {},
): string {
  return pipe(
    buckets(window),
    `stats ${count} AS counted min(${begun}) AS started max(_time) AS ended ${[collect(group), ...others.map((column) => `values(${column}) AS ${column}`)].join(' ')} ${by(group)} bucket`,
    `where counted >= ${threshold}`,
    `stats max(counted) AS counted ${timesAgain} ${collectAgain(group, others)} ${by(group)}`,
    shortened(group, others),
    readable,
  );
}

function bursts(rule: Rule, { where, group, window, threshold }: DetectionOf<'count' | 'distinct'>, count: string): string {
  return pipe(source(rule, terms(where), reachOf(window)), counted(window, threshold, count, group));
}

/** Copies of each event for windows that end now, half a window ago and a window ago, so that late events count too. */
function aboveAverage(rule: Rule, { where, group, window, threshold, distinct, history, factor }: DetectionOf<'baseline'>): string {
  const [recent, past] = [seconds(window), seconds(window + history)];
  const shifts = [0, 0.5, 1].map((part) => part * recent);
  const columns = [...new Set([nameOf(distinct), ...columnsOf(group).map(([, field]) => field)])];
  const onlyRecent = (field: string): string => `recent_${field.replace(/^_/, '')}`;
  return pipe(
    source(rule, terms(where)),
    'fields - _raw',
    `eval age=now() - _time, shift=mvappend(${shifts.join(', ')})`,
    'mvexpand shift',
    `where age >= shift AND age < shift + ${past}`,
    `eval is_recent=if(age < shift + ${recent}, 1, 0), is_before=1 - is_recent, ${['_time', '_indextime', ...columns].map((field) => `${onlyRecent(field)}=if(is_recent = 1, ${field}, null())`).join(', ')}`,
    `stats dc(${onlyRecent(nameOf(distinct))}) AS counted sum(is_before) AS before min(recent_time) AS started max(recent_time) AS ended max(recent_indextime) AS arrived ${collect(group, onlyRecent)} ${by(group)} shift`,
    // Without a division, and only in runs that follow an arrival.
    `where counted >= ${threshold} AND counted * ${history / window} > ${factor} * before AND arrived >= now() - ${seconds(2 * hour)}`,
    `stats max(counted) AS counted min(before) AS before ${timesAgain} ${collectAgain(group)} ${by(group)}`,
    shortened(group),
    readable,
  );
}

/** The first use of each machine and provider together, and of each alone, by the time of the event. What arrived in the last two hours may fire. */
function firstSeen(rule: Rule, { where, group, of, known }: DetectionOf<'first-seen'>): string {
  const isFresh = `_indextime >= now() - ${seconds(2 * hour)} AND _time >= now() - ${seconds(latest)}`;
  const values = of.map((field, i) => ({ field: operand(field), column: `value_${i}`, since: `since_${i}` }));
  const columns = values.map(({ column }) => column).join(' ');
  return pipe(
    source(rule, terms(where)),
    `eval fresh=if(${isFresh}, _time, null()), ${values.map(({ field, column }) => `${column}=coalesce(${field}, "")`).join(', ')}`,
    `stats min(_time) AS since min(fresh) AS started max(fresh) AS ended ${collect(group)} ${by(group)} ${columns}`,
    `eventstats min(since) AS begun ${by(group)}`,
    ...values.map(({ column, since }) => `eventstats min(since) AS ${since} ${by(group)} ${column}`),
    `where started - begun >= ${seconds(known)} AND ${values.map((each) => `${each.column} != "" AND started - ${each.since} < ${seconds(newFor)}`).join(' AND ')}`,
    `stats ${timesAgain} ${values.map(({ column }, i) => `values(${column}) AS new_${of[i] === 'host.hostname' ? 'src_host' : 'provider'}`).join(' ')} ${collectAgain(group)} ${by(group)}`,
    shortened(group),
    readable,
  );
}

/** Each stay, the events of a group at one place within an hour, beside each other stay, by the haversine. The same stays as in ES|QL. */
function farApart(rule: Rule, { where, group, window, km, kmPerHour }: DetectionOf<'distance'>): string {
  const tenth = (part: 'lat' | 'lon'): string => `floor(tonumber('source.geo.location.${part}') * 10) / 10`;
  const radians = (place: string, part: number): string => `tonumber(mvindex(split(${place}, ","), ${part})) * pi() / 180`;
  const ofOther = (part: number): string => `tonumber(mvindex(split(other, ";"), ${part}))`;
  return pipe(
    source(rule, terms(where), reachOf(window)),
    'fields - _raw',
    `eval lat=${tenth('lat')}, lon=${tenth('lon')}, place=lat . "," . lon, hour=floor(_time / 3600)`,
    'where isnotnull(place)',
    `stats ${times} ${collect(group)} ${by(group)} place hour`,
    'eval stay=started . ";" . ended . ";" . place',
    `eventstats values(stay) AS other dc(place) AS places ${by(group)}`,
    'where places > 1',
    'mvexpand other',
    `eval there=mvindex(split(other, ";"), 2), seconds=max(${ofOther(0)} - ended, started - ${ofOther(1)})`,
    `eval lat1=${radians('place', 0)}, lon1=${radians('place', 1)}, lat2=${radians('there', 0)}, lon2=${radians('there', 1)}, half=pow(sin((lat2 - lat1) / 2), 2) + cos(lat1) * cos(lat2) * pow(sin((lon2 - lon1) / 2), 2), kilometres=round(12742 * asin(min(1, sqrt(half))))`,
    `where kilometres > ${km} AND kilometres * 3600 > ${kmPerHour} * seconds AND seconds < ${seconds(window)}`,
    `stats max(kilometres) AS kilometres values(place) AS places ${timesAgain} ${collectAgain(group)} ${by(group)}`,
    shortened(group),
    readable,
  );
}

/** The latest time at which a path that reached each step began. A first step that repeats is counted within the window. */
function sequence(rule: Rule, { group, window, steps, across }: DetectionOf<'sequence'>): string {
  const [first, ...others] = steps;
  const last = others.at(-1);
  if (!first || !last || others.some(({ times: repeated }) => repeated > 1) || (first.times > 1 && others.length > 1))
    throw new Error('SPL says sequences of single steps, or of two steps of which the first repeats');
  const isStep = (where: readonly Condition[], then: string, otherwise: string): string =>
    `if(${expression(where)}, ${then}, ${otherwise})`;
  const earlier = steps.slice(0, -1).map(takersOf);
  const takers = steps.map(takersOf);
  // Within the window before the last step: when the first step was taken, and who took each.
  const people = [
    `eval who=${who}, begun=${isStep(first.where, '_time', 'null()')}, ${steps.map((step) => `${takersOf(step)}=${isStep(step.where, 'who', 'null()')}`).join(', ')}`,
    `streamstats time_window=${seconds(window)}s min(begun) AS started ${earlier.map((column) => `values(${column}) AS ${column}`).join(' ')} ${by(group)}`,
  ];
  const before =
    first.times > 1
      ? [
          `eval first=${isStep(first.where, '1', '0')}`,
          `streamstats time_window=${seconds(window)}s sum(first) AS firsts ${by(group)}`,
          ...people,
          `where (${expression(last.where)}) AND firsts >= ${first.times}`,
        ]
      : [
          ...steps.slice(0, -1).flatMap(({ where }, i) => [
            `eval step_${i}=${isStep(where, i === 0 ? '_time' : `step_${i - 1}`, 'null()')}`,
            `streamstats max(step_${i}) AS step_${i} ${by(group)}`,
          ]),
          ...people,
          `where (${expression(last.where)}) AND step_${steps.length - 2} > _time - ${seconds(window)}`,
        ]; // prettier-ignore
  const found = pipe(source(rule, terms(steps.flatMap(({ where }) => where)), reachOf(window)), 'sort 0 _time', ...before);
  if (across)
    return pipe(
      found,
      counted(window, across.threshold, `dc(${nameOf(across.distinct)})`, [across.by], { begun: 'started', others: earlier }),
    );
  const columns = takers.map((column) => `values(${column}) AS ${column}`).join(' ');
  return pipe(
    found,
    `stats min(started) AS started max(_time) AS ended ${collect(group)} ${columns} ${by(group)}`,
    shortened(group, takers),
    readable,
  );
}

function silence(rule: Rule, { where, group, window }: DetectionOf<'silence'>): string {
  return pipe(
    source(rule, terms(where)),
    `stats max(_time) AS _time values(dest) AS dest ${by(group)}`,
    `where now() - _time > ${seconds(window)}`,
  );
}
