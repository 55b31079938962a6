import { linkSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { problemsOf, temporaryDirectory, valid } from './loading.ts';

/** What is wrong with file sinks at these paths, without the place: `sinks.s0.path: …`. */
async function problemsAt(state: string, ...paths: readonly string[]): Promise<readonly string[]> {
  const text = valid({ top: `state: ${JSON.stringify(state)}` }).replace(/sinks:[^]*/, '');
  const sinks = paths.map((path, i) => `  - { id: s${i}, type: file, path: ${JSON.stringify(path)} }\n`).join('');
  return (await problemsOf(`${text}sinks:\n${sinks}`)).map((problem) => problem.replace(/ \(line \d+\)/, ''));
}

describe('a file sink is refused', () => {
  test('in a file of the state, or at the state itself, by whatever name', async () => {
    using directory = temporaryDirectory();
    const state = join(directory.path, 'state');
    const words = 'is the state itself, or a file of it';
    const own = ['waybill.db', 'waybill.db-wal', 'waybill.db-shm', 'lock.db', 'lock.db-journal', 'waybill.sock'];
    // As well before the state is there as afterwards.
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
    linkSync(join(state, 'waybill.db'), join(directory.path, 'siem.log.position'));
    expect(await problemsAt(state, join(directory.path, 'siem.log'))).toEqual([
      'sinks.s0.path: would have its position beside it in a file of the state',
    ]);
    // Nothing was made by looking.
    expect(readdirSync(state)).toEqual(['waybill.db']);
  });

  test('where another one writes, also through a link to the directory, and before the file is there', async () => {
    using directory = temporaryDirectory();
    const at = (...names: string[]): string => join(directory.path, ...names);
    const state = at('state');
    mkdirSync(at('logs'));
    symlinkSync(at('logs'), at('again'));
    const same = ['sinks.s1.path: is the same as that of another sink, sinks[0]'];
    expect(await problemsAt(state, at('logs', 'a'), at('logs', '.', 'a'))).toEqual(same);
    expect(await problemsAt(state, at('logs', 'a'), at('again', 'a'))).toEqual(same);
    expect(await problemsAt(state, at('logs', 'new', 'a'), at('again', 'new', 'a'))).toEqual(same);
    expect(await problemsAt(state, at('logs', 'a'), at('again', 'b'))).toEqual([]);
    writeFileSync(at('logs', 'a'), '');
    linkSync(at('logs', 'a'), at('logs', 'b'));
    expect(await problemsAt(state, at('logs', 'a'), at('again', 'b'))).toEqual(same);
  });

  test('where another one keeps its position, whichever comes first', async () => {
    using directory = temporaryDirectory();
    const path = join(directory.path, 'siem.log');
    const state = join(directory.path, 'state');
    expect(await problemsAt(state, path, `${path}.position`)).toEqual([
      'sinks.s1.path: is where another sink, sinks[0], keeps its position',
    ]);
    expect(await problemsAt(state, `${path}.position`, path)).toEqual([
      'sinks.s0.path: is where another sink, sinks[1], keeps its position',
    ]);
    expect(await problemsAt(state, path, `${path}.positions`)).toEqual([]);
  });
});
