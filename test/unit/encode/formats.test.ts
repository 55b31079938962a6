import { describe, expect, test } from 'vitest';
import { acceptedFormats, formatOf, formats, isFormat } from '../../../src/encode/index.ts';
import { normalizer } from '../../../src/normalize/normalizer.ts';
import { sinks } from '../../../src/sink/index.ts';
import { fullest, recordOf, settings } from '../../support/normalize/records.ts';
import { fileNameIn } from '../../support/encode/read-back.ts';
import { encoder, shortener } from '../../support/encode/texts.ts';

/** Longer than 64 characters, the shortest length that truncation leaves. */
const payloadName = `${'report '.repeat(20)}.pdf`;
const event = normalizer(settings)(recordOf(JSON.stringify({ ...fullest, payloadName })));
const encodeSettings = { includeOriginal: true, cef: { ipv6: 'c6a2', geo: 'cfp' } } as const;

describe.each(formats)('%s', (name) => {
  const text = encoder(name, encodeSettings)(event);

  test('is the definition of its name', () => {
    expect(formatOf(name).name).toBe(name);
    expect(isFormat(name)).toBe(true);
  });

  test('is one line from which a parser reads the file name', () => {
    expect(text).not.toMatch(/[\r\n]/);
    expect(fileNameIn[name](text)).toBe(payloadName);
  });

  test('has a content type and a form that match the text', () => {
    const isJson = text.startsWith('{');
    expect([formatOf(name).contentType === 'application/json', formatOf(name).shape === 'document']).toEqual([isJson, isJson]);
  });

  test('shortens to a limit below its full length', () => {
    const limit = Buffer.byteLength(text) - 1;
    const shortened = shortener(name, encodeSettings, limit)(event) ?? '';
    expect(shortened).not.toBe('');
    expect(Buffer.byteLength(shortened)).toBeLessThanOrEqual(limit);
  });
});

test('an unknown name is refused', () => {
  expect(isFormat('xml')).toBe(false);
  expect(isFormat('toString')).toBe(false);
});

test('a sink accepts formats by shape, all, or by name, with the default first', () => {
  expect(acceptedFormats('line')).toEqual(['cef', 'leef']);
  expect(acceptedFormats('document')).toEqual(['ecs', 'ocsf', 'raw']);
  expect(acceptedFormats('any')).toEqual(formats);
  expect(acceptedFormats('any', 'leef')).toEqual(['leef', 'ecs', 'cef', 'ocsf', 'raw']);
  expect(acceptedFormats(['ocsf', 'ecs'])).toEqual(['ocsf', 'ecs']);
  expect(() => acceptedFormats('line', 'ecs')).toThrow(RangeError);
});

test('every sink accepts only formats of the list, each once', () => {
  for (const sink of sinks)
    expect([sink.type, new Set(sink.formats).size, sink.formats.every(isFormat)]).toEqual([sink.type, sink.formats.length, true]);
});
