/** The history of the keys of an archive, as `waybill archive keys` prints it. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { DirectoryStore } from '../../../src/archive/directory-store.ts';
import { keyHistory } from '../../../src/archive/key-history.ts';
import { command } from '../../../src/cli/commands/archive/index.ts';
import { keyFrom, MemoryStore, openWriter, recordLine, start, through } from '../../support/archive.ts';
import type { WritableArchiveStore } from '../../../src/archive/store.ts';
import { outputOf } from '../../support/command-io.ts';
import { temporary } from '../../support/model-journal.ts';

/** Each segment has a record and the position: checkpoint `n` has 2n lines. @returns the public key of each writer */
async function written(store: WritableArchiveStore, segments: readonly (readonly [key: number, count: number])[]): Promise<string[]> {
  const publicKeys: string[] = [];
  let seq = 0;
  for (const [i, [key, count]] of segments.entries()) {
    const previous = segments[i - 1]?.[0];
    const writer = await openWriter(store, `${i}`, {
      key: keyFrom(key),
      ...(previous !== undefined && { previousKey: keyFrom(previous) }),
    });
    for (let added = 0; added < count; added += 1) {
      seq += 1;
      await writer.append([recordLine(seq, start)], through(seq));
    }
    publicKeys.push(writer.publicKey);
  }
  return publicKeys;
}

describe('the keys of an archive', () => {
  it.each([
    [[[1, 1]], [[2, undefined]]],
    [[[1, 40]], [[2, undefined]]],
    [
      [
        [1, 3],
        [2, 1],
      ],
      [
        [2, 8],
        [8, undefined],
      ],
    ],
    [
      [
        [1, 1],
        [2, 1],
        [3, 1],
      ],
      [
        [2, 4],
        [4, 6],
        [6, undefined],
      ],
    ],
    [
      [
        [1, 17],
        [2, 30],
        [3, 9],
      ],
      [
        [2, 36],
        [36, 96],
        [96, undefined],
      ],
    ],
  ] as const)('with the segments %j began and ended at the sizes %j', async (segments, sizes) => {
    const store = new MemoryStore();
    await written(store, segments);
    expect((await keyHistory(store)).map(({ first, last }) => [first, last])).toEqual(sizes);
  });

  it('are printed one a line, with the sizes', async () => {
    const directory = temporary();
    const keys = await written(new DirectoryStore(directory), [[1, 2], [2, 3]]); // prettier-ignore
    const run = async (...args: string[]): Promise<string> =>
      (await outputOf((given, io) => command.run(given, io), ['keys', '--directory', directory, ...args])).stdout;
    expect(await run()).toBe(`${keys[0]} 2 6\n${keys[1]} 6 -\n`);
    expect(JSON.parse(await run('--json'))).toEqual({
      keys: [
        { key: keys[0], first: 2, last: 6 },
        { key: keys[1], first: 6, last: null },
      ],
    });
    // Without the second key, the checkpoints after the change are of nobody.
    rmSync(join(directory, 'keys', keys[1]?.split('+').slice(0, 2).join('+') ?? ''));
    await expect(run()).rejects.toMatchObject({ code: 'archive_broken' });
  });

  it('are unknown if no checkpoint leads from one to the next', async () => {
    const store = new MemoryStore();
    await written(store, [[1, 2], [2, 3]]); // prettier-ignore
    store.files.delete('checkpoints/0000000003');
    await expect(keyHistory(store)).rejects.toMatchObject({ code: 'archive_broken' });
    expect(await keyHistory(new MemoryStore())).toEqual([]);
  });
});
