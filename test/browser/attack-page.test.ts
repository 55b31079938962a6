/** The page of `waybill demo --attack` in Chromium: one investigation, from the alert to what the person did. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { Alerts } from '../../src/cli/commands/demo/alerts.ts';
import { eventParts } from '../../src/cli/commands/demo/line.ts';
import { PageServer } from '../../src/cli/commands/demo/page.ts';
import { launch, looksRight, missingBrowser, photograph, says, watchedPage } from '../support/browser.ts';
import { rules } from '../support/detections/company.ts';
import { inPlace } from '../support/e2e-place.ts';
import { waybillProgram } from '../support/programs.ts';

const missing = missingBrowser();

test('the page shows the alert and the timeline of an attack, and the end of the demo', async ({ skip }) => {
  skip(missing !== undefined, missing);
  await inPlace('attack-page', async (place) => {
    const demo = spawn(process.execPath, [waybillProgram, 'demo', '--attack', 'harvest', '--dir', place.path('demo')], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const ended = once(demo, 'exit');
    try {
      let printed = '';
      demo.stdout.setEncoding('utf8').on('data', (part: string) => (printed += part));
      const addressIn = (): string => /^What an analyst sees: (\S+)$/m.exec(printed)?.[1] ?? '';
      await expect.poll(addressIn).not.toBe('');
      await using browser = await launch();
      const { page, faults } = await watchedPage(browser, addressIn());
      // During the attack, so that the picture shows its events among other events.
      await says(page, '#timeline', /Protected file open allowed[^]* and 2\d more/);
      demo.kill('SIGINT');
      await says(page, 'header', /The demo has ended/);
      await says(page, '.alert dd', /^Person\d+ Sample <person\d+\.sample@example\.com>$/);
      const who = await page.locator('.alert dd').first().innerText();
      expect(await page.locator('#timeline h2').innerText()).toBe(`3. What ${who} did`);
      for (const width of [360, 1280]) {
        await page.setViewportSize({ width, height: 600 });
        await looksRight(page);
      }
      expect(faults).toEqual([]);
      await photograph(page, 'investigation');
    } finally {
      demo.kill('SIGINT');
      await ended;
    }
  });
});

test('names of a hostile record run no script and stay text', async ({ skip }) => {
  skip(missing !== undefined, missing);
  const hostile = `"><img src=x onerror="alert(1)"><script>alert(2)</script>&lt;\u202e'`;
  const alerts = new Alerts(rules, {});
  const texts = { code: 'Decrypt:AccessGranted:Success', reason: hostile, created: '2026-03-04T09:00:01Z', outcome: 'success' };
  const documents = Array.from({ length: 30 }, (_, second) => ({
    '@timestamp': new Date(Date.parse('2026-03-04T09:00:00Z') + second * 1_000).toISOString(),
    dpas: { uid: `uid-${second}`, action_attempted: 'Decrypt', result: 'AccessGranted', payload: { id: `p-${second}` } },
    event: texts,
    user: { id: hostile, email: hostile, full_name: hostile },
    file: { name: `${hostile} ${second}`, uid: 'olga' },
    host: { hostname: hostile },
    source: { ip: '192.0.2.7' },
  }));
  expect(alerts.add(documents)).not.toEqual([]);
  const newest = documents.map((document) => ({ ...eventParts(document), isDenied: true }));
  await using server = new PageServer(() => ({ findings: alerts.findings(), newest, hasEnded: true }));
  const address = await server.listen();
  await using browser = await launch();
  const { page, faults } = await watchedPage(browser, address);
  // The direction mark is shown as an escape.
  const shown = hostile.replace('\u202e', '\\u202e');
  expect(await page.locator('.alert dd').first().innerText()).toBe(`${shown} <${shown}>`);
  expect(await page.locator('#newest tbody tr').first().innerText()).toContain(`${shown} 0`);
  expect(await page.locator('#timeline tbody tr').first().innerText()).toContain(`${shown} 4 and 25 more`);
  expect(await page.locator('img, script, iframe').count()).toBe(0);
  await looksRight(page);
  expect(faults).toEqual([]);
  // Another name is refused: a page of that name could read this one.
  const response = await page.request.get(address, { headers: { host: 'attacker.example' } });
  expect(response.status()).toBe(404);
});
