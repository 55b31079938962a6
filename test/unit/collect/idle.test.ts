/**
 * The request rate of an idle source: the real collector with an idle model service, in virtual
 * time, compared with the number that `check` prints. In `npm test` after two days, with the recounts of that time.
 */
import { expect, test } from 'vitest';
import { requestsADay } from '../../../src/cli/commands/check/idle-requests.ts';
import { sourceSettings } from '../../../src/source/settings.ts';
import { base, hour, second } from '../../support/records.ts';
import { lastAge, proven, source as sourceId } from '../../support/journal/opening.ts';
import { running } from '../../support/collect/running.ts';
import { world } from '../../support/collect/world.ts';
import { sized } from '../../support/long-run.ts';

/** The defaults of the configuration. */
const auth = { authUrl: 'https://login.example', tenantId: 't', clientId: 'c', clientSecret: 's', scopeAddress: 'a' };
const {
  pollInterval: poll,
  closeDelay,
  recountAfter,
} = sourceSettings.parse({ id: sourceId, baseUrl: 'https://service.example/v2/api', auth });

const days = sized(2, 30);
const recount = recountAfter.filter((ms) => ms <= days * 86_400_000);

test(
  `${days} days after its start an idle source gets as many requests as check predicts, and at most 0.15 a second`,
  { timeout: 300_000 },
  async () => {
    const measured = 3 * hour;
    const it = await world({ after: days * 24 * hour + closeDelay * 1000 });
    const { journal, source, clock } = it;
    // Windows as the collector leaves them, each with its next recount.
    const now = source.now();
    for (let from = base; from < now - closeDelay * 1000; from += closeDelay * 1000) {
      const until = from + closeDelay * 1000;
      const age = recount.find((ms) => until + ms * 1000 > now);
      const turn = proven(0, until + closeDelay * 1000, age === undefined ? undefined : until + age * 1000);
      await journal.close(sourceId, { from, to: until }, turn, lastAge);
    }
    source.delay = 20;
    const settings = { id: sourceId, pollInterval: poll, closeDelay, recountAfter: recount };
    const { collector } = running(it, settings);
    const abort = new AbortController();
    const ended = collector.run(abort.signal);
    // Until the clock of the service is known and overdue work is done.
    await clock.sleep(10 * 60_000, abort.signal);
    const before = source.requests.length;
    await clock.sleep(measured / 1000, abort.signal);
    const asked = source.requests.length - before;
    abort.abort(new Error('enough'));
    await expect(ended).rejects.toThrow('enough');

    const daily = (asked * 24 * hour) / measured;
    const printed = requestsADay(settings);
    // The design's sum: live polls 8,640, close 96 windows with two requests each, recount 96
    // windows at each age, sample recounts at most 288; every five minutes the newest records, and one of them by its time.
    expect(printed).toBe(8_640 + 192 + 96 * sized(3, 7) + 288 + 576);
    expect(daily).toBeLessThanOrEqual(printed);
    // There may be fewer sample recounts, and no record is there to be looked for; all other requests match the printed number.
    expect(daily).toBeGreaterThan((printed - 288 - 288) * 0.98);
    expect(asked / (measured / second)).toBeLessThanOrEqual(0.15);
    const recounts = source.requests.slice(before).filter(({ query, pageSize }) => pageSize === 1 && query.endTime !== undefined).length;
    // One count of each closed window, and one at each age of each window.
    expect(Math.abs((recounts * 24 * hour) / measured - (96 + 96 * recount.length))).toBeLessThanOrEqual(96);
  },
);
