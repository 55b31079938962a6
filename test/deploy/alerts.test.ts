/** Alerts and metrics, checked by promtool, which is part of Prometheus. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parse, stringify } from 'yaml';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { notRun, programPath, run } from './programs.ts';

const root = resolve(import.meta.dirname, '../..');
const alerts = join(root, 'content/prometheus/alerts.yaml');
const tests = join(root, 'test/deploy/alerts.test.yaml');
const promtool = programPath('promtool', 'prometheus-2.42.0/usr/bin') ?? '';
const skipped = notRun({ promtool });

interface Rule {
  readonly alert: string;
  readonly expr: string;
}
interface RuleFile {
  readonly groups: readonly { readonly name: string; readonly rules: readonly Rule[] }[];
}

interface Cases {
  readonly tests: readonly { readonly alert_rule_test?: readonly { readonly alertname: string }[] }[];
}

describe('promtool', () => {
  beforeEach(({ skip }) => {
    if (skipped !== undefined) skip(skipped);
  });

  const file = parse(readFileSync(alerts, 'utf8')) as RuleFile;
  const rules = file.groups.flatMap((group) => group.rules);

  it('accepts the alerts, each of which fires and is silent as its tests expect', () => {
    const checked = run(promtool, ['check', 'rules', alerts]);
    expect(checked.ok, checked.text).toBe(true);
    const tested = run(promtool, ['test', 'rules', tests]);
    expect(tested.ok, tested.text).toBe(true);
  });

  // Both directions, so that each alert has a case that fires and a case that is silent.
  it.each(rules.flatMap(({ alert }) => ['vector(0) < 0', 'vector(1)'].map((expr) => [alert, expr] as const)))(
    'the tests fail for %s when its expression is %s',
    (alert, expr) => {
      const folder = mkdtempSync(join(tmpdir(), 'waybill-alerts-'));
      onTestFinished(() => rmSync(folder, { recursive: true }));
      // Without the other alerts: an alert reads metrics, and no other alert.
      const changed = rules.filter((rule) => rule.alert === alert).map((rule) => ({ ...rule, expr }));
      writeFileSync(join(folder, 'alerts.yaml'), stringify({ groups: [{ name: 'waybill', rules: changed }] }));
      const cases = parse(readFileSync(tests, 'utf8'), { maxAliasCount: -1 }) as Cases;
      const own = cases.tests.flatMap(({ alert_rule_test: all = [], ...each }) => {
        const checks = all.filter(({ alertname }) => alertname === alert);
        return checks.length > 0 ? [{ ...each, alert_rule_test: checks }] : [];
      });
      writeFileSync(join(folder, 'tests.yaml'), stringify({ ...cases, rule_files: ['alerts.yaml'], tests: own }));
      const tested = run(promtool, ['test', 'rules', join(folder, 'tests.yaml')]);
      expect(tested.ok).toBe(false);
      expect(tested.text).toContain(alert);
    },
  );

  it('finds no problem in the metrics of the demo', async () => {
    const port = await freePort();
    const folder = mkdtempSync(join(tmpdir(), 'waybill-metrics-'));
    const demo = spawn(join(root, 'bin/waybill.js'), ['demo', '--port', String(port), '--dir', folder], { stdio: 'ignore' });
    onTestFinished(async () => {
      demo.kill('SIGTERM');
      if (demo.exitCode === null) await once(demo, 'exit');
      rmSync(folder, { recursive: true });
    });
    const metrics = (): Promise<string> => fetch(`http://127.0.0.1:${port}/metrics`).then((response) => response.text(), String);
    // Every kind of series exists once a record is delivered and a window is proven.
    await expect.poll(metrics).toMatch(/waybill_events_delivered_total\{sink="siem"\} [1-9][^]*waybill_delivery_delay_seconds_bucket/);
    await expect.poll(metrics).toMatch(/waybill_windows\{[^}]*state="proven"[^}]*\} [1-9]/);
    const checked = run(promtool, ['check', 'metrics'], await metrics());
    expect(checked.ok, checked.text).toBe(true);
    expect(checked.text).toBe('');
  });
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
