/** The output of `waybill demo` until its first ledger, as the picture of a terminal in README. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { inPlace } from '../support/e2e-place.ts';
import { waybillProgram } from '../support/programs.ts';
import { launch, missingBrowser, photograph } from '../support/browser.ts';

const missing = missingBrowser();

test('the demo prints denials as they arrive, then a ledger whose windows are proven', async ({ skip }) => {
  skip(missing !== undefined, missing);
  await inPlace('terminal', async (place) => {
    const demo = spawn(process.execPath, [waybillProgram, 'demo', '--dir', place.path('demo')], {
      env: { ...process.env, NO_COLOR: '1' },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let printed = '';
    for await (const chunk of demo.stdout) {
      printed += String(chunk);
      if (/^Collected since the ledger started: .*$/m.test(printed)) break;
    }
    demo.kill('SIGINT');
    await once(demo, 'exit');
    const shown = printed.slice(0, printed.indexOf('Collected since')).trimEnd();
    expect(shown).toMatch(/^COMPLETE SO FAR AND DELIVERED$/m);
    expect(shown).toMatch(/ DENIED .* final /s);

    await using browser = await launch();
    const page = await browser.newPage({ viewport: { width: 1000, height: 600 }, deviceScaleFactor: 1.5 });
    await page.setContent(picture(`$ npm run demo\n\n${shown}`.replaceAll(place.path('demo'), './demo')));
    await photograph(page, 'demo');
  });
});

function picture(text: string): string {
  const escaped = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  const colored = escaped
    .replace(/^COMPLETE.*$/gm, '<b class="good">$&</b>')
    .replace(/\bDENIED \w+/g, '<span class="bad">$&</span>')
    .replace(/\b(final|proven|all)(?= {2}|$)/g, '<span class="good">$&</span>');
  return `<!doctype html><style>
    body { margin: 0; background: #12161c; color: #d6dde6; }
    pre { width: max-content; margin: 0; padding: 20px 24px; font: 13px/1.45 'DejaVu Sans Mono', monospace; }
    .good { color: #6fcf8e; } .bad { color: #ff8f7a; } b { font-weight: 600; }
  </style><pre>${colored}</pre>`;
}
