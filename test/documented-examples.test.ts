/** Applies the worked examples of docs/adding-*.md to a copy of the sources, compiles the changed files and runs the examples' tests. */
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import ts from 'typescript';
import { expect, test } from 'vitest';

const root = resolve(import.meta.dirname, '..');
const copied = [
  ...['src', 'test/contract', 'test/fixtures', 'test/support', 'test/unit', 'package.json', 'tsconfig.json', 'vitest.config.ts'],
  ...['content', 'docs'],
];

test.each(['field', 'format', 'setting', 'sink'].map((name) => `docs/adding-a-${name}.md`))(
  'the worked example of %s compiles, and its test passes',
  async (page) => {
    const copy = mkdtempSync(join(tmpdir(), 'waybill-example-'));
    try {
      for (const name of copied) cpSync(join(root, name), join(copy, name), { recursive: true });
      symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
      const paths = applyBlocks(readFileSync(join(root, page), 'utf8'), copy);
      expect(errorsIn(copy, paths)).toEqual([]);
      const tests = paths.filter((path) => path.endsWith('.test.ts'));
      expect(tests.length).toBeGreaterThan(0);
      const { code, output } = await vitest(copy, tests);
      expect(code, output).toBe(0);
      expect(output).toMatch(/Tests .*\d+ passed/);
    } finally {
      rmSync(copy, { recursive: true, force: true });
    }
  },
);

/** Blocks name their file after the language: a `ts` block is a new file, a `diff` block changes one. @returns the files' paths */
function applyBlocks(markdown: string, copy: string): string[] {
  const blocks = [...markdown.matchAll(/^```(ts|diff) (\S+)\n([^]*?)^```$/gm)];
  const changed = blocks.map(([, language, path = '', text = '']) => {
    const file = join(copy, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, language === 'ts' ? text : text.split('@@\n').reduce(applyHunk, readFileSync(file, 'utf8')));
    return path;
  });
  return changed.filter((path) => path.endsWith('.ts'));
}

function applyHunk(text: string, hunk: string): string {
  const lines = hunk.split('\n').filter((line) => line !== '');
  const side = (mark: string): string =>
    lines.flatMap((line) => (line.startsWith(mark) || line.startsWith(' ') ? [`${line.slice(1)}\n`] : [])).join('');
  expect(text.split(side('-')), `the lines that this hunk changes occur once: ${hunk}`).toHaveLength(2);
  return text.replace(side('-'), () => side('+'));
}

function errorsIn(copy: string, paths: readonly string[]): string[] {
  const { config } = ts.readConfigFile(join(copy, 'tsconfig.json'), (path) => ts.sys.readFile(path)) as { config: unknown };
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, copy);
  const program = ts.createProgram(
    paths.map((path) => join(copy, path)),
    options,
  );
  // `npm run typecheck` checks the imports of a changed file.
  return paths
    .flatMap((path) => ts.getPreEmitDiagnostics(program, program.getSourceFile(join(copy, path))))
    .map(({ file, messageText }) => `${file?.fileName ?? ''}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`);
}

function vitest(copy: string, tests: readonly string[]): Promise<{ code: unknown; output: string }> {
  const args = [join(root, 'node_modules/vitest/vitest.mjs'), 'run', ...tests, '--maxWorkers=1', '--no-color'];
  // Otherwise vitest would run the tests of the long run alone.
  const env = { ...process.env, WAYBILL_LONG: undefined };
  return new Promise((done) => {
    execFile(process.execPath, args, { cwd: copy, env, maxBuffer: 16 * 1024 * 1024 }, (error, stdout, stderr) =>
      done({ code: error === null ? 0 : error.code, output: `${stdout}\n${stderr}` }),
    );
  });
}
