/**
 * Debian's Chromium, a page restricted to this origin, the findings of axe on it, and screenshots
 * for docs/.
 */
import { accessSync, mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import type { Browser, Page } from 'playwright-core';
import { expect } from 'vitest';

const executablePath = process.env['WAYBILL_CHROMIUM'] ?? '/usr/bin/chromium';
const images = fileURLToPath(new URL('../../docs/images/', import.meta.url));
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** The reason why no browser is available; undefined if one is. */
export function missingBrowser(): string | undefined {
  try {
    accessSync(executablePath);
    return undefined;
  } catch {
    return `there is no ${executablePath}; install it with "apt-get install chromium", or name another one in WAYBILL_CHROMIUM`;
  }
}

export function launch(): Promise<Browser> {
  // As root Chromium has no sandbox; it opens only pages of this program here.
  return chromium.launch({ executablePath, args: process.getuid?.() === 0 ? ['--no-sandbox'] : [] });
}

interface Watched {
  readonly page: Page;
  /** Requests to another origin, script errors, policy violations, dialogs. */
  readonly faults: string[];
}

/** @param token  the password that the browser sends */
export async function watchedPage(browser: Browser, url: string, token?: string): Promise<Watched> {
  const httpCredentials = token === undefined ? {} : { httpCredentials: { username: 'anyone', password: token } };
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, colorScheme: 'light', ...httpCredentials });
  const faults: string[] = [];
  page.on('request', (request) => {
    if (new URL(request.url()).origin !== new URL(url).origin) faults.push(`foreign request ${request.url()}`);
  });
  page.on('pageerror', (error) => faults.push(`script error ${error.message}`));
  page.on('dialog', (dialog) => {
    faults.push(`dialog ${dialog.message()}`);
    void dialog.dismiss();
  });
  // The browser itself logs a failed request to the console while the daemon is down.
  page.on('console', (message) => {
    if (message.type() === 'error' && !/^Failed to load resource/.test(message.text())) faults.push(message.text());
  });
  await page.goto(url);
  await page.locator('#content').waitFor();
  return { page, faults };
}

/** Waits until this part of the page contains the text. */
export async function says(page: Page, selector: string, words: RegExp, ms = 60_000): Promise<void> {
  await expect.poll(() => page.locator(selector).first().innerText(), { timeout: ms, message: selector }).toMatch(words);
}

/**
 * Checks the page for findings that axe calls serious or critical, and for content that exceeds its
 * width.
 */
export async function looksRight(page: Page): Promise<void> {
  // By the debugger, which is not subject to the page's policy.
  await page.evaluate(axe);
  const found = await page.evaluate<{ violations: { id: string; impact: string; nodes: { html: string }[] }[] }>('axe.run()');
  const serious = found.violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
  expect(serious.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`)).toEqual([]);
  const { wide, width } = await page.evaluate<Record<string, number>>(
    '({ wide: document.documentElement.scrollWidth, width: innerWidth })',
  );
  expect(wide).toBe(width);
}

/** `docs/images/NAME.png` */
export async function photograph(page: Page, name: string): Promise<void> {
  mkdirSync(images, { recursive: true });
  await page.screenshot({ path: `${images}${name}.png`, fullPage: true });
}

/** Calls `work` in light mode, in dark mode, and on a narrow screen. Then restores light and wide. */
export async function inEveryLook(page: Page, work: (look: 'light' | 'dark' | 'narrow') => Promise<void>): Promise<void> {
  await work('light');
  await page.emulateMedia({ colorScheme: 'dark' });
  await work('dark');
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize({ width: 360, height: 780 });
  // The chart is redrawn for the new width.
  await expect.poll(async () => Number(await page.locator('#picture svg').getAttribute('width'))).toBeLessThan(360);
  await work('narrow');
  await page.setViewportSize({ width: 1280, height: 900 });
}
