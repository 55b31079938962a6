import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, test } from 'vitest';
import { evaluate, evaluating } from '../../../src/detections/evaluate.ts';
import { readRules } from '../../../src/detections/rule.ts';
import { eventsOf } from '../../support/detections/samples.ts';

const rules = readRules(new URL('../../../content/rules/', import.meta.url));
const lists = { 'service-accounts': new Map([['batch', { hours: { from: 1, to: 5 }, hosts: ['batch-1'] }]]) };

// promise: Each detection rule fires for its attacks, and stays quiet for what nearly is one.
describe.each(rules)('$id', (rule) => {
  test.each(rule.fires.map((acts, i) => ({ acts, i })))('fires for its sample $i', ({ acts }) => {
    const events = eventsOf(acts, rule);
    expect(evaluate(rule, events, lists, events.at(-1)?.at ?? 0)).toHaveLength(1);
  });

  test.each(rule.quiet.map((acts, i) => ({ acts, i })))('is quiet for its sample $i', ({ acts }) => {
    const events = eventsOf(acts, rule);
    expect(evaluate(rule, events, lists, events.at(-1)?.at ?? 0)).toEqual([]);
  });
});

test.each(rules)('$id takes a long history in short steps', (rule) => {
  const [acts = []] = rule.fires;
  const [first] = eventsOf(acts, rule);
  const events = Array.from({ length: 50_000 }, (_, i) => ({ uid: String(i), fields: first?.fields ?? {}, at: i * 60_000 }));
  let steps = 0;
  for (const each = evaluating(rule, events, lists, 0); !each.next().done;) steps += 1;
  expect(steps).toBeGreaterThanOrEqual(99);
});

test('other files beside the rules are left out, and a second rule of an id is refused', () => {
  const folder = mkdtempSync(join(tmpdir(), 'waybill-rules-'));
  try {
    const copy = (name: string): void =>
      copyFileSync(new URL('../../../content/rules/far-apart.yaml', import.meta.url), join(folder, name));
    const read = (): readonly string[] => readRules(pathToFileURL(`${folder}/`)).map(({ id }) => id);
    copy('a.yaml');
    writeFileSync(join(folder, 'a.yaml~'), 'no rule');
    expect(read()).toEqual(['far-apart']);
    copy('b.yaml');
    expect(read).toThrow('"b.yaml" has the id "far-apart" of another detection rule');
  } finally {
    rmSync(folder, { recursive: true });
  }
});
