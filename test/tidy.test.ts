/** The repository checks itself: no grab-bag files, nothing that a reader was promised and cannot find. `dependency-cruiser.config.js` has the rules for imports. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { commands } from '../src/cli/catalog.ts';
import { sinks } from '../src/sink/index.ts';
import { mutants } from './support/mutants.ts';

const root = resolve(import.meta.dirname, '..');

interface SourceFile {
  /** Below the root, e.g. `src/collect/tip.ts`. */
  readonly path: string;
  readonly text: string;
}

const files = sourceFiles('src').concat(sourceFiles('test'), sourceFiles('bench'));

describe('files', () => {
  it('are no grab-bags', () => {
    expect(files.map(({ path }) => path).filter((path) => /(^|\/)(utils?|lib|common|helpers?|misc|shared)(\/|\.ts$)/.test(path))).toEqual(
      [],
    );
  });

  it('read the clock, wait and throw dice only where these are implemented', () => {
    // The clock, the clients of the outside, the programs of their own, and the commands that are the outside themselves.
    const allowed = /^src\/(clock\.ts|connect\/(connection|proxy)\.ts|source\/(exchange|token)\.ts|reference\/|cli\/)/;
    const forbidden =
      /\bDate\.now\b|\bnew Date\(\)|\bsetTimeout\b|\bsetInterval\b|\bMath\.random\b|\bprocess\.hrtime\b|\bperformance\.now\b|(?<![.\w])fetch\(/;
    const faults = files
      .filter(({ path }) => path.startsWith('src/') && !allowed.test(path))
      .flatMap(({ path, text }) =>
        text.split('\n').flatMap((line, i) => (!isComment(line) && forbidden.test(line) ? [`${path}:${i + 1} ${line.trim()}`] : [])),
      );
    expect(faults).toEqual([]);
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
  it('still apply: each text stands once in its file, and each suite is there', () => {
    const faults = mutants.flatMap(({ id, suite, edits }) => {
      const texts = new Map<string, string>();
      const misplaced = edits.filter(({ file, text, replacement }) => {
        const source = texts.get(file) ?? readFileSync(join(root, file), 'utf8');
        const parts = source.split(text);
        texts.set(file, parts.join(replacement));
        return parts.length !== 2;
      });
      const isThere = suite === 'simulation' || existsSync(join(root, suite));
      return [...misplaced.map(({ file, text }) => `${id}: ${file}: ${text}`), ...(isThere ? [] : [`${id}: ${suite}`])];
    });
    expect(faults).toEqual([]);
    const missing = mutants.flatMap(({ id, also = [] }) =>
      also.filter((suite) => !existsSync(join(root, suite))).map((suite) => `${id}: ${suite}`),
    );
    expect(missing).toEqual([]);
    expect(new Set(mutants.map(({ id }) => id)).size).toBe(mutants.length);
  });
});

describe('documents', () => {
  const readme = readFileSync(join(root, 'README.md'), 'utf8');

  it('name every command and every sink in the README', () => {
    expect(commands.filter((name) => !readme.includes(`\`${name}`))).toEqual([]);
    expect(sinks.map(({ type }) => type).filter((type) => !readme.includes(`\`${type}\``))).toEqual([]);
  });

  it('explain every error code', () => {
    const codes = [...readFileSync(join(root, 'src/errors.ts'), 'utf8').matchAll(/^ {2}\| '([a-z_]+)'/gm)].map(([, code]) => code ?? '');
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

function isComment(line: string): boolean {
  return /^\s*(\*|\/\/|\/\*)/.test(line);
}

function sourceFiles(folder: string): SourceFile[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => {
      const full = join(entry.parentPath, entry.name);
      return { path: relative(root, full), text: readFileSync(full, 'utf8') };
    });
}
