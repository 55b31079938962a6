/** The completeness report as a page: nothing is beyond its right edge, and axe finds nothing serious. */
import { expect, test } from 'vitest';
import { ledgerHtml } from '../../src/report/ledger/html.ts';
import { launch, looksRight, missingBrowser, photograph } from '../support/browser.ts';
import { mixed } from '../support/report/reports.ts';

const missing = missingBrowser();
const services = {
  production: { host: 'service.example', tenant: 'tenant-1', closeDelaySeconds: 900, recountSeconds: [3_600, 21_600, 86_400] },
};

test('with two sinks, the last column of every table is visible at a width of 1260 pixels', async ({ skip }) => {
  skip(missing !== undefined, missing);
  await using browser = await launch();
  const page = await browser.newPage({ viewport: { width: 1260, height: 900 }, colorScheme: 'light' });
  await page.setContent([...ledgerHtml(mixed, { by: 'window', tz: 'UTC', version: '0.1.0', services })].join(''));
  await looksRight(page);
  const hidden = await page.evaluate<string[]>(
    "[...document.querySelectorAll('.scroll')].filter((each) => each.scrollWidth > each.clientWidth).map((each) => each.ariaLabel)",
  );
  expect(hidden).toEqual([]);
  await photograph(page, 'report');
});
