/**
 * The status page for a hundred sources, with the admin server alone: order, filter, selection,
 * keyboard, and states that a first run does not reach.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Browser, Page } from 'playwright-core';
import { startAdmin } from '../../src/admin/server.ts';
import { History } from '../../src/admin/page/history.ts';
import { overviewOf } from '../../src/admin/page/overview.ts';
import type { Snapshot } from '../../src/model/snapshot.ts';
import { windowStates, coverage, now, sink, snapshot, source } from '../support/report/snapshots.ts';
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

/**
 * Six hours: proven windows, and for `with-a-gap` one window in each other state; the lag is a
 * sawtooth.
 */
function drawn(): Parameters<typeof overviewOf> {
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
    const sources = ['suspended-one', 'with-a-gap'].map((id, i) => [id, { lagSeconds, collected: at / second + i }] as const);
    const sinks = new Map([
      ['lake', { lagSeconds: 1, acknowledged: at / second }],
      ['siem', { lagSeconds: at > now - 1_200 * second ? (at - now) / second + 1_200 : 2, acknowledged: at / second }],
    ]);
    history.add({ at, sources: new Map(sources), sinks });
  }
  return [many, new Map(many.sources.map(({ id }) => [id, id === 'with-a-gap' ? mixed : proven])), history];
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

async function start(): Promise<string> {
  const empty = () => Promise.resolve({ type: 'application/json', text: '{}' });
  const made = overviewOf(...drawn());
  const admin = await startAdmin(
    { listen: '127.0.0.1:0' },
    {
      ...{ snapshot: () => many, ledger: empty, gaps: empty, operations: empty, metricsText: () => Promise.resolve('') },
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
    /^Windows of suspended-one: 4 proven, 20 final\..*: lake 1 s, siem 20 min\.$/,
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
