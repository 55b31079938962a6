import { linkSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import type { WaybillError } from '../../../src/errors/errors.ts';
import { now, problemsOf, temporaryDirectory, valid } from '../../support/config/loading.ts';

/** The errors about file sinks at these paths, without the place: `sinks.s0.path: …`. */
async function problemsAt(dataDir: string, ...paths: readonly string[]): Promise<readonly string[]> {
  const text = valid({ top: `dataDir: ${JSON.stringify(dataDir)}` }).replace(/sinks:[^]*/, '');
  const sinks = paths.map((path, i) => `  - { id: s${i}, type: file, path: ${JSON.stringify(path)} }\n`).join('');
  return (await problemsOf(`${text}sinks:\n${sinks}`)).map((problem) => problem.replace(/ \(line \d+\)/, ''));
}

describe('a file sink is refused', () => {
  test('in a file of the state, or at the state itself, under any name', async () => {
    using directory = temporaryDirectory();
    const state = join(directory.path, 'state');
    const words = 'is the state directory or a file in it';
    const own = ['waybill.db', 'waybill.db-wal', 'waybill.db-shm', 'lock.db', 'lock.db-journal', 'waybill.sock'];
    // Refused before the state exists, and afterwards.
    for (const make of [() => undefined, () => mkdirSync(state)]) {
      make();
      for (const path of [state, `${state}/`, ...own.map((name) => join(state, name)), join(state, 'x', '..', 'waybill.db')])
        expect(await problemsAt(state, path), path).toEqual([`sinks.s0.path: ${words}`]);
      expect(await problemsAt(state, join(state, 'siem.ndjson'), join(directory.path, 'waybill.db'))).toEqual([]);
    }
    writeFileSync(join(state, 'waybill.db'), '');
    symlinkSync(state, join(directory.path, 'other'));
    linkSync(join(state, 'waybill.db'), join(directory.path, 'hard.log'));
    for (const path of ['other/waybill.db', 'other/waybill.db-wal', 'hard.log'])
      expect(await problemsAt(state, join(directory.path, path)), path).toEqual([`sinks.s0.path: ${words}`]);
    for (const path of [join(state, 'lock.db'), state, join(directory.path, 'other')])
      expect(await problemsAt(join(directory.path, 'other'), path), path).toEqual([`sinks.s0.path: ${words}`]);
    mkdirSync(join(directory.path, '.waybill'));
    linkSync(join(state, 'waybill.db'), join(directory.path, '.waybill', 'siem.log.position'));
    expect(await problemsAt(state, join(directory.path, 'siem.log'))).toEqual([
      'sinks.s0.path: needs a position file next to it, and that path is a file of the state',
    ]);
    // The check creates nothing.
    expect(readdirSync(state)).toEqual(['waybill.db']);
  });

  test('at the path of another sink, also through a link to the directory, and before the file exists', async () => {
    using directory = temporaryDirectory();
    const at = (...names: string[]): string => join(directory.path, ...names);
    const state = at('state');
    mkdirSync(at('logs'));
    symlinkSync(at('logs'), at('again'));
    const same = ['sinks.s1.path: is also the path of another sink, sinks[0]'];
    expect(await problemsAt(state, at('logs', 'a'), at('logs', '.', 'a'))).toEqual(same);
    expect(await problemsAt(state, at('logs', 'a'), at('again', 'a'))).toEqual(same);
    expect(await problemsAt(state, at('logs', 'new', 'a'), at('again', 'new', 'a'))).toEqual(same);
    expect(await problemsAt(state, at('logs', 'a'), at('again', 'b'))).toEqual([]);
    writeFileSync(at('logs', 'a'), '');
    linkSync(at('logs', 'a'), at('logs', 'b'));
    expect(await problemsAt(state, at('logs', 'a'), at('again', 'b'))).toEqual(same);
  });

  test('with a trailing slash, which names a directory', async () => {
    using directory = temporaryDirectory();
    expect(await problemsAt(join(directory.path, 'state'), `${join(directory.path, 'siem.log')}/`)).toEqual([
      'sinks.s0.path: ends with a slash: it must name a file',
    ]);
  });

  test('at a directory', async () => {
    using directory = temporaryDirectory();
    for (const path of [directory.path, '.', join(directory.path, '..')])
      expect(await problemsAt(join(directory.path, 'state'), path), path).toEqual([
        'sinks.s0.path: is a directory: it must name a file in it',
      ]);
  });

  test('at the position file of another sink, in either order', async () => {
    using directory = temporaryDirectory();
    const path = join(directory.path, 'siem.log');
    const state = join(directory.path, 'state');
    const beside = (name: string): string => join(directory.path, '.waybill', name);
    const position = beside('siem.log.position');
    expect(await problemsAt(state, path, position)).toEqual(['sinks.s1.path: is the position file of another sink, sinks[0]']);
    expect(await problemsAt(state, position, path)).toEqual(['sinks.s0.path: is the position file of another sink, sinks[1]']);
    expect(await problemsAt(state, path, `${position}s`)).toEqual([]);
    expect(await problemsAt(state, path, beside('siem.log.lock'))).toEqual(['sinks.s1.path: is the lock file of another sink, sinks[0]']);
  });
});

describe('a file sink is refused at the files of the configuration', () => {
  const sinkAt = (path: string): string => `sinks:\n  - { id: f, type: file, path: ${JSON.stringify(path)} }\n`;
  /** The errors about `sinks.f.path` of a configuration with such a source. */
  const problemsWith = async (directory: string, path: string, parts: Parameters<typeof valid>[0] = {}): Promise<readonly string[]> => {
    const file = join(directory, 'waybill.yaml');
    writeFileSync(file, valid(parts).replace(/sinks:[^]*/, sinkAt(path)));
    try {
      await loadConfig(file, {}, { now });
      return [];
    } catch (thrown) {
      return (thrown as WaybillError).problems.map((problem) => problem.replace(/ \(line \d+\)/, ''));
    }
  };
  const wordsOf = (file: string): string => `sinks.f.path: is "${file}", a file of the configuration`;

  test('the file itself, under any name, or with its position there', async () => {
    using directory = temporaryDirectory();
    const at = (name: string): string => join(directory.path, name);
    const file = at('waybill.yaml');
    expect(await problemsWith(directory.path, at('audit.ndjson'))).toEqual([]);
    linkSync(file, at('hard.yaml'));
    symlinkSync(directory.path, at('again'));
    for (const path of [file, at('./x/../waybill.yaml'), at('hard.yaml'), at('again/waybill.yaml')])
      expect(await problemsWith(directory.path, path), path).toEqual([wordsOf(file)]);
    mkdirSync(at('.waybill'));
    linkSync(file, at('.waybill/audit.ndjson.position'));
    expect(await problemsWith(directory.path, at('audit.ndjson'))).toEqual([
      `sinks.f.path: needs a position file next to it, and that path is "${file}", a file of the configuration`,
    ]);
  });

  test('an included file, a secret file also behind a link, a certificate', async () => {
    using directory = temporaryDirectory();
    const at = (name: string): string => join(directory.path, name);
    writeFileSync(at('more.yaml'), 'sources: []\n');
    expect(await problemsWith(directory.path, at('more.yaml'), { top: 'include: [more.yaml]' })).toEqual([wordsOf(at('more.yaml'))]);
    // As Kubernetes mounts a secret: a link to its present location.
    writeFileSync(at('secret-1'), 'hush');
    symlinkSync('secret-1', at('secret'));
    const auth = { auth: `clientSecret: \${file:${at('secret')}}` };
    for (const name of ['secret', 'secret-1']) expect(await problemsWith(directory.path, at(name), auth)).toEqual([wordsOf(at('secret'))]);
    // Together with other errors.
    expect(await problemsWith(directory.path, at('secret'), { ...auth, top: 'shutdownTimeout: soon' })).toHaveLength(2);
    expect(await problemsWith(directory.path, at('ca.pem'), { top: `tls: { ca: ${at('ca.pem')} }` })).toEqual([wordsOf(at('ca.pem'))]);
  });
});
