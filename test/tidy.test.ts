/** The repository checks itself: who may import whom, no grab-bag files, nothing that a reader was promised and cannot find. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { commands } from '../src/commands/list.ts';
import { sinks } from '../src/sink/index.ts';
import { absent, designed, mutants } from './support/mutants.ts';

const root = resolve(import.meta.dirname, '..');

interface SourceFile {
  /** Below the root, e.g. `src/collect/tip.ts`. */
  readonly path: string;
  readonly text: string;
  /** Files of the repository, and names of packages. */
  readonly imports: readonly string[];
}

/** A room by the longest prefix that names it, and what it may import: rooms or packages. `node:` alone stands for every built-in module. */
const rooms: readonly (readonly [room: string, allowed: readonly string[]])[] = [
  ['src/model.ts', []],
  ['src/errors.ts', ['src/connect/quote.ts', 'src/connect/secrets.ts']],
  // Errors and the log are the last defence of secrets.
  ['src/connect/secrets.ts', ['node:']],
  ['src/connect/quote.ts', ['src/connect/secrets.ts']],
  ['src/version.ts', ['node:']],
  ['src/clock.ts', ['src/model.ts', 'node:']],
  ['src/lock.ts', ['better-sqlite3', 'node:']],
  // What collect and normalize both read of a record: pure.
  ['src/record/', ['src/record/', 'src/model.ts', 'node:crypto']],
  ['src/normalize/settings.ts', ['src/normalize/', 'src/record/', 'zod']],
  ['src/normalize/', ['src/normalize/', 'src/record/', 'src/model.ts', 'src/errors.ts', 'node:crypto']],
  ['src/encode/settings.ts', ['zod']],
  ['src/encode/', ['src/encode/', 'src/record/', 'src/model.ts', 'node:crypto']],
  ['src/collect/windows.ts', ['src/model.ts']],
  ['src/collect/', ['src/collect/', 'src/record/', 'src/model.ts', 'src/errors.ts', 'node:crypto']],
  ['src/deliver/settings.ts', ['src/config/values.ts', 'src/model.ts', 'src/sink/define.ts', 'zod']],
  ['src/deliver/', ['src/deliver/', 'src/record/', 'src/model.ts', 'src/errors.ts']],
  ['src/journal/settings.ts', ['src/config/values.ts', 'zod']],
  ['src/journal/', ['src/journal/', 'src/record/', 'src/lock.ts', 'src/model.ts', 'src/errors.ts', 'better-sqlite3', 'node:']],
  // The way to a server, whoever goes it: trust, proxy, what is quoted of the other side's words.
  ['src/connect/settings.ts', ['src/config/values.ts', 'zod']],
  ['src/connect/', ['src/connect/', 'src/errors.ts', 'undici', 'node:']],
  ['src/source/settings.ts', ['src/config/values.ts', 'src/connect/settings.ts', 'src/model.ts', 'zod']],
  ['src/source/', ['src/source/', 'src/connect/', 'src/model.ts', 'src/errors.ts', 'undici', 'openid-client', 'jose', 'node:']],
  ['src/sink/index.ts', ['src/sink/']],
  ['src/sink/define.ts', ['src/connect/', 'src/model.ts', 'zod']],
  ['src/sink/file-', ['src/sink/file-', 'src/sink/define.ts', 'src/lock.ts', 'src/model.ts', 'src/errors.ts', 'node:']],
  ['src/sink/file.ts', ['src/sink/define.ts', 'src/sink/file-', 'src/config/values.ts', 'src/errors.ts', 'zod', 'node:']],
  ['src/sink/', ['src/sink/define.ts', 'src/model.ts', 'src/errors.ts', 'zod', 'node:']],
  [
    'src/sink/elasticsearch',
    [
      'src/sink/define.ts', 'src/sink/elasticsearch-', 'src/config/values.ts', 'src/connect/', 'src/model.ts', 'src/errors.ts',
      '@elastic/elasticsearch', 'undici', 'zod', 'node:',
    ],
  ], // prettier-ignore
  [
    'src/sink/syslog',
    [
      'src/sink/define.ts',
      'src/sink/syslog-',
      'src/config/values.ts',
      'src/connect/',
      'src/model.ts',
      'src/errors.ts',
      'src/version.ts',
      'zod',
      'node:',
    ],
  ],
  [
    'src/sink/splunk-hec',
    [
      'src/sink/define.ts',
      'src/sink/splunk-hec-',
      'src/config/values.ts',
      'src/connect/',
      'src/model.ts',
      'src/errors.ts',
      'src/version.ts',
      'undici',
      'zod',
      'node:',
    ],
  ],
  [
    'src/sink/kafka',
    [
      'src/sink/define.ts',
      'src/sink/kafka-',
      'src/config/values.ts',
      'src/connect/',
      'src/model.ts',
      'src/errors.ts',
      'zod',
      'kafkajs',
      'undici',
      'node:',
    ],
  ],
  [
    'src/config/',
    [
      'src/config/', 'src/connect/settings.ts', 'src/connect/secrets.ts', 'src/source/settings.ts', 'src/journal/settings.ts', 'src/deliver/settings.ts', 'src/observe/settings.ts', 'src/normalize/',
      'src/encode/settings.ts', 'src/sink/define.ts', 'src/sink/index.ts', 'src/record/', 'src/model.ts', 'src/errors.ts', 'zod', 'yaml', 'node:',
    ],
  ], // prettier-ignore
  ['src/observe/settings.ts', ['src/config/values.ts', 'zod']],
  [
    'src/observe/',
    [
      'src/observe/',
      'src/connect/secrets.ts',
      'src/model.ts',
      'src/errors.ts',
      'pino',
      'pino-pretty',
      '@opentelemetry/',
      'fastify',
      'node:',
    ],
  ],
  [
    'src/reference/',
    ['src/reference/', 'better-sqlite3', 'jose', '@peculiar/x509', '@rapideditor/country-coder', 'reflect-metadata', 'zod', 'node:'],
  ],
  ['src/commands/compare-tally.ts', ['src/model.ts', 'better-sqlite3']],
  // The wiring, the commands and the command line know every room but the reference service, which is started as a program.
  ['src/', ['src/!reference', 'zod', 'node:']],
  // End-to-end tests start programs and speak their protocols.
  ['test/e2e/', ['test/e2e/', 'test/support/', 'vitest', 'undici', 'better-sqlite3', '@peculiar/x509', 'node:']],
];

const files = sourceFiles('src').concat(sourceFiles('test'), sourceFiles('bench'));

describe('rooms', () => {
  it('import only what architecture allows', () => {
    const faults = files.flatMap((file) => {
      const room = rooms.filter(([prefix]) => file.path.startsWith(prefix)).sort(([a], [b]) => b.length - a.length)[0];
      if (!room) return [];
      return file.imports
        .filter((name) => !room[1].some((allowed) => permits(allowed, name)))
        .map((name) => `${file.path} imports ${name}`);
    });
    expect(faults).toEqual([]);
  });

  it('are never imported from the reference service or by it', () => {
    const faults = files
      .filter(({ path }) => path.startsWith('src/'))
      .flatMap(({ path, imports }) => {
        const inside = path.startsWith('src/reference/');
        return imports
          .filter((name) => name.startsWith('src/') && name.startsWith('src/reference/') !== inside)
          .map((name) => `${path} imports ${name}`);
      });
    expect(faults).toEqual([]);
  });

  it('let a sink know no other sink', () => {
    for (const { path, imports } of files.filter((file) => /^src\/sink\/(?!index|define)/.test(file.path))) {
      const own = path.replace(/(-\w+)?\.ts$/, '');
      expect(imports.filter((name) => name.startsWith('src/sink/') && name !== 'src/sink/define.ts' && !name.startsWith(own))).toEqual([]);
    }
  });
});

describe('files', () => {
  it('are no grab-bags', () => {
    expect(files.map(({ path }) => path).filter((path) => /(^|\/)(utils?|lib|common|helpers?|misc|shared)(\/|\.ts$)/.test(path))).toEqual(
      [],
    );
  });

  it('read the clock, wait and throw dice only where these are implemented', () => {
    // The clock, the clients of the outside, the programs of their own, and the commands that are the outside themselves.
    const allowed = /^src\/(clock\.ts|connect\/(connection|proxy)\.ts|source\/(exchange|token)\.ts|reference\/|commands\/)/;
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

  it('are all that the design names, or wait for what is not there yet', () => {
    // C16b is a second way to break what C16 breaks; W1 and on break what the design does not name.
    const listed = new Set(mutants.map(({ id }) => id.replace(/[a-z]$/, '')).filter((id) => !id.startsWith('W')));
    const waiting = absent.flatMap(({ ids }) => ids);
    expect([...listed, ...waiting].sort()).toEqual([...designed].sort());
    expect(absent.filter(({ until }) => existsSync(join(root, until)))).toEqual([]);
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

/** `src/record/` is a room, `node:` every built-in module, `src/!reference` everything of src but that room, else a package or a file. */
function permits(allowed: string, name: string): boolean {
  if (allowed === 'src/!reference') return name.startsWith('src/') && !name.startsWith('src/reference/');
  return /[/:-]$/.test(allowed) ? name.startsWith(allowed) : name === allowed;
}

function isComment(line: string): boolean {
  return /^\s*(\*|\/\/|\/\*)/.test(line);
}

function sourceFiles(folder: string): SourceFile[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => {
      const full = join(entry.parentPath, entry.name);
      const text = readFileSync(full, 'utf8');
      const imports = [
        ...text.matchAll(/^(?:import|export)\s[^'"]*?from\s+['"]([^'"]+)['"]|^import\s+['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]/gm),
      ];
      const named = imports.map(([, from, bare, dynamic]) => from ?? bare ?? dynamic ?? '');
      return {
        path: relative(root, full),
        text,
        imports: named.map((name) => (name.startsWith('.') ? relative(root, resolve(dirname(full), name)) : name)),
      };
    });
}
