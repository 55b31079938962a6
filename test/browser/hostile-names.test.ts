/**
 * The status page with markup, quotes and direction marks in every name and message, with the admin
 * server alone. The configuration refuses such names; the page must not depend on it.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Browser } from 'playwright-core';
import { startAdmin } from '../../src/admin/server.ts';
import { History } from '../../src/admin/page/history.ts';
import { overviewOf } from '../../src/admin/page/overview.ts';
import { now, sink, snapshot, source } from '../support/report/snapshots.ts';
import { launch, looksRight, missingBrowser, says, watchedPage } from '../support/browser.ts';

const missing = missingBrowser();
const hostile = `<img src=x onerror=alert(1)><script>alert(2)</script>"'&amp;]\u202egnp\u200f`;
const visible = `<img src=x onerror=alert(1)><script>alert(2)</script>"'&amp;]\\u202egnp\\u200f`;
const first = `first ${hostile}`;
const second = `second ${hostile}`;

const named = snapshot({
  version: hostile,
  journal: { ...snapshot().journal, paused: `paused ${hostile}` },
  sources: [
    source({ id: first, state: 'suspended', held: { reason: 'rows', message: hostile } }),
    source({ id: second, lastError: hostile }),
  ],
  sinks: [sink({ id: `sink ${hostile}`, type: `type ${hostile}`, state: 'retrying', attempts: 4, lastError: `error ${hostile}` })],
});

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

async function start(tokens: { readToken?: { read: () => string } } = {}): Promise<string> {
  const empty = () => Promise.resolve({ type: 'application/json', text: '{}' });
  const overview = overviewOf(named, new Map(), new History());
  const admin = await startAdmin(
    { listen: '127.0.0.1:0', ...tokens },
    {
      ...{ snapshot: () => named, ledger: empty, gaps: empty, operations: empty, metricsText: () => Promise.resolve('') },
      ...{ log: { write: () => undefined }, clock: { now: () => now / 1000, monotonic: () => 0, sleep: () => Promise.resolve() } },
      overview: () => Promise.resolve(overview),
    },
  );
  running.use(admin);
  return `${admin.addresses[0] ?? ''}/`;
}

test('names and messages are text: no markup takes effect, and direction marks are visible', async ({ skip }) => {
  skip(missing !== undefined, missing);
  const { page, faults } = await watchedPage(browser, await start());
  const text = (selector: string): Promise<string> => page.locator(selector).innerText();
  expect(await text('#sources')).toContain(`first ${visible}`);
  expect(await text('#sinks')).toContain(`sink ${visible}`);
  expect(await text('#sinks')).toContain(`type ${visible}`);
  expect(await text('#sinks')).toContain(`error ${visible}`);
  expect(await text('#tiles')).toContain(`paused ${visible}`);
  expect(await text('#version')).toBe(visible);
  expect(await page.locator('#picture svg text').allTextContents()).toContain(`sink ${visible}`);
  expect(await page.locator('#source option').allTextContents()).toEqual([`first ${visible}`, `second ${visible}`]);

  // The name itself, not its visible form, selects the source.
  await page.locator('#sources tbody button').nth(1).click();
  await expect.poll(() => page.locator('#sources tr.chosen button').getAttribute('data-source')).toBe(second);
  await page.waitForResponse((response) => response.ok() && new URL(response.url()).searchParams.get('source') === second);

  expect(await page.locator('body').innerText()).not.toMatch(/[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/);
  expect(await page.locator('main img, main script').count()).toBe(0);
  await looksRight(page);
  expect(faults).toEqual([]);
});

test('readToken opens the page as the password of any name, and the page reports when it is refused', async ({ skip }) => {
  skip(missing !== undefined, missing);
  let token = 'read:"<token>" & more';
  const url = await start({ readToken: { read: () => token } });
  const refused = await browser.newPage({ httpCredentials: { username: 'anyone', password: 'another' } });
  const response = await refused.goto(url);
  expect(response?.status()).toBe(401);
  expect(await refused.locator('body').innerText()).not.toContain('first');
  await refused.close();

  const { page, faults } = await watchedPage(browser, url, token);
  await says(page, '#sources', /first/);
  token = 'replaced';
  const rejected = (reason: string): RegExp =>
    new RegExp(`^The daemon rejected the token \\(${reason}[^]*\\); reload the page to send another one`);
  await says(page, '#outage', rejected('wrong token'));
  // The page tries again every few seconds.
  await says(page, '#outage', rejected('too many wrong tokens'));
  expect(faults).toEqual([]);
});
