/** The status page of a daemon that has just started: no window is proven yet. */
import { afterAll, beforeAll, test, expect } from 'vitest';
import type { Browser } from 'playwright-core';
import { ago, configure, Daemon, sourceOf } from '../support/e2e-daemon.ts';
import { inPlace } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';
import { inEveryLook, launch, looksRight, missingBrowser, photograph, says, watchedPage } from '../support/browser.ts';

const missing = missingBrowser();

let browser: Browser;
beforeAll(async () => {
  if (missing === undefined) browser = await launch();
});
afterAll(async () => {
  if (missing === undefined) await browser.close();
});

test('shows in the first hour what the daemon waits for, and until when', async ({ skip }) => {
  skip(missing !== undefined, missing);
  await inPlace('status-page-new', async (place) => {
    const service = await Service.start(place, '--records', '50', '--span', '5m', '--rate', '2');
    const source = sourceOf(service, ago(60_000), { closeDelay: '15m', recountAfter: ['1h'] });
    // Batches wait so long that the page nearly always shows records in transit.
    configure(place, [source], [{ id: 'lake', type: 'file', path: './events.ndjson', batch: { maxWait: '7s' } }]);
    const daemon = new Daemon(place);
    const { addresses } = (await daemon.logged('admin.listening')) as unknown as { addresses: string[] };
    await daemon.logged('sink.first_delivery');
    const { page, faults } = await watchedPage(browser, `${addresses[0] ?? ''}/`);
    await says(page, '#summary', /^NOTHING DUE YET/);
    await says(page, '#summary-rest', /^first proof about [-\d: ]+ UTC/);
    // The tile shows the time of the summary. Before midnight both have the date of the next day too.
    const [, due = 'no time'] = /(\d\d:\d\d) UTC/.exec(await page.locator('#summary-rest').innerText()) ?? [];
    await says(page, '#waits', /production waits: the clock of the service is being measured.*next window proven about/);
    await says(
      page,
      '#tiles',
      new RegExp(
        `Complete until\\s+nothing proven yet\\s+first proof about [-\\d ]*${due}[^]*Delivered\\s+nothing due yet\\s+lake: [1-9]\\d* (entry|entries) to deliver`,
      ),
    );
    await inEveryLook(page, () => looksRight(page));
    await photograph(page, 'status-page-first-hour');
    expect(faults).toEqual([]);
    await daemon.stop();
    await service.stop();
  });
});
