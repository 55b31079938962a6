import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { outcomes } from '../../../src/normalize/outcomes.ts';
import { identify } from '../../../src/record/identity.ts';
import { readText } from '../../../src/record/read.ts';

const docs = readFileSync(new URL('../../../docs/formats.md', import.meta.url), 'utf8');

test("the table of outcomes in docs/formats.md equals the program's", () => {
  const rows = docs.split('\n').filter((line) => /^\| (Encrypt|Decrypt|Audit|EncryptionRequest) \|/.test(line));
  expect(rows).toEqual(
    outcomes.map(({ actionAttempted, result, resultReason, category, type, action, outcome, severity, name }) => {
      const cells = [actionAttempted, result, resultReason, category?.join(', '), type?.join(', '), action, outcome, severity, name];
      return `| ${cells.join(' | ')} |`;
    }),
  );
});

test('the test vector in docs/formats.md is correct', () => {
  const [, record = '', uid = ''] = /```json\n(\{.*\})\n```\n\nThis gives the uid `(\S{22})`/.exec(docs) ?? [];
  expect(uid).toBe('_pq6YGDVI8RYNcYPzrxbow');
  expect(identify('production')(readText(record))).toBe(uid);
});
