import { expect, test } from 'vitest';
import vectors from '../../fixtures/cef-vectors-graylog.json' with { type: 'json' };
import { parseCef } from '../../support/encode/cef-parser.ts';

test('there are 252 vectors', () => {
  expect(vectors.length).toBe(252);
});

test.each(vectors.map((vector) => [vector.name, vector] as const))('%s', (_name, { input, expected }) => {
  const line = parseCef(input);
  expect({ ...line, extension: Object.fromEntries(line.extension) }).toEqual({
    version: String(expected.cefVersion),
    vendor: expected.deviceVendor,
    product: expected.deviceProduct,
    deviceVersion: expected.deviceVersion,
    classId: expected.deviceEventClassId,
    name: expected.name,
    severity: expected.severity,
    extension: expected.extensions,
  });
});
