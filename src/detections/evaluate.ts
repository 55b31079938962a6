/**
 * Evaluates a detection rule on events: the meaning that the generated rules of Kibana, Splunk and Sigma are compared with. A window of an
 * event at T is (T - window, T]. Generated rules that count in fixed buckets may also fire for a burst of up to twice the window.
 */
import type { Condition, Detection, DetectionOf, Rule } from './rule.ts';

/** An event of the audit trail, by the fields of its ECS document. A field of a list has its first value. */
export interface DetectionEvent {
  /** Time of the event, ms. */
  readonly at: number;
  /** Equal for the same record received twice. */
  readonly uid: string;
  readonly fields: Readonly<Record<string, string | undefined>>;
}

/** An entry of a list of accounts: the hours (UTC) and hosts at which it may act. Undefined: at any. */
interface Account {
  readonly hours?: { readonly from: number; readonly to: number } | undefined;
  readonly hosts?: readonly string[] | undefined;
}

/** By the name of the list, its values. */
export type Lists = Readonly<Record<string, ReadonlyMap<string, Account>>>;

/** The events that fired a rule for one group, from the first to the last. */
export interface Alert {
  readonly group: readonly string[];
  readonly started: number;
  readonly at: number;
  /** Events, distinct values, kilometres or steps, whichever the rule counts; the largest of the alert. */
  readonly counted: number;
  readonly events: readonly DetectionEvent[];
}

const hour = 3_600_000;
const day = 24 * hour;
/** How long after its first event a value is new: runs of a SIEM cannot tell which of the events that just arrived was the first. */
export const newFor = hour / 6;

/** A match of a rule: the events of `list` from `first`, and before `end`. */
interface Firing extends Omit<Alert, 'events' | 'started'> {
  /** Only that of the first firing of an alert is needed. */
  readonly started: () => number;
  readonly list: readonly DetectionEvent[];
  readonly first: number;
  readonly end: number;
}
type GroupFiring = Omit<Firing, 'group'>;

/** A computation that the caller may stop between two steps. */
export type Steps<Result> = Generator<undefined, Result>;

/**
 * @param events  in the order of their times, each record once
 * @param now  the end of the events, ms: a silence lasts until then
 * @returns alerts in the order of their times. Firings of a group within the suppression after the first one are one alert.
 */
export function* evaluating(
  { detect, exceptions }: Rule,
  events: readonly DetectionEvent[],
  lists: Lists,
  now: number,
): Steps<readonly Alert[]> {
  const excepted = Object.entries(exceptions);
  const isExcepted = ({ fields }: DetectionEvent): boolean =>
    excepted.some(([field, list]) => lists[list]?.has(fields[field] ?? '') === true);
  const counted = yield* flatMapped(events, (event) => (isExcepted(event) ? [] : [event]));
  return yield* suppressed(yield* firings(detect, counted, lists, now), suppressionOf(detect));
}

/** In one step. */
export function evaluate(...given: Parameters<typeof evaluating>): readonly Alert[] {
  const steps = evaluating(...given);
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

/** A step takes 1,000 items. */
function* flatMapped<Item, Result>(items: readonly Item[], map: (item: Item, i: number) => readonly Result[]): Steps<Result[]> {
  const results: Result[] = [];
  for (const [i, item] of items.entries()) {
    if (i % 1_000 === 999) yield;
    results.push(...map(item, i));
  }
  return results;
}

/** How long firings of a group are one alert, ms. */
export function suppressionOf(detect: Detection): number {
  if (detect.kind === 'single') return hour;
  if (detect.kind === 'first-seen' || detect.kind === 'silence') return day;
  return Math.max(hour, 2 * detect.window);
}

/** Whether one of the conditions holds for an event. */
function matches(where: readonly Condition[], { at, fields }: DetectionEvent, lists: Lists): boolean {
  return where.some(({ fields: wanted, differ, outside }) => {
    const has = Object.entries(wanted).every(([field, values]) => {
      const value = fields[field];
      return value !== undefined && (values.includes('*') || values.includes(value));
    });
    if (!has) return false;
    if (differ && !isDifferent(fields[differ[0]], fields[differ[1]])) return false;
    return outside === undefined || isOutside(lists[outside]?.get(fields['user.id'] ?? ''), at, fields['host.hostname']);
  });
}

function isDifferent(one: string | undefined, other: string | undefined): boolean {
  return one !== undefined && other !== undefined && one !== other;
}

function isOutside(account: Account | undefined, at: number, host: string | undefined): boolean {
  if (!account) return false;
  const { hours, hosts } = account;
  const time = (at % day) / hour;
  const isWithin = !hours || (hours.from <= hours.to ? time >= hours.from && time < hours.to : time >= hours.from || time < hours.to);
  return !isWithin || (hosts !== undefined && !hosts.includes(host ?? ''));
}

function* firings(detect: Detection, events: readonly DetectionEvent[], lists: Lists, now: number): Steps<Firing[]> {
  if (detect.kind === 'sequence') return yield* sequences(detect, events, lists);
  const found = yield* flatMapped(events, (event) => (matches(detect.where, event, lists) ? [event] : []));
  switch (detect.kind) {
    case 'single':
      return found.map((event) => ({ ...firing([event], 1), group: keyOf(event, detect.group) ?? [event.uid] }));
    case 'count':
      return yield* byGroup(found, detect.group, (group) => counts(group, detect.window, detect.threshold, ({ uid }) => uid));
    case 'distinct':
      return yield* byGroup(found, detect.group, (group) =>
        counts(group, detect.window, detect.threshold, (event) => event.fields[detect.distinct]),
      );
    case 'baseline':
      return yield* byGroup(found, detect.group, (group) => aboveAverage(group, detect));
    case 'first-seen':
      return yield* byGroup(found, detect.group, (group) => firstSeen(group, detect));
    case 'distance':
      return yield* byGroup(found, detect.group, (group) => distances(group, detect));
    case 'silence':
      return yield* byGroup(found, detect.group, (group) => silences(group, detect.window, now));
  }
}

function firing(list: readonly DetectionEvent[], counted: number, first = 0, end = list.length): GroupFiring {
  return { started: () => list[first]?.at ?? 0, at: list[end - 1]?.at ?? 0, counted, list, first, end };
}

/** The values of the group of an event. Undefined: it lacks one, and belongs to no group. */
function keyOf({ fields }: DetectionEvent, group: readonly string[]): readonly string[] | undefined {
  const values = group.flatMap((field) => fields[field] ?? []);
  return values.length === group.length ? values : undefined;
}

function* byGroup(
  events: readonly DetectionEvent[],
  fields: readonly string[],
  fire: (events: readonly DetectionEvent[]) => Steps<readonly GroupFiring[]>,
): Steps<Firing[]> {
  const groups = new Map<string, { readonly key: readonly string[]; readonly events: DetectionEvent[] }>();
  yield* flatMapped(events, (event) => {
    const key = keyOf(event, fields);
    if (!key) return [];
    const name = key.length === 1 ? String(key[0]) : JSON.stringify(key);
    const group = groups.get(name) ?? { key, events: [] };
    groups.set(name, group);
    group.events.push(event);
    return [];
  });
  const all: Firing[] = [];
  for (const { key, events: own } of groups.values()) {
    yield;
    for (const fired of yield* fire(own)) all.push({ ...fired, group: key });
  }
  return all;
}

/** Values in a window that moves over events, with the number of events of each. */
class Window {
  readonly #counts = new Map<string, number>();
  readonly #value: (event: DetectionEvent) => string | undefined;

  constructor(value: (event: DetectionEvent) => string | undefined) {
    this.#value = value;
  }

  add(event: DetectionEvent): void {
    const value = this.#value(event);
    if (value !== undefined) this.#counts.set(value, (this.#counts.get(value) ?? 0) + 1);
  }

  remove(event: DetectionEvent): void {
    const value = this.#value(event);
    const left = value === undefined ? 0 : (this.#counts.get(value) ?? 0) - 1;
    if (value === undefined) return;
    if (left > 0) this.#counts.set(value, left);
    else this.#counts.delete(value);
  }

  get size(): number {
    return this.#counts.size;
  }
}

function* counts(
  events: readonly DetectionEvent[],
  window: number,
  threshold: number,
  value: (event: DetectionEvent) => string | undefined,
  isAbove: (first: number, last: number, counted: number) => boolean = () => true,
): Steps<GroupFiring[]> {
  const values = new Window(value);
  let first = 0;
  return yield* flatMapped(events, (event, last) => {
    values.add(event);
    for (let oldest = events[first]; oldest && oldest.at <= event.at - window; oldest = events[first]) {
      values.remove(oldest);
      first += 1;
    }
    return values.size >= threshold && isAbove(first, last, values.size) ? [firing(events, values.size, first, last + 1)] : [];
  });
}

function aboveAverage(
  events: readonly DetectionEvent[],
  { window, threshold, distinct, history, factor }: DetectionOf<'baseline'>,
): Steps<GroupFiring[]> {
  let oldest = 0;
  const isAbove = (first: number, last: number, counted: number): boolean => {
    const at = events[last]?.at ?? 0;
    while ((events[oldest]?.at ?? at) <= at - window - history) oldest += 1;
    return counted > (factor * (first - oldest) * window) / history;
  };
  return counts(events, window, threshold, (event) => event.fields[distinct], isAbove);
}

function* sequences(
  { group, window, steps, across }: DetectionOf<'sequence'>,
  events: readonly DetectionEvent[],
  lists: Lists,
): Steps<Firing[]> {
  const isStep = (event: DetectionEvent, step: number): boolean => matches(steps[step]?.where ?? [], event, lists);
  const relevant = yield* flatMapped(events, (event) => (steps.some((_, step) => isStep(event, step)) ? [event] : []));
  const found = yield* byGroup(relevant, group, (own) => paths(own, window, steps, isStep));
  if (!across) return found;
  // The last step of each match counts once more, by the user who took it.
  const begun = new Map(found.flatMap(({ list, started }) => list.slice(-1).map((last) => [last, started()])));
  const lasts = [...begun.keys()].sort((a, b) => a.at - b.at);
  return yield* byGroup(lasts, [across.by], function* (own) {
    const fired = yield* counts(own, window, across.threshold, (event) => event.fields[across.distinct]);
    const startOf = ({ first, end, at }: GroupFiring): number =>
      own.slice(first, end).reduce((least, event) => Math.min(least, begun.get(event) ?? least), at);
    return fired.map((each) => ({ ...each, started: () => startOf(each) }));
  });
}

/** The steps in order, each later than the step before it. For each last step it returns the path that began latest. */
function paths(
  events: readonly DetectionEvent[],
  window: number,
  steps: readonly { readonly times: number }[],
  isStep: (event: DetectionEvent, step: number) => boolean,
): Steps<GroupFiring[]> {
  const parts = steps.flatMap(({ times }, step) => Array.from({ length: times }, (_, i) => ({ step, isFirst: i === 0 })));
  // By part: the events that lead to it, now and before the present time.
  let reached: (readonly DetectionEvent[] | undefined)[] = [[]];
  let earlier = reached;
  let time = -Infinity;
  return flatMapped(events, (event) => {
    if (event.at > time) earlier = [...reached];
    time = event.at;
    const next = [...reached];
    for (const [part, { step, isFirst }] of parts.entries()) {
      const before = (isFirst ? earlier : reached)[part];
      if (before && isStep(event, step)) next[part + 1] = [...before, event];
    }
    reached = next;
    const path = reached[parts.length];
    const isComplete = path?.at(-1) === event && (path[0]?.at ?? 0) > event.at - window;
    return isComplete ? [firing(path, steps.length)] : [];
  });
}

function firstSeen(events: readonly DetectionEvent[], { of, history, known }: DetectionOf<'first-seen'>): Steps<GroupFiring[]> {
  const seen = of.map(() => new Map<string, number>());
  let [oldest, settled] = [0, 0];
  return flatMapped(events, (event) => {
    while ((events[oldest]?.at ?? event.at) <= event.at - history) oldest += 1;
    for (let other = events[settled]; other && other.at <= event.at - newFor; other = events[settled]) {
      for (const [i, field] of of.entries()) seen[i]?.set(other.fields[field] ?? '', other.at);
      settled += 1;
    }
    const isNew = of.every((field, i) => {
      const value = event.fields[field];
      return value !== undefined && (seen[i]?.get(value) ?? -Infinity) <= event.at - history;
    });
    return isNew && event.at - (events[oldest]?.at ?? event.at) >= known ? [firing([event], of.length)] : [];
  });
}

function distances(events: readonly DetectionEvent[], { window, km, kmPerHour }: DetectionOf<'distance'>): Steps<GroupFiring[]> {
  // The last event at each place, in the order of time: no earlier one at the place is nearer in time.
  const lasts = new Map<string, { readonly place: Place; readonly last: DetectionEvent }>();
  return flatMapped(events, (event) => {
    const place = placeOf(event);
    if (!place) return [];
    let [other, farthest]: [DetectionEvent | undefined, number] = [undefined, 0];
    for (const [name, { place: there, last }] of lasts) {
      if (last.at <= event.at - window) {
        lasts.delete(name);
        continue;
      }
      const distance = kilometres(place, there);
      if (distance <= Math.max(km, farthest, (kmPerHour * (event.at - last.at)) / hour)) continue;
      [other, farthest] = [last, distance];
    }
    const name = place.join(',');
    lasts.delete(name);
    lasts.set(name, { place, last: event });
    return other ? [firing([other, event], Math.round(farthest))] : [];
  });
}

type Place = readonly [latitude: number, longitude: number];

/** To a tenth of a degree, at most 11 km, so that events in one town are at few places. */
function placeOf({ fields }: DetectionEvent): Place | undefined {
  const [latitude, longitude] = [fields['source.geo.location.lat'], fields['source.geo.location.lon']];
  const tenth = (degrees: string): number => Math.trunc(Number(degrees) * 10) / 10;
  return latitude === undefined || longitude === undefined ? undefined : [tenth(latitude), tenth(longitude)];
}

/** Along the surface of a sphere of the mean radius of the Earth (haversine). */
function kilometres([lat1, lon1]: Place, [lat2, lon2]: Place): number {
  const radians = (degrees: number): number => (degrees * Math.PI) / 180;
  const half = (degrees: number): number => Math.sin(radians(degrees) / 2) ** 2;
  const a = half(lat2 - lat1) + Math.cos(radians(lat1)) * Math.cos(radians(lat2)) * half(lon2 - lon1);
  return 2 * 6_371 * Math.asin(Math.min(1, Math.sqrt(a)));
}

function silences(events: readonly DetectionEvent[], window: number, now: number): Steps<GroupFiring[]> {
  return flatMapped(events, (event, i) => {
    const until = events[i + 1]?.at ?? now;
    const minutes = Math.round((until - event.at) / 60_000);
    return until - event.at > window ? [{ ...firing([event], minutes), at: event.at + window }] : [];
  });
}

/** Joins the firings of a group to alerts. An alert begins with a firing, and contains all others within the suppression period after it. */
function* suppressed(fired: Firing[], suppression: number): Steps<readonly Alert[]> {
  const open = new Map<string, Joined>();
  const inOrder = fired.sort((a, b) => a.at - b.at);
  const all = yield* flatMapped(inOrder, (each) => {
    const name = JSON.stringify(each.group);
    const before = open.get(name);
    const isNew = !before || each.at - before.first.at >= suppression;
    const joined: Joined = isNew ? { first: each, events: new Set(), counted: 0, last: undefined } : before;
    open.set(name, joined);
    // Windows that follow each other overlap: their common events are there.
    const from = each.list === joined.last?.list ? Math.max(each.first, joined.last.end) : each.first;
    for (const event of each.list.slice(from, each.end)) joined.events.add(event);
    joined.counted = Math.max(joined.counted, each.counted);
    joined.last = each;
    return isNew ? [joined] : [];
  });
  return all.map(({ first: { group, started, at }, events, counted }) => ({ group, started: started(), at, counted, events: [...events] }));
}

interface Joined {
  readonly first: Firing;
  readonly events: Set<DetectionEvent>;
  counted: number;
  last: Firing | undefined;
}
