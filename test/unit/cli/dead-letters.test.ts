/** What `dead-letters list` says of the receiver's code: its words, as the receiver's own documentation has them. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { codeText } from '../../../src/cli/commands/dead-letters.ts';

const table = readFileSync(new URL('../../fixtures/splunk-hec-reply-codes.csv', import.meta.url), 'utf8');

test('a code with which Splunk refuses data stands beside its text', () => {
  for (const code of [6, 12, 13, 15]) {
    const text = table
      .split('\n')
      .find((line) => line.startsWith(`${code},`))
      ?.split(',')[3];
    expect(codeText(String(code))).toBe(`${code} (${text})`);
  }
});

test('another code stays as it is', () => {
  expect(codeText('document_parsing_exception')).toBe('document_parsing_exception');
});
