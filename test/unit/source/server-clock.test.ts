/**
 * Server time by collection.md section 4; every number below is computed by hand from that text.
 */
import { beforeEach, describe, expect, test } from 'vitest';
import type { Micros } from '../../../src/model/time.ts';
import { ServerClock } from '../../../src/source/server-clock.ts';
import type { ClockProfile } from '../../../src/source/server-clock.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { noting } from '../../support/telemetry/written-events.ts';

const minute = 60_000;
const hour = 60 * minute;
const settle = 15 * minute;

let clock: VirtualClock;
let warnings: string[];
let server: ServerClock;

const log = noting({ write: (...[event]) => void warnings.push(event) });

function make(options: { closeDelay?: number; profile?: ClockProfile } = {}): ServerClock {
  return new ServerClock({ source: 'test', closeDelay: settle, clock, log, ...options });
}

/**
 * A response that arrives now, from a node whose clock is `ahead` ms ahead of the local wall clock.
 */
function answer(ahead: number | undefined, more: { age?: number; newest?: Micros } = {}): 'accepted' | 'cached' {
  const received = { received: clock.now() * 1000, receivedMonotonic: clock.monotonic() };
  return server.observe({ date: ahead === undefined ? undefined : clock.now() + ahead, age: more.age ?? 0, ...received }, more.newest);
}

function answers(count: number, ahead: number, everyMs: number): string[] {
  return Array.from({ length: count }, () => {
    const verdict = answer(ahead);
    clock.skip(everyMs);
    return verdict;
  });
}

const boundMs = (): number => (server.now() ?? Number.NaN) / 1000 - clock.now();

beforeEach(() => {
  clock = new VirtualClock(Date.UTC(2026, 10, 21, 12), 'manual');
  warnings = [];
  server = make();
});

// RFC 9111 section 5.1: an Age says that the response was not made for this request. RFC 9111 section 4.2.3: it is at least as old.
describe('responses that all have an Age', () => {
  test.each([
    ['that grows, at the first start', (n: number) => n + 1],
    ['that stays', () => 30],
    ['that varies', (n: number) => 1 + (n % 7)],
  ])('%s are accepted from the third on, and never establish the bound', (_name, ageOf) => {
    const verdicts = Array.from({ length: 60 }, (_, n) => {
      const verdict = answer(0, { age: ageOf(n) });
      expect(server.established()).toBe(false);
      // As old as it says: history before that can be read.
      if (verdict === 'accepted') expect(boundMs()).toBe(-1_000 - ageOf(n) * 1_000);
      clock.skip(10_000);
      return verdict;
    });
    expect(verdicts).toEqual(['cached', 'cached', ...Array.from({ length: 58 }, () => 'accepted')]);
    expect(warnings).toEqual(['source.answers_aged']);
    // Requests that measure the clock would be in vain.
    expect(server.missing()).toBe(0);
  });

  test('are accepted once they outnumber the responses of the bound, and windows then wait for a new bound', () => {
    answers(31, 0, 10_000);
    expect(server.established()).toBe(true);
    const verdicts = Array.from({ length: 40 }, () => {
      clock.skip(1_000);
      return answer(0, { age: 5 });
    });
    expect(verdicts.indexOf('accepted')).toBe(verdicts.filter((verdict) => verdict === 'cached').length);
    expect([verdicts.at(-1), server.established()]).toEqual(['accepted', false]);
    answers(19, 0, 16_000);
    expect(server.established()).toBe(false);
    answer(0);
    expect([server.established(), boundMs()]).toEqual([true, -1_000]);
  });
});

describe('while being measured', () => {
  test('there is no bound before the first response', () => {
    expect([server.now(), server.established(), server.missing()]).toEqual([undefined, false, 20]);
  });

  test('the bound is the Date minus a second, and advances with the monotonic clock', () => {
    answer(0);
    expect(boundMs()).toBe(-1_000);
    clock.skip(7_500);
    expect(boundMs()).toBe(-1_000);
    clock.wall += hour;
    expect(boundMs()).toBe(-1_000 - hour);
  });

  test('it needs twenty responses and five minutes', () => {
    answers(19, 0, 16_000);
    expect([server.established(), server.missing(), server.remainingMs()]).toEqual([false, 1, 0]);
    answer(0);
    expect([server.established(), server.missing()]).toEqual([true, 0]);

    server = make();
    answers(20, 0, 1_000);
    expect([server.established(), server.missing(), server.remainingMs()]).toEqual([false, 0, 280_000]);
    clock.skip(279_999);
    expect(server.established()).toBe(false);
    clock.skip(1);
    expect(server.established()).toBe(true);
  });

  test('with a short closeDelay a third of it suffices', () => {
    server = make({ closeDelay: 3_000 });
    answers(20, 0, 50);
    expect(server.established()).toBe(true);
  });

  test('every Date counts in this phase, and the bound may go back', () => {
    answer(0);
    expect(answer(-hour)).toBe('accepted');
    expect(boundMs()).toBe(-hour - 1_000);
  });

  test('one node with a wrong clock does not lead it: the minimum counts', () => {
    for (let n = 0; n < 30; n += 1) {
      answer(n % 3 === 0 ? 30 * minute : 0);
      clock.skip(15_000);
    }
    expect(server.established()).toBe(true);
    expect(boundMs()).toBe(-1_000);
  });
});

describe('established', () => {
  beforeEach(() => {
    answers(31, 0, 10_000);
    expect(server.established()).toBe(true);
  });

  test('it never goes back', () => {
    const before = server.now() ?? 0;
    answer(-4_000);
    expect(server.now()).toBeGreaterThanOrEqual(before);
    clock.skip(3_000);
    // The response 4 s behind counts now: the bound waits for it.
    expect(server.now()).toBe(before);
    clock.skip(2_000);
    expect(server.now()).toBe(before + 1_000_000);
  });

  test('a response more than 5 s before the bound is cached; at 5 s it is not', () => {
    // The bound is a second behind.
    expect(answer(-6_001)).toBe('cached');
    expect(answer(-6_000)).toBe('accepted');
  });

  test('a response with an age is cached, and its Date is ignored', () => {
    expect(answer(0, { age: 1 })).toBe('cached');
    expect(answer(-hour, { age: 1 })).toBe('cached');
    expect(boundMs()).toBe(-1_000);
  });

  test('a late response limits it for five minutes, not longer', () => {
    answer(-4_000);
    for (let n = 0; n < 30; n += 1) {
      clock.skip(10_000);
      answer(0);
    }
    expect(boundMs()).toBe(-5_000);
    clock.skip(10_000);
    answer(0);
    expect(boundMs()).toBe(-1_000);
  });

  test('with few responses, the last twenty count however old they are', () => {
    answer(-4_000);
    for (let n = 0; n < 19; n += 1) {
      clock.skip(10 * minute);
      answer(0);
    }
    expect(boundMs()).toBe(-5_000);
    clock.skip(10 * minute);
    answer(0);
    expect(boundMs()).toBe(-1_000);
  });

  test('after more refused responses than it is based on, it is measured again, with a warning', () => {
    let refused = 0;
    while (answer(-hour) === 'cached') {
      refused += 1;
      clock.skip(5_000);
    }
    // The last twenty always count; earlier ones are older than five minutes when the twenty-first
    // refusal arrives, or nearly.
    expect(refused).toBeGreaterThanOrEqual(20);
    expect(refused).toBeLessThan(31);
    expect(warnings).toEqual(['source.clock_reset']);
    expect([server.established(), server.missing()]).toEqual([false, 19]);
    expect(boundMs()).toBe(-hour - 1_000);
    answers(31, -hour, 10_000);
    expect(server.established()).toBe(true);
    expect(boundMs()).toBe(-hour - 1_000);
  });

  test('rare refusals have no effect', () => {
    for (let n = 0; n < 500; n += 1) {
      expect(answer(n % 4 === 3 ? -hour : 0)).toBe(n % 4 === 3 ? 'cached' : 'accepted');
      clock.skip(5_000);
    }
    expect(warnings).toEqual([]);
    expect(boundMs()).toBe(-1_000);
  });

  test('a jump of the local wall clock changes nothing', () => {
    const before = server.now() ?? 0;
    clock.wall -= 30 * minute;
    clock.skip(1_000);
    expect(server.now()).toBe(before + 1_000_000);
  });
});

test('more than an hour ahead of the wall clock is reported', () => {
  answers(31, hour, 10_000);
  expect(server.ahead()).toBe(false);
  server = make();
  answers(31, hour + 2_000, 10_000);
  expect(server.ahead()).toBe(true);
});

describe('after a restart', () => {
  const profile: ClockProfile = { offsetMs: 9_000, dated: true };

  test("the stored offset is the next life's", () => {
    answers(31, 10_000, 10_000);
    expect(server.profile()).toEqual(profile);
    server = make({ profile });
    expect(server.profile()).toBeUndefined();
  });

  test('two more responses are requested at once after the first, however many polls bring', () => {
    server = make({ profile });
    const wanted = [];
    for (let n = 0; n < 4; n += 1) {
      wanted.push(server.missing(10_000));
      answer(10_000);
    }
    expect(wanted).toEqual([3, 2, 1, 0]);
    // A response that does not agree: measured as if new, and the responses of polls suffice for
    // that.
    server = make({ profile });
    answer(0);
    expect([server.missing(), server.missing(10_000), server.missing(100_000)]).toEqual([19, 0, 16]);
  });

  test('three responses that agree within 5 s establish it at once', () => {
    server = make({ profile });
    expect([answer(10_000), answer(14_900), server.established()]).toEqual(['accepted', 'accepted', false]);
    answer(5_100);
    expect([server.established(), server.missing(), server.remainingMs()]).toEqual([true, 0, 0]);
    expect(boundMs()).toBe(4_100);
  });

  test.each([0, 1, 2])('if response %d of the three does not agree it is measured as if new', (odd) => {
    server = make({ profile });
    for (let n = 0; n < 3; n += 1) answer(n === odd ? 10_000 - 5_001 : 10_000);
    expect(server.established()).toBe(false);
    answers(10, 10_000, 1_000);
    expect([server.established(), server.missing()]).toEqual([false, 7]);
  });
});

describe('without a Date header', () => {
  const us = (ms: number): Micros => ms * 1000;

  test('it is the newest record plus the time since, but at most the wall clock', () => {
    answer(undefined);
    expect(server.now()).toBeUndefined();
    answer(undefined, { newest: us(clock.now() - 30_000) });
    expect(boundMs()).toBe(-30_000);
    clock.skip(10_000);
    answer(undefined, { newest: us(clock.now() - hour) });
    expect(boundMs()).toBe(-30_000);
    // A record dated next year.
    answer(undefined, { newest: us(clock.now() + 365 * 24 * hour) });
    expect(boundMs()).toBe(0);
  });

  test('it is established like the other, does not go back, and the profile states its kind', () => {
    for (let n = 0; n < 31; n += 1) {
      answer(undefined, { newest: us(clock.now() - 5_000) });
      clock.skip(10_000);
    }
    expect([server.established(), server.profile()]).toEqual([true, { offsetMs: -5_000, dated: false, bound: server.now() }]);
    const before = server.now();
    clock.wall -= hour;
    expect(server.now()).toBe(before);
  });
});

describe('without a Date header, over a restart', () => {
  const us = (ms: number): Micros => ms * 1000;
  const old = (): Micros => us(clock.now() - 10 * minute);

  test('the reached time is valid with the third response, however old the records read again are', () => {
    const bound = us(clock.now() - 100_000);
    server = make({ profile: { offsetMs: 0, dated: false, bound } });
    for (let n = 0; n < 3; n += 1) {
      expect(server.established()).toBe(false);
      answer(undefined, { newest: old() });
      clock.skip(1_000);
    }
    expect([server.established(), server.now()]).toEqual([true, bound + us(3_000)]);
    // The local clock cannot tell how long the daemon was stopped; a newer record can.
    clock.wall += hour;
    expect(server.now()).toBe(bound + us(3_000));
    answer(undefined, { newest: bound + us(50_000) });
    expect(server.now()).toBe(bound + us(50_000));
  });

  test('it is at most the local clock, and a service that sends its time now is trusted alone', () => {
    const bound = us(clock.now() + minute);
    server = make({ profile: { offsetMs: 0, dated: false, bound } });
    for (let n = 0; n < 3; n += 1) answer(undefined, { newest: old() });
    expect(boundMs()).toBe(0);
    server = make({ profile: { offsetMs: 0, dated: false, bound } });
    expect(server.dated()).toBeUndefined();
    for (let n = 0; n < 3; n += 1) answer(-20_000);
    expect([server.established(), server.dated(), boundMs()]).toEqual([false, true, -21_000]);
  });
});

describe('the time that both clocks have reached', () => {
  const agreedMs = (): number => (server.agreed() ?? Number.NaN) / 1000 - clock.now();

  test('is the local clock if the service is ahead, and the bound if it is behind', () => {
    expect(server.agreed()).toBeUndefined();
    answers(31, 50 * minute, 10_000);
    expect([boundMs(), agreedMs()]).toEqual([50 * minute - 1_000, 0]);

    server = make();
    answers(31, -50 * minute, 10_000);
    expect([boundMs(), agreedMs()]).toEqual([-50 * minute - 1_000, -50 * minute - 1_000]);
  });

  test('a jump of the local clock changes nothing while it was correct before; a clock that was behind is followed', () => {
    answers(31, 0, 10_000);
    const before = server.agreed();
    clock.wall -= 30 * minute;
    expect(server.agreed()).toBe(before);
    clock.wall += 2 * hour;
    expect(server.agreed()).toBe(before);

    server = make();
    answers(31, 20 * minute, 10_000);
    expect(agreedMs()).toBe(0);
    clock.wall += 15 * minute;
    expect(agreedMs()).toBe(0);
  });
});

describe('a stopped service clock', () => {
  const expectedMs = (): number => (server.expected() ?? Number.NaN) / 1000 - clock.now();
  /** Responses that all have the `Date` of the first of them. */
  const frozen = (count: number, everyMs: number): void => {
    const date = clock.now();
    for (let n = 0; n < count; n += 1) {
      answer(date - clock.now());
      clock.skip(everyMs);
    }
  };

  test.each([10_000, settle])('does not delay due work, with a closeDelay of %i ms, and one warning reports it', (settleMs) => {
    server = make({ closeDelay: settleMs });
    answers(60, 0, 10_000);
    const since = clock.now();
    frozen(180, 10_000);
    // The bound of the responses is many minutes behind: an unknown clock closes no windows.
    expect((server.agreed() ?? 0) / 1000 - clock.now()).toBeLessThan(-2 * minute);
    expect(expectedMs()).toBe(-1_000);
    expect(server.stoodSince()).toBe(since * 1000);
    expect(warnings.filter((event) => event === 'source.clock_stopped')).toHaveLength(1);
    answer(0);
    expect(server.stoodSince()).toBeUndefined();
  });

  test('a clock an hour behind that runs counts, also after it was set back', () => {
    answers(60, -hour, 10_000);
    expect([expectedMs(), server.stoodSince()]).toEqual([-hour - 1_000, undefined]);

    server = make();
    answers(60, 0, 10_000);
    answers(120, -hour, 10_000);
    expect([expectedMs(), server.stoodSince()]).toEqual([-hour - 1_000, undefined]);
  });

  test('half of the responses repeat one Date: the others determine the due time', () => {
    server = make({ closeDelay: 10_000 });
    answers(60, 0, 2_000);
    const date = clock.now();
    for (let n = 0; n < 300; n += 1) {
      answer(n % 2 === 0 ? date - clock.now() : 0);
      clock.skip(2_000);
    }
    expect(expectedMs()).toBe(-1_000);
  });

  test('the absence of responses is not such a clock', () => {
    answers(60, 0, 10_000);
    clock.skip(2 * hour);
    expect([expectedMs(), server.stoodSince()]).toEqual([-1_000, undefined]);
  });

  test('after a restart the offset of the earlier run counts, and it stays stored while the clock is stopped', () => {
    server = make({ profile: { offsetMs: -1_000, dated: true } });
    const date = clock.now() - 20 * minute;
    for (let n = 0; n < 180; n += 1) {
      answer(date - clock.now());
      clock.skip(10_000);
    }
    expect([expectedMs(), server.profile()]).toEqual([-1_000, undefined]);
  });
});

describe('the local clock jumps by hours while the process runs', () => {
  test.each([-7, -25, 9])('by %i h: the service does not count as ahead, and the time that both have reached advances', (hours) => {
    answers(31, 0, 10_000);
    const before = server.agreed() ?? 0;
    clock.wall += hours * hour;
    expect(server.ahead()).toBe(false);
    // The service's clock has not jumped.
    for (let n = 0; n < 60; n += 1) {
      answer(-hours * hour);
      clock.skip(10_000);
    }
    expect(server.ahead()).toBe(false);
    expect(server.agreed()).toBe(before + 600_000_000);
  });

  test('back, if responses carry no Date: the time advances with the records', () => {
    const newest = (): Micros => clock.now() * 1000;
    for (let n = 0; n < 31; n += 1) {
      answer(undefined, { newest: newest() });
      clock.skip(10_000);
    }
    const before = server.now() ?? 0;
    clock.wall -= 7 * hour;
    clock.skip(60_000);
    expect(server.now()).toBe(before + 60_000_000);
  });

  test('a clock that was wrong from the start is reported until it is corrected', () => {
    answers(31, 7 * hour, 10_000);
    expect(server.ahead()).toBe(true);
    clock.wall += 7 * hour;
    expect(server.ahead()).toBe(false);
  });
});
