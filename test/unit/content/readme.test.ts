/** The files of content are those that `npm run content` writes, and content/README.md names every file. */
import { globSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { contentFiles } from '../../../tools/content/files.ts';
import { rules } from '../../../tools/content/rules.ts';

const folder = new URL('../../../content/', import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, folder), 'utf8');
const isOfOneRule = (path: string): boolean => /^(rules|sigma\/(rules|correlations|ordered))\//.test(path);
const files = contentFiles(rules);

// `npm run content` would change nothing.
test.each(Object.entries(files))('content/%s is as `npm run content` writes it', (path, text) => {
  expect(read(path)).toBe(text);
});

test('content has no Sigma rule that `npm run content` does not write', () => {
  const found = globSync('sigma/{rules,correlations,ordered}/**/*.*', { cwd: folder });
  expect(found.toSorted()).toEqual(Object.keys(files).filter(isOfOneRule).toSorted());
});

test('content/README.md names every file, and no other', () => {
  const found = globSync('**/*.*', { cwd: folder }).filter((path) => path !== 'README.md' && !isOfOneRule(path));
  const named = [...read('README.md').matchAll(/^\| `([^`]+\/[^`]+)` +\|/gm)].map(([, path]) => path);
  expect(named.toSorted()).toEqual(found.toSorted());
});
