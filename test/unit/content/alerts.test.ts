/**
 * Alerts and dashboard use only metrics, labels and states of the program.
 * test/deploy/alerts.test.ts runs promtool.
 */
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { metricTable, type Metric } from '../../../src/telemetry/metric-table.ts';

const read = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');
const metrics: Readonly<Record<string, Metric>> = metricTable;

/** Alerting rules of Prometheus ("Defining recording rules", "Alerting rules"), with what each alert of this project needs. */
const ruleFile = z.strictObject({
  groups: z.array(
    z.strictObject({
      name: z.string(),
      rules: z.array(
        z.strictObject({
          alert: z.string().regex(/^Waybill\w+$/),
          expr: z.string().min(1),
          for: z
            .string()
            .regex(/^\d+[mh]$/)
            .optional(),
          labels: z.strictObject({ severity: z.enum(['critical', 'warning', 'info']) }),
          annotations: z.strictObject({ summary: z.string().min(1), command: z.string().min(1), description: z.string().min(1) }),
        }),
      ),
    }),
  ),
});
interface Panel {
  readonly title: string;
  readonly targets?: readonly { readonly expr: string }[];
}

const alerts = ruleFile.parse(parse(read('content/prometheus/alerts.yaml'))).groups.flatMap(({ rules }) => rules);
const { panels } = JSON.parse(read('content/grafana/dashboard.json')) as { readonly panels: readonly Panel[] };
const expressions = [
  ...alerts.map(({ alert, expr }) => [alert, expr] as const),
  ...panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => [title, expr] as const)),
];

it.each(expressions)('%s uses only metrics and labels of the program: %s', (_, expr) => {
  const selectors = [...expr.matchAll(/\b((?:waybill|process)_[a-z_]+)(?:\{([^}]*)\})?/g)];
  if (!expr.includes('up{job="waybill"}')) expect(selectors.length).toBeGreaterThan(0);
  for (const [, name = '', matchers = ''] of selectors) {
    const metric = metrics[name] ?? metrics[name.replace(/_(bucket|sum|count)$/, '')];
    expect(metric, name).toBeDefined();
    for (const [, label = '', , value = ''] of matchers.matchAll(/(\w+)(=~?|!=)"([^"]*)"/g)) {
      if (['job', 'instance'].includes(label)) continue;
      expect(metric?.labels.split(' '), name).toContain(label);
      if (label !== 'state' || value.startsWith('$')) continue;
      for (const state of value.split('|')) expect(metric?.note ?? '', name).toContain(`\`${state}\``);
    }
  }
});

it('docs/metrics.md lists every alert', () => {
  const document = read('docs/metrics.md');
  expect(alerts.map(({ alert }) => alert).filter((alert) => !document.includes(`\`${alert}\``))).toEqual([]);
});
