/** `dead-letters list` shows the receiver's code with the text of the receiver's documentation. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { rejectionCode } from '../../../src/deliver/rejection-code.ts';

const table = readFileSync(new URL('../../fixtures/splunk-hec-reply-codes.csv', import.meta.url), 'utf8');

test('a code with which Splunk rejects data is shown with its text', () => {
  for (const code of [6, 12, 13, 15]) {
    const text = table
      .split('\n')
      .find((line) => line.startsWith(`${code},`))
      ?.split(',')[3];
    expect(rejectionCode(String(code))).toBe(`${code} (${text})`);
  }
});

test('another code stays unchanged', () => {
  expect(rejectionCode('document_parsing_exception')).toBe('document_parsing_exception');
});
