/**
 * The status page in a browser, for a daemon that collects from the reference service and delivers
 * to a file and to an HTTP Event Collector.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { hostname } from 'node:os';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Browser, Page } from 'playwright-core';
import { ago, configure, Daemon, sourceOf } from '../support/e2e-daemon.ts';
import { inPlace } from '../support/e2e-place.ts';
import type { Place } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';
import { inEveryLook, launch, looksRight, missingBrowser, photograph, says, watchedPage } from '../support/browser.ts';

const missing = missingBrowser();
const hostile = '<img src=x onerror=alert(1)><script>alert(2)</script>"\u202e';

let browser: Browser;
beforeAll(async () => {
  if (missing === undefined) browser = await launch();
});
afterAll(async () => {
  if (missing === undefined) await browser.close();
});

interface Collector extends AsyncDisposable {
  readonly url: string;
  /** Rejects its token, with a message that contains markup. */
  isClosed: boolean;
}

/** Responds as Splunk does (docs.splunk.com, "HTTP Event Collector reply codes"). */
async function startCollector(): Promise<Collector> {
  const server = createServer((request, response) => {
    request.resume().once('end', () => {
      response.writeHead(collector.isClosed ? 403 : 200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(collector.isClosed ? { text: `Invalid token ${hostile}`, code: 4 } : { text: 'Success', code: 0 }));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const collector = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    isClosed: false,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return collector;
}

/** A free port; the page expects its daemon there again. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

const rowOf = (page: Page, table: 'sources' | 'sinks', id: string) => page.locator(`#${table} tbody tr:not(.detail)`, { hasText: id });

async function gapAppearsAndIsClosed(page: Page, place: Place, service: Service): Promise<void> {
  await service.set({ total: 'missing' });
  await says(page, '#summary', /^INCOMPLETE/);
  await says(page, '#legend', /\d+ gap/);
  await says(page, '#todo', /could not be proven[^]*To do: waybill gaps list/);
  expect(await page.title()).toMatch(/^✗ INCOMPLETE/);
  await service.set({ total: 'right' });
  const retried = await place.waybill('gaps', 'retry', '--all', '--yes', '--config', 'waybill.yaml');
  expect(retried.code, retried.stderr).toBe(0);
  await says(page, '#summary', /^COMPLETE SO FAR/);
  expect(await page.locator('#legend').innerText()).not.toMatch(/gap/);
}

async function sinkBlocksAndRecovers(page: Page, place: Place, collector: Collector): Promise<void> {
  collector.isClosed = true;
  const row = rowOf(page, 'sinks', 'siem');
  await expect.poll(() => row.innerText(), { timeout: 60_000 }).toMatch(/! blocked/);
  // The server's message appears as text, with bidirectional control characters made visible.
  await expect
    .poll(() => page.locator('#sinks .detail').innerText())
    .toContain('<img src=x onerror=alert(1)><script>alert(2)</script>"\\u202e');
  expect(await page.locator('main img, main script').count()).toBe(0);
  await says(page, '#tiles', /Needs attention\s+siem/);
  await says(page, '#summary', /^DELIVERY BLOCKED at siem since \d\d:\d\d UTC$/);
  await says(page, '#todo', /Sink siem has been blocked[^]*Nothing is lost[^]*waybill explain/);
  await inEveryLook(page, () => looksRight(page));
  collector.isClosed = false;
  const retried = await place.waybill('sinks', 'retry', '--sink', 'siem', '--yes', '--config', 'waybill.yaml');
  expect(retried.code, retried.stderr).toBe(0);
  await expect.poll(() => row.innerText(), { timeout: 120_000 }).toMatch(/✓ active/);
  await says(page, '#summary', /COMPLETE SO FAR AND DELIVERED/);
}

async function losesAndFindsTheDaemon(page: Page, place: Place, daemon: Daemon): Promise<Daemon> {
  await daemon.kill();
  await says(page, '#outage', /^The daemon cannot be reached, since [-\d: ]+ UTC\. The page shows data from [-\d: ]+ UTC\./);
  await says(page, '#link', /^\s*Not reachable · shown: \d+ s old/);
  expect(await page.title()).toBe('✗ Not reachable · Waybill');
  const age = async () => Number(/shown: (\d+) s/.exec(await page.locator('#link').innerText())?.[1]);
  const before = await age();
  await expect.poll(age).toBeGreaterThan(before);
  await looksRight(page);
  await photograph(page, 'status-page-unreachable');
  const next = new Daemon(place);
  await says(page, '#link', /Reachable again · updated \d s ago/);
  expect(await page.locator('#outage').isVisible()).toBe(false);
  await says(page, '#summary', /^COMPLETE SO FAR AND DELIVERED/);
  return next;
}

describe('the status page', () => {
  test(
    'shows a complete ledger, a gap, a blocked sink and an unreachable daemon, and the end of each',
    { timeout: 300_000 },
    async ({ skip }) => {
      skip(missing !== undefined, missing);
      await inPlace('status-page', async (place) => {
        await using collector = await startCollector();
        const service = await Service.start(place, '--records', '900', '--span', '2m', '--activity', '12', '--late-share', '0.05', '--late-delay', '6s'); // prettier-ignore
        const port = await freePort();
        const source = sourceOf(service, ago(60_000), {
          closeDelay: '4s',
          recountAfter: ['6s', '12s'],
          requests: { perSecond: 50, timeout: '5s' },
        });
        const sinks = [
          { id: 'lake', type: 'file', path: './events.ndjson', batch: { maxWait: '200ms' } },
          { id: 'siem', type: 'splunk-hec', url: collector.url, token: 'hec-token', batch: { maxWait: '200ms' } },
        ];
        configure(place, [source], sinks, { admin: { listen: `127.0.0.1:${port}` } });
        const daemon = new Daemon(place);
        await daemon.logged('admin.listening');
        const { page, faults } = await watchedPage(browser, `http://127.0.0.1:${port}/`);
        await says(page, '#summary', /^COMPLETE SO FAR AND DELIVERED/);
        await says(page, '#tiles', /Complete until\s+[-\d: ]+ UTC[^]*Delivered\s+everything proven[^]*Needs attention\s+nothing/);
        expect(await page.title()).toBe(`✓ COMPLETE SO FAR AND DELIVERED · ${hostname()} · Waybill`);

        await gapAppearsAndIsClosed(page, place, service);
        // A window lasts ten seconds.
        await says(page, '#legend', /1\d final/, 150_000);
        await inEveryLook(page, () => looksRight(page));
        await sinkBlocksAndRecovers(page, place, collector);
        const next = await losesAndFindsTheDaemon(page, place, daemon);

        // The report of a period is one click away.
        const report = page.waitForURL(/\/ledger\?format=html&from=-24h&by=window$/);
        await page.getByRole('link', { name: 'Last 24 hours' }).click();
        await report;
        expect(await page.locator('h1').innerText()).toBe('Completeness of the audit trail');
        await page.goBack();
        await page.locator('#from').fill('2026-01-01');
        await page.getByRole('button', { name: 'Open the report' }).click();
        await page.waitForURL(/\/ledger\?format=html&from=2026-01-01&by=day$/);
        expect(await page.locator('h1').innerText()).toBe('Completeness of the audit trail');
        expect(faults).toEqual([]);
        await next.stop();
        await service.stop();
      });
    },
  );
});
