/**
 * `npm run test:lint-rules`: proves that `npm run lint` finds each fault that it should. Plants the
 * faults in a temporary copy of the repository and expects a line for each from the tools of
 * `lint`.
 */
import { spawnSync } from 'node:child_process';
import { appendFileSync, cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

interface Fault {
  readonly name: string;
  readonly plant: (copy: string) => void;
  /** Matches the line that reports the fault. */
  readonly expected: RegExp;
}

const root = resolve(import.meta.dirname, '../..');

/** Replaces text that must occur in the file. */
function replace(copy: string, path: string, before: string, after: string): void {
  const text = readFileSync(join(copy, path), 'utf8');
  if (!text.includes(before)) throw new Error(`cannot plant a fault: ${path} does not contain ${before}`);
  writeFileSync(join(copy, path), text.replace(before, after));
}

const importFaults: readonly Fault[] = [
  {
    name: 'a circle of files',
    plant: (copy) => appendFileSync(join(copy, 'src/admin/parameters.ts'), "export type { AdminSources } from './routes.ts';\n"),
    expected: /no circle of files: src\/admin\/(parameters|routes)\.ts/,
  },
  {
    name: 'an import that runs back up',
    plant: (copy) => appendFileSync(join(copy, 'src/record/text.ts'), "export type { Admin } from '../admin/server.ts';\n"),
    expected: /imports of record\/.*: src\/record\/text\.ts → src\/admin\/server\.ts/,
  },
  {
    name: 'a generator of content that reads more than the rules',
    plant: (copy) => appendFileSync(join(copy, 'tools/content/rules.ts'), "export type { Admin } from '../../src/admin/server.ts';\n"),
    expected: /generators of content.*: tools\/content\/rules\.ts → src\/admin\/server\.ts/,
  },
];

const programFaults: readonly Fault[] = [
  {
    name: 'an unused export',
    plant: (copy) => appendFileSync(join(copy, 'src/errors/escape.ts'), 'export const planted = 1;\n'),
    expected: /src\/errors\/escape\.ts:\d+ exports "planted"/,
  },
  {
    name: 'a log line without an event',
    plant: (copy) => replace(copy, 'src/cli/commands/run.ts', "write('daemon.stopped')", "write('the daemon has stopped')"),
    expected: /src\/cli\/commands\/run\.ts:\d+ writes a log line without an event/,
  },
  {
    name: 'a metric without an instrument',
    plant: (copy) =>
      replace(
        copy,
        'src/telemetry/metric-table.ts',
        'export const metricTable = {',
        "export const metricTable = {\n  waybill_planted: { type: 'gauge', labels: '', help: 'Planted' },",
      ),
    expected: /no instrument for the metric "waybill_planted"/,
  },
  {
    name: 'a metric that nothing records',
    plant: (copy) =>
      replace(copy, 'src/model/telemetry.ts', 'sinkLoss(sink: string): void;', 'sinkLoss(sink: string): void;\n  planted(): void;'),
    expected: /src\/model\/telemetry\.ts:\d+ declares "planted"/,
  },
  {
    name: 'a configuration key without a reader',
    plant: (copy) => replace(copy, 'src/admin/settings.ts', '    tls: z\n', '    planted: z.string().optional(),\n    tls: z\n'),
    expected: /src\/admin\/settings\.ts:\d+ defines the configuration key "planted"/,
  },
];

/** @returns the output of a command that must fail */
function run(copy: string, ...command: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, command, { cwd: copy, encoding: 'utf8' });
  if (status === 0) throw new Error(`${command.join(' ')} found no fault`);
  return stdout + stderr;
}

const copy = mkdtempSync(join(tmpdir(), 'waybill-lint-rules-'));
try {
  for (const path of [
    'src',
    'test',
    'bench',
    'tools',
    'content',
    'package.json',
    'tsconfig.json',
    'dependency-cruiser.config.js',
    'vitest.config.ts',
  ])
    cpSync(join(root, path), join(copy, path), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  const depcruise = join(root, 'node_modules/dependency-cruiser/bin/dependency-cruiser.mjs');
  for (const fault of importFaults) fault.plant(copy);
  const imports = run(copy, depcruise, '--config', 'dependency-cruiser.config.js', 'src', 'tools');
  for (const fault of programFaults) fault.plant(copy);
  const types = run(copy, join(root, 'test/support/program-rules.ts'), copy);
  const results = [
    ...importFaults.map(({ name, expected }) => ({ name, isFound: expected.test(imports) })),
    ...programFaults.map(({ name, expected }) => ({ name, isFound: expected.test(types) })),
  ];
  for (const { name, isFound } of results) process.stdout.write(`${isFound ? 'found' : 'NOT FOUND'}: ${name}\n`);
  if (results.some(({ isFound }) => !isFound)) {
    process.stdout.write(imports + types);
    process.exitCode = 1;
  }
} finally {
  rmSync(copy, { recursive: true });
}
