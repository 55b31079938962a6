import { describe, expect, test } from 'vitest';
import examples from '../../fixtures/mapping-examples.json' with { type: 'json' };
import type { CefSettings } from '../../../src/encode/settings.ts';
import { normalizer } from '../../../src/normalize/normalizer.ts';
import { privacySettings } from '../../../src/normalize/settings.ts';
import { readText } from '../../../src/record/read.ts';
import { encoder } from '../../support/encode/texts.ts';

const { settings } = examples;
const cef = settings.cef as CefSettings;

describe.each(examples.cases.map((example) => [example.name, example] as const))('%s', (_name, example) => {
  const normalize = normalizer({
    ...settings,
    mapping: { severity: {}, names: {}, hostIdFromUuid: true },
    privacy: privacySettings.parse('privacy' in example ? example.privacy : {}),
  });
  const event = normalize({ record: readText(example.record), uid: example.uid, received: Date.parse(settings.received) * 1000 });

  test('ecs', () => {
    const text = encoder('ecs', { includeOriginal: true, cef })(event);
    expect(JSON.parse(text)).toEqual(example.ecs);
    // The order of keys is part of what a reader sees.
    expect(text).toBe(JSON.stringify(example.ecs));
  });

  test('ecs without the original', () => {
    const without = { ...example.ecs, event: { ...example.ecs.event, original: undefined } };
    expect(encoder('ecs', { includeOriginal: false, cef })(event)).toBe(JSON.stringify(without));
  });

  test('cef', () => {
    expect(encoder('cef', { includeOriginal: true, cef })(event)).toBe(example.cef);
  });

  test('leef', () => {
    expect(encoder('leef', { includeOriginal: true, cef })(event)).toBe(example.leef);
  });

  test('ocsf', () => {
    expect(JSON.parse(encoder('ocsf', { includeOriginal: true, cef })(event))).toEqual(example.ocsf);
    const without = { ...example.ocsf, raw_data: undefined };
    expect(JSON.parse(encoder('ocsf', { includeOriginal: false, cef })(event))).toEqual(JSON.parse(JSON.stringify(without)));
  });

  test('raw', () => {
    expect(encoder('raw', { includeOriginal: true, cef })(event)).toBe(example.raw);
  });
});
