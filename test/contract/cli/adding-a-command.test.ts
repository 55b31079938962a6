/** The worked example of docs/adding-a-command.md compiles as a file of src/cli/commands, and runs. */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import ts from 'typescript';
import { expect, test } from 'vitest';
import { isLong } from '../../support/long-run.ts';
import { base, hour } from '../../support/records.ts';
import { lastAge, opened, proven, source, temporary } from '../../support/journal/opening.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const [, example = ''] = /\n```ts\n([^]*?)\n```\n/.exec(readFileSync(join(root, 'docs/adding-a-command.md'), 'utf8')) ?? [];

test('it compiles', { timeout: 120_000 }, ({ skip }) => {
  skip(!isLong, 'npm run test:long runs it');
  const path = join(root, 'src/cli/commands/volumes.ts');
  const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), (file) => readFileSync(file, 'utf8')) as { config: object };
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, root);
  const host = ts.createCompilerHost(options);
  const getSourceFile = host.getSourceFile.bind(host);
  host.getSourceFile = (file, ...rest) =>
    file === path ? ts.createSourceFile(file, example, ts.ScriptTarget.ESNext) : getSourceFile(file, ...rest);
  const program = ts.createProgram([path], options, host);
  const file = program.getSourceFile(path);
  expect(file).toBeDefined();
  const diagnostics = [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)];
  expect(diagnostics.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'))).toEqual([]);
});

test('it runs', async () => {
  const { journal, directory, close } = await opened();
  await journal.close(source, { from: base, to: base + hour }, proven(0, base + 2 * hour), lastAge);
  await close();
  const path = join(temporary(), 'volumes.ts');
  const sources = pathToFileURL(join(root, 'src')).href;
  writeFileSync(path, example.replaceAll("from '../../", `from '${sources}/`).replaceAll("from '../", `from '${sources}/cli/`));
  const run = (...args: string[]): string =>
    execFileSync(
      process.execPath,
      [
        '--input-type=module',
        '-e',
        `const { command } = await import(${JSON.stringify(pathToFileURL(path).href)});
         const { stdin, stdout, stderr, env } = process;
         process.exitCode = await command.run(process.argv.slice(1), { stdin, stdout, stderr, env, signal: new AbortController().signal });`,
        ...args,
      ],
      { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] },
    );
  expect(run('--', '--data-dir', directory)).toBe(`${source} 0\n`);
  expect(JSON.parse(run('--', '--min', '1', '--json', '--data-dir', directory))).toEqual({ volumes: [] });
});
