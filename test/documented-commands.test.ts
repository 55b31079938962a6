/**
 * The promises of docs/testing.md and their commands are generated from the comments `promise: …` in tests. Every command of the documents
 * that runs tests must select at least one test. Numbers that the documents state about a run must equal the numbers of its script.
 */
import { globSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { expectPart } from './support/generated-part.ts';
import { canary, longForms, longOnly } from './support/long-run.ts';
import { mutants } from './support/mutants.ts';

const root = resolve(import.meta.dirname, '..');
const read = (path: string): string => readFileSync(resolve(root, path), 'utf8');
const documents = globSync(['*.md', 'docs/*.md', 'helm/**/*.md', 'content/**/*.md', 'bench/*.md', 'src/**/*.md', 'deploy/**/*.md'], {
  cwd: root,
});
const testFiles = globSync('test/**/*.test.ts', { cwd: root });
const { scripts } = JSON.parse(read('package.json')) as { scripts: Readonly<Record<string, string>> };

/** The tests that vitest.config.ts includes if the environment has these variables. */
function included(variables: string): string[] {
  const has = (name: string): boolean => variables.includes(`${name}=`);
  const long = [...longOnly, ...longForms];
  return testFiles.filter((file) => {
    if (file.startsWith('test/browser/')) return false;
    if (file === canary) return has('WAYBILL_CANARY');
    if (file.startsWith('test/servers/')) return has('WAYBILL_TEST_SERVERS') && !has('WAYBILL_LONG');
    return has('WAYBILL_LONG') ? long.includes(file) : !longOnly.includes(file);
  });
}

/** Each vitest command of the text, with its variables, and the parts of paths that select tests. */
function vitestCommands(text: string): { command: string; variables: string; paths: string[] }[] {
  return [...text.matchAll(/((?:[A-Z][A-Z0-9_]*=\S+ )*)(?:npx )?vitest run([^`"|#\n]*)/g)].map(([command, variables = '', rest = '']) => ({
    command,
    variables,
    paths: rest.split(' ').filter((word) => word.startsWith('test/')),
  }));
}

test.each([...documents, 'package.json'])('each vitest command of %s selects a test with every path that it names', (document) => {
  const lacking = vitestCommands(read(document)).flatMap(({ command, variables, paths }) =>
    paths.filter((path) => !included(variables).some((file) => file.includes(path))).map((path) => `${command}: ${path}`),
  );
  expect(lacking).toEqual([]);
});

test('the check finds a long test without its variable, a short one with it, and a path that does not exist', () => {
  const selects = (command: string): boolean =>
    vitestCommands(command).every(({ variables, paths }) => paths.every((path) => included(variables).some((file) => file.includes(path))));
  expect(selects('npx vitest run test/e2e/rights.test.ts')).toBe(false);
  expect(selects('WAYBILL_LONG=1 npx vitest run test/e2e/rights.test.ts')).toBe(true);
  expect(selects('WAYBILL_LONG=1 npx vitest run test/tidy.test.ts')).toBe(false);
  expect(selects('npx vitest run test/servers/daemon.test.ts')).toBe(false);
  expect(selects('npx vitest run test/unit/journal test/unit/nowhere')).toBe(false);
});

/** A promise stands above the test that proves it, or in the header of a program that an npm script runs. */
const promise = /^ *(?:\/\/|\*) promise: (.+)\n(.*)/gm;

/** The command that runs a test file, or a program of test/. */
function commandOf(file: string): string {
  if (!file.endsWith('.test.ts')) {
    const [name] = Object.entries(scripts).find(([, command]) => command.split(' ').includes(file)) ?? [];
    return name === undefined ? `no npm script runs ${file}` : `npm run ${name}`;
  }
  const variables = ['', 'WAYBILL_LONG=1 ', 'WAYBILL_TEST_SERVERS=1 ', 'WAYBILL_CANARY=1 '];
  // A test that has a long form is shown in that form.
  const usable = variables.filter((each) => included(each).includes(file));
  return `${longForms.includes(file) ? 'WAYBILL_LONG=1 ' : (usable[0] ?? 'no variable selects ')}npx vitest run ${file}`;
}

test('docs/testing.md has each promise of a test with the command that runs the test', async () => {
  const found = [...testFiles, ...globSync('test/{simulation,support}/*.ts', { cwd: root })]
    .sort()
    .flatMap((file) => [...read(file).matchAll(promise)].map(([, text = '', next = '']) => ({ file, text, next })));
  const atNoTest = found.filter(({ file, next }) => file.endsWith('.test.ts') && !/^ *(test|it|describe)[.(]/.test(next));
  expect(atNoTest).toEqual([]);
  expect(new Set(found.map(({ text }) => text)).size).toBe(found.length);
  const rows = found.map(({ file, text }) => `| ${text.replace(/\.$/, '')} | \`${commandOf(file)}\` |\n`);
  // `npx vitest run test/documented-commands.test.ts --update` writes it.
  await expectPart('docs/testing.md', 'promises', ['| promise | command |\n|---|---|\n', ...rows].join(''));
});

test.each(documents)('each npm script and mutant that %s names exists', (document) => {
  const text = read(document);
  const named = [...text.matchAll(/npm run (?:--silent )?([a-z][a-z:-]*)/g)].map(([, name = '']) => name);
  expect(named.filter((name) => !(name in scripts))).toEqual([]);
  const broken = [...text.matchAll(/npm run mutants --\s([a-z -]+)/g)].flatMap(([, names = '']) => names.trim().split(/ +/));
  expect(broken.filter((name) => !mutants.some((mutant) => mutant.name === name))).toEqual([]);
});

test('what the documents state of .ci/run is in it', () => {
  const ci = read('.ci/run');
  const sentences = documents
    .flatMap((document) =>
      read(document)
        .replaceAll('\n', ' ')
        .split(/(?<=[.;|]) /),
    )
    .filter((text) => text.includes('`.ci/run`'));
  const options = sentences.flatMap((text) => [...text.matchAll(/`(--[^`]+)`/g)].map(([, option = '']) => option));
  expect(options).toContain('--seeds 400 --from 1001');
  expect(options.filter((option) => !ci.includes(option))).toEqual([]);
  const [, nth = ''] = /for every (\d+)th case/.exec(sentences.join(' ')) ?? [];
  expect(ci).toContain(`WAYBILL_CANARY=${nth} `);
  const [, records = '', kills = ''] = /takes ([\d,]+) records and (\d+) kills/.exec(sentences.join(' ')) ?? [];
  expect(ci).toContain(`WAYBILL_E2E_RECORDS=${records.replace(',', '')} WAYBILL_E2E_KILLS=${kills} `);
});

test.each(['test:long', 'test:kills'])('the documents state the kills and records of %s', (script) => {
  const rows = documents.flatMap((document) => read(document).split('\n')).filter((line) => line.startsWith(`| \`npm run ${script}\` |`));
  expect(rows.length).toBeGreaterThan(0);
  const [, kills = ''] = /WAYBILL_E2E_KILLS=(?:\$\{\w+:-)?(\d+)/.exec(scripts[script] ?? '') ?? [];
  const [, records = ''] = /WAYBILL_E2E_RECORDS=(?:\$\{\w+:-)?(\d+)/.exec(scripts[script] ?? '') ?? [];
  for (const row of rows) expect(row).toMatch(new RegExp(`${Number(records).toLocaleString('en')} records .*\\b${kills} kills`));
});
