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

/**
 * @param events  in the order of their times, each record once
 * @param now  the end of the events, ms: a silence lasts until then
 * @returns alerts in the order of their times; firings of a group that follow within the suppression are one alert
 */
export function evaluate({ detect, exceptions }: Rule, events: readonly DetectionEvent[], lists: Lists, now: number): readonly Alert[] {
  const excepted = Object.entries(exceptions);
  const isExcepted = ({ fields }: DetectionEvent): boolean =>
    excepted.some(([field, list]) => lists[list]?.has(fields[field] ?? '') === true);
  const counted = events.filter((event) => !isExcepted(event));
  return suppressed(firings(detect, counted, lists, now), suppressionOf(detect));
}

/** How long a further firing of a group belongs to the same alert, ms. */
function suppressionOf(detect: Detection): number {
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

function firings(detect: Detection, events: readonly DetectionEvent[], lists: Lists, now: number): Alert[] {
  if (detect.kind === 'sequence') return sequences(detect, events, lists);
  const found = events.filter((event) => matches(detect.where, event, lists));
  switch (detect.kind) {
    case 'single':
      return found.map((event) => firing(keyOf(event, detect.group) ?? [event.uid], [event], 1));
    case 'count':
      return byGroup(found, detect.group, (group) => counts(group, detect.window, detect.threshold, ({ uid }) => uid));
    case 'distinct':
      return byGroup(found, detect.group, (group) =>
        counts(group, detect.window, detect.threshold, (event) => event.fields[detect.distinct]),
      );
    case 'baseline':
      return byGroup(found, detect.group, (group) => aboveAverage(group, detect));
    case 'first-seen':
      return byGroup(found, detect.group, (group) => firstSeen(group, detect));
    case 'distance':
      return byGroup(found, detect.group, (group) => distances(group, detect));
    case 'silence':
      return byGroup(found, detect.group, (group) => silences(group, detect.window, now));
  }
}

function firing(group: readonly string[], events: readonly DetectionEvent[], counted: number): Alert {
  return { group, started: events[0]?.at ?? 0, at: events.at(-1)?.at ?? 0, counted, events };
}

/** The values of the group of an event. Undefined: it lacks one, and belongs to no group. */
function keyOf({ fields }: DetectionEvent, group: readonly string[]): readonly string[] | undefined {
  const values = group.flatMap((field) => fields[field] ?? []);
  return values.length === group.length ? values : undefined;
}

function byGroup(
  events: readonly DetectionEvent[],
  fields: readonly string[],
  fire: (events: readonly DetectionEvent[]) => readonly Omit<Alert, 'group'>[],
): Alert[] {
  const groups = new Map<string, { readonly key: readonly string[]; readonly events: DetectionEvent[] }>();
  for (const event of events) {
    const key = keyOf(event, fields);
    if (!key) continue;
    const name = key.length === 1 ? String(key[0]) : JSON.stringify(key);
    const group = groups.get(name) ?? { key, events: [] };
    groups.set(name, group);
    group.events.push(event);
  }
  return [...groups.values()].flatMap(({ key, events: own }) => fire(own).map((fired) => ({ ...fired, group: key })));
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

function counts(
  events: readonly DetectionEvent[],
  window: number,
  threshold: number,
  value: (event: DetectionEvent) => string | undefined,
  isAbove: (first: number, last: number, counted: number) => boolean = () => true,
): Omit<Alert, 'group'>[] {
  const fired: Omit<Alert, 'group'>[] = [];
  const values = new Window(value);
  let first = 0;
  for (const [last, event] of events.entries()) {
    values.add(event);
    for (let oldest = events[first]; oldest && oldest.at <= event.at - window; oldest = events[first]) {
      values.remove(oldest);
      first += 1;
    }
    if (values.size >= threshold && isAbove(first, last, values.size)) fired.push(firing([], events.slice(first, last + 1), values.size));
  }
  return fired;
}

function aboveAverage(
  events: readonly DetectionEvent[],
  { window, threshold, distinct, history, factor }: DetectionOf<'baseline'>,
): Omit<Alert, 'group'>[] {
  let oldest = 0;
  const isAbove = (first: number, last: number, counted: number): boolean => {
    const at = events[last]?.at ?? 0;
    while ((events[oldest]?.at ?? at) <= at - window - history) oldest += 1;
    return counted > (factor * (first - oldest) * window) / history;
  };
  return counts(events, window, threshold, (event) => event.fields[distinct], isAbove);
}

function sequences({ group, window, steps, across }: DetectionOf<'sequence'>, events: readonly DetectionEvent[], lists: Lists): Alert[] {
  const isStep = (event: DetectionEvent, step: number): boolean => matches(steps[step]?.where ?? [], event, lists);
  const relevant = events.filter((event) => steps.some((_, step) => isStep(event, step)));
  const found = byGroup(relevant, group, (own) =>
    own.flatMap((last, end) => {
      if (!isStep(last, steps.length - 1)) return [];
      const before = own.slice(0, end).filter(({ at }) => at > last.at - window && at < last.at);
      const path = pathOf(before, steps.slice(0, -1), isStep);
      return path ? [firing([], [...path, last], steps.length)] : [];
    }),
  );
  if (!across) return found;
  // The last step of each match counts once more, by the user who took it.
  const begun = new Map(found.flatMap(({ events: path, started }) => path.slice(-1).map((last) => [last, started])));
  const lasts = [...begun.keys()].sort((a, b) => a.at - b.at);
  return byGroup(lasts, [across.by], (own) =>
    counts(own, window, across.threshold, (event) => event.fields[across.distinct]).map((fired) => ({
      ...fired,
      started: Math.min(...fired.events.map((event) => begun.get(event) ?? event.at)),
    })),
  );
}

/** The earliest events that take the steps in order. Undefined: they take not all of them. */
function pathOf(
  events: readonly DetectionEvent[],
  steps: readonly { readonly times: number }[],
  isStep: (event: DetectionEvent, step: number) => boolean,
): readonly DetectionEvent[] | undefined {
  const path: DetectionEvent[] = [];
  let [step, times] = [0, 0];
  for (const event of events) {
    if (step === steps.length) break;
    if (!isStep(event, step) || (times === 0 && path.length > 0 && (path.at(-1)?.at ?? 0) >= event.at)) continue;
    path.push(event);
    times += 1;
    if (times < (steps[step]?.times ?? 1)) continue;
    [step, times] = [step + 1, 0];
  }
  return step === steps.length ? path : undefined;
}

function firstSeen(events: readonly DetectionEvent[], { of, history, known }: DetectionOf<'first-seen'>): Omit<Alert, 'group'>[] {
  const seen = of.map(() => new Map<string, number>());
  const begun = events[0]?.at ?? 0;
  return events.flatMap((event) => {
    const isNew = of.map((field, i) => {
      const value = event.fields[field];
      if (value === undefined) return false;
      const last = seen[i]?.get(value);
      seen[i]?.set(value, event.at);
      return last === undefined || last <= event.at - history;
    });
    return isNew.every(Boolean) && event.at - begun >= known ? [firing([], [event], of.length)] : [];
  });
}

function distances(events: readonly DetectionEvent[], { window, km }: DetectionOf<'distance'>): Omit<Alert, 'group'>[] {
  return events.flatMap((event, i) => {
    const here = placeOf(event);
    if (!here) return [];
    const far = events
      .slice(0, i)
      .filter(({ at }) => at > event.at - window)
      .flatMap((other) => {
        const there = placeOf(other);
        const distance = there ? kilometres(here, there) : 0;
        return distance > km ? [{ other, distance }] : [];
      });
    const [first] = far;
    return first ? [firing([], [first.other, event], Math.round(Math.max(...far.map(({ distance }) => distance))))] : [];
  });
}

type Place = readonly [latitude: number, longitude: number];

function placeOf({ fields }: DetectionEvent): Place | undefined {
  const [latitude, longitude] = [fields['source.geo.location.lat'], fields['source.geo.location.lon']];
  return latitude === undefined || longitude === undefined ? undefined : [Number(latitude), Number(longitude)];
}

/** Along the surface of a sphere of the mean radius of the Earth (haversine). */
function kilometres([lat1, lon1]: Place, [lat2, lon2]: Place): number {
  const radians = (degrees: number): number => (degrees * Math.PI) / 180;
  const half = (degrees: number): number => Math.sin(radians(degrees) / 2) ** 2;
  const a = half(lat2 - lat1) + Math.cos(radians(lat1)) * Math.cos(radians(lat2)) * half(lon2 - lon1);
  return 2 * 6_371 * Math.asin(Math.min(1, Math.sqrt(a)));
}

function silences(events: readonly DetectionEvent[], window: number, now: number): Omit<Alert, 'group'>[] {
  return events.flatMap((event, i) => {
    const until = events[i + 1]?.at ?? now;
    const minutes = Math.round((until - event.at) / 60_000);
    return until - event.at > window ? [{ started: event.at, at: event.at + window, counted: minutes, events: [event] }] : [];
  });
}

/** Joins firings of a group: one that comes within the suppression of the previous one belongs to its alert. */
function suppressed(fired: Alert[], suppression: number): readonly Alert[] {
  const open = new Map<string, Joined>();
  const all: Joined[] = [];
  for (const each of fired.sort((a, b) => a.at - b.at)) {
    const name = JSON.stringify(each.group);
    const before = open.get(name);
    if (before && each.at - before.last < suppression) {
      for (const event of each.events) before.events.add(event);
      before.counted = Math.max(before.counted, each.counted);
      before.last = each.at;
      continue;
    }
    const joined = { first: each, events: new Set(each.events), counted: each.counted, last: each.at };
    open.set(name, joined);
    all.push(joined);
  }
  return all.map(({ first, events, counted }) => ({ ...first, events: [...events], counted }));
}

interface Joined {
  readonly first: Alert;
  readonly events: Set<DetectionEvent>;
  counted: number;
  last: number;
}
