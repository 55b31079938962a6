/**
 * The status page for many sources, with the admin server alone: order, filter, selection, keyboard, states that a first run does not reach,
 * and several faults at once. Takes the pictures of states that are a day old.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Browser, Page } from 'playwright-core';
import { startAdmin } from '../../src/admin/server.ts';
import { History } from '../../src/admin/page/history.ts';
import { overviewOf } from '../../src/admin/page/overview.ts';
import type { Snapshot } from '../../src/model/snapshot.ts';
import { coverage, delayCounts, now, sink, snapshot, source, windowStates } from '../support/report/snapshots.ts';
import { inEveryLook, launch, looksRight, missingBrowser, photograph, watchedPage } from '../support/browser.ts';

const missing = missingBrowser();
const second = 1_000_000;
const quarter = 900 * second;
const ids = Array.from({ length: 97 }, (_, i) => `tenant-${String(i).padStart(2, '0')}`);
const windows = windowStates({ gap: 1, accepted: 1, inDoubt: 1 });
const open = coverage({ windows });

const many: Snapshot = snapshot({
  journal: { ...snapshot().journal, pruned: 10_000 },
  sources: [
    ...ids.map((id) => source({ id })),
    source({ id: 'suspended-one', state: 'suspended', held: { reason: 'rows', message: 'the service shows fewer records than before' } }),
    source({ id: 'with-a-gap', windows, coverage: open }),
    source({ id: 'retired-one', state: 'retired', retiredAt: now - 100 * quarter }),
  ],
  sinks: [
    sink({ id: 'lake', type: 'file' }),
    sink({
      id: 'siem',
      state: 'retrying',
      attempts: 2,
      lagEntries: 1_234,
      lagSeconds: 1_200,
      lastError: '503 <b>busy</b>',
      deadLetters: 3,
    }),
    sink({ id: 'old', type: 'syslog', state: 'retired', hasDelivered: false, lastSuccess: undefined }),
  ],
});

/** Six hours: proven windows, and for `with-a-gap` one window in each other state; the lag is a sawtooth. */
function drawn(shown: Snapshot): Parameters<typeof overviewOf> {
  const end = now - (now % quarter) - quarter;
  const windowAt = (i: number, all: number) => ({
    from: end - (all - i) * quarter,
    to: end - (all - i - 1) * quarter,
    records: 30 + (i % 9),
    total: 33,
  });
  const proven = Array.from({ length: 24 }, (_, i) => ({
    ...windowAt(i, 24),
    state: i < 20 ? ('final' as const) : ('proven' as const),
    isInDoubt: false,
  }));
  const mixed = proven.map((window, i) => ({
    ...window,
    ...(i === 6 && { state: 'accepted' as const }),
    ...(i === 12 && { state: 'gap' as const }),
    ...(i === 21 && { isInDoubt: true }),
  }));
  const history = new History();
  for (let at = now - 24 * quarter; at <= now; at += 10 * second) {
    const lagSeconds = 900 + ((at / second) % 900);
    const sources = shown.sources.map(({ id }, i) => [id, { lagSeconds, collected: at / second + i }] as const);
    const failedAt = (lag: number): number => (at > now - lag * second ? (at - now) / second + lag : 2);
    const sinks = new Map(shown.sinks.map(({ id, lagSeconds: lag }) => [id, { lagSeconds: failedAt(lag), acknowledged: at / second }]));
    history.add({ at, sources: new Map(sources), sinks });
  }
  return [shown, new Map(shown.sources.map(({ id }) => [id, id === 'with-a-gap' ? mixed : proven])), history, { records: 1_208, late: 3 }];
}

let browser: Browser;
let running: AsyncDisposableStack;
beforeAll(async () => {
  running = new AsyncDisposableStack();
  if (missing === undefined) browser = await launch();
});
afterAll(async () => {
  await running.disposeAsync();
  if (missing === undefined) await browser.close();
});

async function start(
  shown = many,
  { gaps = [], accepted = [] }: { readonly gaps?: readonly object[]; readonly accepted?: readonly object[] } = {},
): Promise<string> {
  const empty = () => Promise.resolve({ type: 'application/json', text: '{}' });
  const made = overviewOf(...drawn(shown));
  const admin = await startAdmin(
    { listen: '127.0.0.1:0' },
    {
      ...{ snapshot: () => shown, ledger: empty, operations: empty, metricsText: () => Promise.resolve('') },
      gaps: () => Promise.resolve({ type: 'application/json', text: JSON.stringify({ gaps, inDoubt: [], accepted }) }),
      ...{ log: { write: () => undefined }, clock: { now: () => now / 1000, monotonic: () => 0, sleep: () => Promise.resolve() } },
      overview: () => Promise.resolve(made),
    },
  );
  running.use(admin);
  return `${admin.addresses[0] ?? ''}/`;
}

const firstCells = (page: Page, table: string) => page.locator(`#${table} tbody th`).allInnerTexts();

test('sources with problems come first, a filter finds one of a hundred, and the keyboard alone selects the source to draw', async ({
  skip,
}) => {
  skip(missing !== undefined, missing);
  const { page, faults } = await watchedPage(browser, await start());
  const sources = await firstCells(page, 'sources');
  expect(sources).toHaveLength(100);
  expect([...sources.slice(0, 2), sources.at(-1)]).toEqual(['suspended-one', 'with-a-gap', 'retired-one']);
  expect((await firstCells(page, 'sinks')).map((text) => text.split(/\s/)[0])).toEqual(['siem', 'lake', 'old']);
  expect(await page.locator('#sinks').innerText()).toContain('503 <b>busy</b>');
  expect(await page.locator('#tiles').innerText()).toContain('full in about 5 d unless siem resumes');
  expect(await page.locator('#picture svg').getAttribute('aria-label')).toMatch(
    /^Windows of suspended-one: 4 proven, 20 final\..*: lake 2 s, siem 20 min\.$/,
  );

  await page.keyboard.press('Tab');
  expect(await page.locator(':focus').innerText()).toBe('Skip to the status');
  await page.locator('#find-sources').focus();
  await page.keyboard.type('with-a');
  await expect.poll(() => firstCells(page, 'sources')).toEqual(['with-a-gap']);
  expect(await page.locator('#sources-count').innerText()).toBe('1 of 100');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  const label = () => page.locator('#picture svg').getAttribute('aria-label');
  await expect.poll(label).toMatch(/^Windows of with-a-gap: .*1 gap.*1 in doubt/);
  // The next refresh changes neither focus nor selection.
  await page.waitForResponse(/overview\?source=with-a-gap/);
  expect(await page.locator(':focus').getAttribute('data-source')).toBe('with-a-gap');
  expect(new URL(page.url()).hash).toBe('#source=with-a-gap');
  // Another filter moves its row: the focus stays with the source.
  await page.evaluate(`{
    const input = document.getElementById('find-sources');
    input.value = '';
    input.dispatchEvent(new Event('input'));
  }`);
  expect(await firstCells(page, 'sources')).toHaveLength(100);
  expect(await page.locator(':focus').getAttribute('data-source')).toBe('with-a-gap');
  await page.locator('#find-sources').fill('with-a');
  await page.locator('#windows summary').press('Enter');
  await expect.poll(() => page.locator('#windows-table tbody tr').count()).toBe(24);
  await inEveryLook(page, () => looksRight(page));
  await page.locator('#windows summary').click();
  await photograph(page, 'status-page-sources');
  await page.locator('#find-sources').fill('');
  await looksRight(page);

  // A source that no longer exists is not requested again.
  await page.goto(`${new URL(page.url()).origin}/#source=gone`);
  await page.reload();
  await expect.poll(label).toMatch(/^Windows of suspended-one/);
  expect(faults).toEqual([]);
});

const minute = 60 * second;
const failing = { since: now - 12 * minute, nextAttempt: now + 31 * second };
const refused =
  'cannot obtain a token for "sources.globex.auth": the token endpoint refuses the credentials: invalid_client; see sources.globex.auth.clientSecret';
const busy = 'cannot read the logs of "initech": the service is busy: 503 Service Unavailable';
const down = 'cannot reach "https://splunk.example:8088": connect ECONNREFUSED 192.0.2.7:8088';
const names = ['acme', 'contoso', 'fabrikam', 'northwind', 'tailspin', 'wingtip', 'litware', 'proseware', 'adatum', 'trey'];

/** Twenty sources and eight sinks of a state that is a day old; three and two of them are bad. */
const faulty: Snapshot = snapshot({
  ...{ created: now - 26 * 3_600 * second, host: 'collector-1', journal: { ...snapshot().journal, pruned: 10_000 } },
  secrets: { 'sources.globex.auth.clientSecret': '${file:/run/secrets/globex}', 'sinks.siem-eu.token': '${file:/run/secrets/hec}' },
  sources: [
    ...names.map((id) => source({ id: `${id}-production` })),
    ...names.slice(0, 5).map((id) => source({ id: `${id}-test` })),
    source({ id: 'a-tenant-with-a-name-of-32-letters', collected: 1_204_311 }),
    source({ id: 'hooli', state: 'suspended', held: { reason: 'rows', message: 'the service shows fewer records than before' } }),
    source({ id: 'globex', trouble: refused, lastError: refused, failing: { ...failing, code: 'token_refused', message: refused } }),
    source({ id: 'initech', trouble: busy, lastError: busy, failing: { ...failing, code: 'source_busy', message: busy } }),
    source({ id: 'with-a-gap', windows: windowStates({ gap: 1 }), coverage: open }),
  ],
  sinks: [
    ...['lake', 'archive', 'kafka-eu', 'kafka-us', 'elastic'].map((id) => sink({ id, type: id.replace(/-.*/, '') })),
    sink({ id: 'syslog', type: 'syslog', lastError: down, recoveredAt: now - 8 * minute }),
    sink({
      ...{
        id: 'siem-eu',
        type: 'splunk-hec',
        state: 'blocked',
        attempts: 14,
        lagEntries: 464,
        lagSeconds: 800,
        failingSince: now - 800 * second,
      },
      ...{
        lastError: '403 code 4: Invalid token',
        lastCode: 'sink_blocked',
        nextAttempt: now + 40 * second,
        lastSuccess: now - 800 * second,
      },
    }),
    sink({
      ...{
        id: 'siem-us',
        type: 'splunk-hec',
        state: 'retrying',
        attempts: 9,
        lagEntries: 98,
        lagSeconds: 130,
        failingSince: now - 130 * second,
      },
      ...{ lastError: down, lastCode: 'sink_unavailable', nextAttempt: now + 34 * second, lastSuccess: now - 130 * second },
    }),
  ],
});
const gap = {
  ...{ source: 'with-a-gap', from: '2026-11-20T01:30:00Z', to: '2026-11-20T01:45:00Z', state: 'gap', received: 18, total: 7 },
  ...{ message: 'count: received 18, the service counted 7', nextTry: '2026-11-20T03:18:00Z' },
};

test('three of twenty sources and two of eight sinks fail: a short headline, every problem with its act, and quiet charts', async ({
  skip,
}) => {
  skip(missing !== undefined, missing);
  const { page, faults } = await watchedPage(
    browser,
    await start(faulty, { gaps: [gap], accepted: [{ ...gap, state: 'accepted', from: '2026-11-19T00:00:00Z' }] }),
  );
  const text = (selector: string): Promise<string> => page.locator(selector).innerText();
  expect(await text('#summary')).toBe('3 of 20 sources fail, 2 of 8 sinks do not deliver');
  expect(await text('#summary-rest')).toBe('the rest is incomplete');
  expect(await page.title()).toBe('✗ 3 of 20 sources fail, 2 of 8 sinks do not deliver · collector-1 · Waybill');
  expect(await text('#host')).toBe('collector-1');

  const problems = await page.locator('#problems > li').allInnerTexts();
  expect(problems).toHaveLength(6);
  expect(problems[1]).toMatch(/put a valid secret into \/run\/secrets\/globex[^]*More: waybill explain token_refused/);
  for (const problem of problems) expect(problem).toMatch(/To do: [^]*More: waybill explain/);
  // Prose is not a command; each command has a button.
  expect(await page.locator('#problems code').allInnerTexts()).toEqual(
    expect.arrayContaining([
      'waybill check --sink siem-us',
      'waybill sinks retry --sink siem-us',
      'waybill gaps list',
      'waybill explain a gap',
    ]),
  );
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.locator('[data-copy="waybill gaps list"]').click();
  await expect.poll(() => page.evaluate('navigator.clipboard.readText()')).toBe('waybill gaps list');

  const tiles = await text('#tiles');
  expect(tiles).toMatch(/Needs attention\s+hooli, globex, initech and 3 more\s+20 sources, 8 sinks/);
  expect(tiles).toMatch(/Records today\s+1,208\s+3 late/);
  expect(tiles).toMatch(/Next certificate end\s+in 41 d\s+2027-01-01, sources\.production/);
  expect(await text('#sources-count')).toBe('20');
  expect((await text('#gaps')).replace(/\s+/g, ' ')).toMatch(/with-a-gap gap 18 7 03:18 count: received 18, the service counted 7\.$/);
  // Errors stand across the width, below the row.
  expect((await page.locator('#sources .detail').first().boundingBox())?.width).toBeGreaterThan(1_000);
  expect(await text('#sinks')).toMatch(/syslog[^]*resolved 8 min ago/);
  expect(await page.locator('#sinks details small').isVisible()).toBe(false);
  // Only failing sinks have a color.
  expect((await page.locator('#sink-legend li').allInnerTexts()).map((each) => each.trim())).toEqual([
    'siem-eu',
    'siem-us',
    '6 other sinks',
  ]);

  await page.locator('#sinks summary').click();
  await page.waitForResponse(/overview/);
  expect(await page.locator('#sinks details small').isVisible()).toBe(true);
  await page.locator('#sinks summary').click();
  await inEveryLook(page, async (look) => {
    await looksRight(page);
    if (look !== 'dark') await photograph(page, look === 'light' ? 'status-page-faults' : 'status-page-faults-narrow');
  });
  expect(faults).toEqual([]);
});

const wellDrawn: Snapshot = snapshot({
  ...{ created: faulty.created, host: 'collector-1' },
  sources: [source({ delays: { since: 1, to: 2, recent: delayCounts({ 2: 990, 4: 10 }), before: delayCounts({}), longest: 40 } })],
  sinks: [sink({ id: 'lake', type: 'file' }), sink({ id: 'siem', type: 'splunk-hec' })],
});

test('a healthy state and a blocked sink, a day after the start', async ({ skip }) => {
  skip(missing !== undefined, missing);
  const { page, faults } = await watchedPage(browser, await start(wellDrawn));
  expect(await page.locator('#tiles').innerText()).toMatch(/Delay p99\s+up to 5 s/);
  expect(await page.locator('#todo').isVisible()).toBe(false);
  await inEveryLook(page, async (look) => {
    await looksRight(page);
    await photograph(page, look === 'light' ? 'status-page' : `status-page-${look}`);
  });
  const blocked = { ...faulty.sinks.find(({ id }) => id === 'siem-eu'), id: 'siem' };
  const other = await watchedPage(browser, await start({ ...wellDrawn, sinks: [sink({ id: 'lake', type: 'file' }), sink(blocked)] }));
  expect(await other.page.locator('#summary').innerText()).toBe('DELIVERY BLOCKED at siem since 02:49 UTC');
  await looksRight(other.page);
  await photograph(other.page, 'status-page-blocked');
  expect([...faults, ...other.faults]).toEqual([]);
});
