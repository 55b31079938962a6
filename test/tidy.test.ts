/** Rules about the repository's own files and documents. `dependency-cruiser.config.js` has the rules for imports. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { commands } from '../src/cli/catalog.ts';
import { sinks } from '../src/sink/index.ts';
import { budgets } from './support/budgets.ts';
import { applyToFiles, namesIn, namesInChange } from './support/hooks.ts';
import { longForms, longOnly } from './support/long-run.ts';
import { mutants } from './support/mutants.ts';

const root = resolve(import.meta.dirname, '..');

interface SourceFile {
  /** Below the root, e.g. `src/collect/tip.ts`. */
  readonly path: string;
  readonly text: string;
}

const files = sourceFiles('src').concat(sourceFiles('test'), sourceFiles('bench'), sourceFiles('tools'));

describe('files', () => {
  it('are no grab-bags', () => {
    expect(files.map(({ path }) => path).filter((path) => /(^|\/)(utils?|lib|common|helpers?|misc|shared)(\/|\.ts$)/.test(path))).toEqual(
      [],
    );
  });

  it('find other files of the program by files.ts: the build joins modules in other places', () => {
    const faults = files
      .filter(({ path, text }) => path.startsWith('src/') && /new URL\([^)]*import\.meta/.test(text))
      .map(({ path }) => path);
    expect(faults).toEqual(['src/disk/files.ts']);
  });

  it('read the clock, wait and throw dice only where these are implemented', () => {
    // The clock, the program itself, network clients, separate programs, commands, which are the outside, and the collection of garbage.
    const allowed =
      /^src\/(main\.ts|time\/clock\.ts|daemon\/collect-when-idle\.ts|connect\/(connection|names|proxy)\.ts|source\/(exchange|token)\.ts|reference\/|cli\/)/;
    const forbidden =
      /\bDate\.now\b|\bnew Date\(\)|\bsetTimeout\b|\bsetInterval\b|\bMath\.random\b|\bprocess\.hrtime\b|\bperformance\.now\b|(?<![.\w])fetch\(/;
    const faults = files
      .filter(({ path }) => path.startsWith('src/') && !allowed.test(path))
      .flatMap(({ path, text }) =>
        text.split('\n').flatMap((line, i) => (!isComment(line) && forbidden.test(line) ? [`${path}:${i + 1} ${line.trim()}`] : [])),
      );
    expect(faults).toEqual([]);
  });

  it('know SQL only in the journal', () => {
    // In addition: the lock, the temporary database of `compare`, and the reference service and the fleet, which have their own databases.
    const allowed = /^src\/(journal\/|reference\/|fleet\/|disk\/lock\.ts|cli\/commands\/compare\/tally\.ts)/;
    const sql = /(['"`])\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP|PRAGMA|VACUUM|BEGIN|COMMIT)\s[^'"`]*|\.(prepare|pragma)\(/;
    const faults = files
      .filter(({ path }) => path.startsWith('src/') && !allowed.test(path))
      .flatMap(({ path, text }) => text.split('\n').flatMap((line, i) => (sql.test(line) ? [`${path}:${i + 1} ${line.trim()}`] : [])));
    expect(faults).toEqual([]);
  });

  it('of each room stay within its budget of lines and bytes', () => {
    const sizes = new Map<string, { lines: number; bytes: number }>();
    for (const { path, text } of sourceFiles('src', /\.(ts|js|css|html|sql)$/)) {
      const room = path.split('/')[1] ?? '';
      const size = sizes.get(room) ?? { lines: 0, bytes: 0 };
      sizes.set(room, { lines: size.lines + text.split('\n').length - 1, bytes: size.bytes + Buffer.byteLength(text) });
    }
    expect([...sizes.keys()].sort()).toEqual(Object.keys(budgets).sort());
    const over = [...sizes].filter(([room, { lines, bytes }]) => {
      const [mostLines, mostKilobytes] = budgets[room] ?? [0, 0];
      return lines > mostLines || bytes > mostKilobytes * 1_000;
    });
    expect(Object.fromEntries(over), 'the commit that raises a budget in test/support/budgets.ts says why').toEqual({});
  });

  it('of the long run are listed', () => {
    const larger = files.filter(
      ({ path, text }) =>
        /^test\/(?!tidy|documented-commands).*\.test\.ts$/.test(path) && /support\/long-run\.ts'|\bisVariant: /.test(text),
    );
    const paths = larger.map(({ path }) => path).sort();
    expect(paths.filter((path) => !longOnly.includes(path))).toEqual(longForms);
    expect(longOnly.filter((path) => !files.some((file) => file.path === path))).toEqual([]);
  });

  it('that are called unit start no program', () => {
    const starts = /'node:(child_process|worker_threads|cluster)'|support\/(programs|e2e-\w+|second-verifier|time-stamp-authority)\.ts'/;
    expect(files.filter(({ path, text }) => path.startsWith('test/unit/') && starts.test(text)).map(({ path }) => path)).toEqual([]);
  });

  it('that help tests are in test/support', () => {
    // The simulation and the checks of deployments are programs.
    const folders = /^test\/(support|simulation|deploy|fixtures)\//;
    const faults = files.filter(({ path }) => path.startsWith('test/') && !path.endsWith('.test.ts') && !folders.test(path));
    expect(faults.map(({ path }) => path)).toEqual([]);
  });

  it('promise nothing for later', () => {
    const faults = files.filter(
      ({ path, text }) => path !== 'test/tidy.test.ts' && /\bTODO\b|\bFIXME\b|\b(it|test|describe)\.(only|todo)\b/.test(text),
    );
    expect(faults.map(({ path }) => path)).toEqual([]);
  });

  it('begin by saying what they are', () => {
    const faults = files.filter(({ path, text }) => path.startsWith('src/') && !/^(#!.*\n)?\/\*\*/.test(text));
    expect(faults.map(({ path }) => path)).toEqual([]);
  });
});

describe('mutants', () => {
  const sources = new Map(files.filter(({ path }) => path.startsWith('src/')).map(({ path, text }) => [path, text]));

  it('apply to the source, and the mutated source parses', () => {
    const faults = mutants.flatMap(({ name, changes }) => {
      try {
        return applyToFiles(sources, changes).size > 0 ? [] : [`${name}: changes nothing`];
      } catch (thrown) {
        return [`${name}: ${String(thrown)}`];
      }
    });
    expect(faults).toEqual([]);
  });

  it('have one name each, and a suite that exists', () => {
    expect(new Set(mutants.map(({ name }) => name)).size).toBe(mutants.length);
    expect(
      mutants.filter(({ suite }) => !suite.startsWith('simulation') && !existsSync(join(root, suite))).map(({ name }) => name),
    ).toEqual([]);
  });

  it('use every hook, and every hook is in the source once', () => {
    const used = mutants.flatMap(({ changes }) => [...Object.keys(changes), ...Object.values(changes).flatMap(namesInChange)]);
    expect([...sources.values()].flatMap(namesIn).sort()).toEqual([...new Set(used)].sort());
  });
});

describe('the journal boundary', () => {
  /** Members of src/model/journal.ts that use memory only, so that no store needs to answer them. */
  const inMemory: Readonly<Record<string, Readonly<Record<string, string>>>> = {
    CollectJournal: {
      progress: 'written by the loop of the source and by operations, after their COMMIT',
      remembers: 'computed from the ranges of `progress`',
      covers: 'computed from the same ranges',
      lastFullVisibility: 'sets a value that is never stored',
      backfills: 'computed from the ranges of `progress`',
      refuses: 'the failure of the last write, in memory',
      laggingPosition: 'computed from the recent segments in memory',
    },
    DeliverJournal: {
      id: 'constant',
      owned: 'a lease in memory; returns a promise for a shard only',
      sinkProgress: 'written by the loop of the sink and by operations, after their COMMIT',
      withheld: 'computed from the ranges of the source, which operations write after their COMMIT',
      acknowledgeLater: 'keeps an acknowledgement in memory; `flush` stores it',
      replayedFrom: 'computed from the replays of the sinks, which follow each COMMIT',
    },
  };

  it('is asynchronous, but for members that use memory only', () => {
    const path = 'src/model/journal.ts';
    const source = ts.createSourceFile(path, readFileSync(join(root, path), 'utf8'), ts.ScriptTarget.Latest, true);
    const boundaries = source.statements.filter(ts.isInterfaceDeclaration).filter(({ name }) => name.text in inMemory);
    expect(boundaries.map(({ name }) => name.text)).toEqual(Object.keys(inMemory));
    for (const { name, members } of boundaries) {
      const synchronous = members.filter((member) => !isAsynchronous(member)).map((member) => member.name?.getText(source));
      expect(synchronous, name.text).toEqual(Object.keys(inMemory[name.text] ?? {}));
    }
  });

  it('is checked for a method that returns its result at once', () => {
    const text =
      'interface Boundary { good(): Promise<void>; rows(): AsyncIterable<number>; bad(): number; alsoBad: () => Promise<void> | number }';
    const [boundary] = ts.createSourceFile('boundary.ts', text, ts.ScriptTarget.Latest, true).statements;
    if (!boundary || !ts.isInterfaceDeclaration(boundary)) throw new Error('expected an interface');
    expect(boundary.members.map(isAsynchronous)).toEqual([true, true, false, false]);
  });
});

describe('documents', () => {
  const readme = readFileSync(join(root, 'README.md'), 'utf8');

  it('name every command and every sink in the README', () => {
    expect(commands.filter((name) => !readme.includes(`\`${name}`))).toEqual([]);
    expect(sinks.map(({ type }) => type).filter((type) => !readme.includes(`\`${type}\``))).toEqual([]);
  });

  it('explain every error code', () => {
    const codes = [...readFileSync(join(root, 'src/errors/errors.ts'), 'utf8').matchAll(/^ {2}\| '([a-z_]+)'/gm)].map(
      ([, code]) => code ?? '',
    );
    const operations = readFileSync(join(root, 'docs/operations.md'), 'utf8');
    expect(codes.length).toBeGreaterThan(20);
    expect(codes.filter((code) => !operations.includes(code))).toEqual([]);
  });

  it('link only to what is there', () => {
    const documents = ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', ...readdirSync(join(root, 'docs')).map((name) => `docs/${name}`)];
    const faults = documents
      .filter((path) => path.endsWith('.md'))
      .flatMap((path) => {
        const text = readFileSync(join(root, path), 'utf8');
        const targets = [...text.matchAll(/\]\(([^)#\s]+)[^)]*\)/g)].map(([, target]) => target ?? '');
        return targets
          .filter((target) => !/^https?:/.test(target) && !existsSync(join(root, dirname(path), target)))
          .map((target) => `${path}: ${target}`);
      });
    expect(faults).toEqual([]);
  });
});

function isAsynchronous(member: ts.TypeElement): boolean {
  const returned = ts.isMethodSignature(member) || (ts.isPropertySignature(member) && member.type && ts.isFunctionTypeNode(member.type));
  if (!returned) return false;
  const type = ts.isMethodSignature(member) ? member.type : (member as ts.PropertySignature & { type: ts.FunctionTypeNode }).type.type;
  return type !== undefined && ts.isTypeReferenceNode(type) && ['Promise', 'AsyncIterable'].includes(type.typeName.getText());
}

function isComment(line: string): boolean {
  return /^\s*(\*|\/\/|\/\*)/.test(line);
}

function sourceFiles(folder: string, name = /\.ts$/): SourceFile[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && name.test(entry.name))
    .map((entry) => {
      const full = join(entry.parentPath, entry.name);
      return { path: relative(root, full), text: readFileSync(full, 'utf8') };
    });
}
