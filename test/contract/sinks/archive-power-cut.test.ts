/**
 * A power cut after each effect of a directory archive. The file system is a model that keeps only
 * synced data: without a sync of the file its bytes are lost, and without a sync of the folder its
 * name.
 */
import * as fs from 'node:fs';
import { dirname } from 'node:path';
import { expect, it, vi } from 'vitest';
import { DirectoryStore } from '../../../src/archive/directory-store.ts';
import { originOf } from '../../../src/archive/head.ts';
import { signerOf } from '../../../src/archive/signed-note.ts';
import { verifyArchive } from '../../../src/archive/verify/verify.ts';
import { keyFrom, openWriter, through, windowLines } from '../../support/archive.ts';
import { sized } from '../../support/long-run.ts';

class Folder {
  now = new Map<string, Inode>();
  onDisk = new Map<string, Inode>();
}
class File {
  now = Buffer.alloc(0);
  onDisk = Buffer.alloc(0);
}
type Inode = File | Folder;

const powerCut = new Error('power cut');

const disk = {
  root: new Folder(),
  effects: 0,
  /** The number of the effect that fails, and every later effect with it. */
  cutAt: Infinity,

  effect(): void {
    this.effects += 1;
    if (this.effects >= this.cutAt) throw powerCut;
  },

  /** The files after a restart of the machine. */
  restart(): void {
    const shrink = (inode: Inode): void => {
      if (inode instanceof File) inode.now = inode.onDisk;
      else {
        inode.now = new Map(inode.onDisk);
        for (const each of inode.now.values()) shrink(each);
      }
    };
    shrink(this.root);
    this.cutAt = Infinity;
  },

  at(path: string): Inode | undefined {
    return path
      .split('/')
      .filter((name) => name !== '')
      .reduce<Inode | undefined>((inode, name) => (inode instanceof Folder ? inode.now.get(name) : undefined), this.root);
  },

  folder(path: string): Folder {
    const found = this.at(path);
    if (!(found instanceof Folder)) throw Object.assign(new Error(`ENOENT ${path}`), { code: 'ENOENT' });
    return found;
  },
};

const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1);

vi.mock('node:fs', async (importOriginal) => {
  const open: Inode[] = [];
  const fileOf = (descriptor: number): File => open[descriptor] as File;
  /** Calls back with the result of `work`, or with its error. */
  const answer = <Result>(work: () => Result, callback: (error: unknown, result?: Result) => void): void => {
    let result: Result;
    try {
      result = work();
    } catch (thrown) {
      queueMicrotask(() => callback(thrown));
      return;
    }
    queueMicrotask(() => callback(null, result));
  };
  type Callback = (error: unknown, result?: unknown) => void;
  return {
    ...(await importOriginal<typeof fs>()),
    /** The callback follows an optional mode. */
    open: (path: string, flags: number, ...more: unknown[]) =>
      answer(
        () => {
          if ((flags & fs.constants.O_CREAT) !== 0) {
            disk.effect();
            disk.folder(dirname(path)).now.set(nameOf(path), new File());
          }
          const inode = disk.at(path);
          if (!inode) throw Object.assign(new Error(`ENOENT ${path}`), { code: 'ENOENT' });
          return open.push(inode) - 1;
        },
        more.at(-1) as Callback,
      ),
    writeFile: (descriptor: number, bytes: Uint8Array, callback: Callback) =>
      answer(() => {
        disk.effect();
        fileOf(descriptor).now = Buffer.from(bytes);
      }, callback),
    fchmod: (_descriptor: number, _mode: number, callback: Callback) => answer(() => undefined, callback),
    fstat: (descriptor: number, callback: Callback) =>
      answer(() => ({ isFile: () => open[descriptor] instanceof File, size: fileOf(descriptor).now.length }), callback),
    read: (descriptor: number, target: Buffer, at: number, length: number, position: number, callback: Callback) =>
      answer(() => ({ bytesRead: fileOf(descriptor).now.copy(target, at, position, position + length) }), callback),
    fsync: (descriptor: number, callback: Callback) =>
      answer(() => {
        disk.effect();
        const inode = open[descriptor];
        if (inode instanceof File) inode.onDisk = inode.now;
        else if (inode) inode.onDisk = new Map(inode.now);
      }, callback),
    close: (_descriptor: number, callback: Callback) => answer(() => undefined, callback),
  };
});
vi.mock('node:fs/promises', () => ({
  mkdir: async (path: string) => {
    disk.effect();
    let first: string | undefined;
    const parts = path.split('/').filter((name) => name !== '');
    for (let depth = 1; depth <= parts.length; depth += 1) {
      const at = `/${parts.slice(0, depth).join('/')}`;
      if (disk.at(at)) continue;
      first ??= at;
      disk.folder(dirname(at)).now.set(nameOf(at), new Folder());
    }
    return Promise.resolve(first);
  },
  link: async (from: string, to: string) => {
    disk.effect();
    const folder = disk.folder(dirname(to));
    if (folder.now.has(nameOf(to))) throw Object.assign(new Error(`EEXIST ${to}`), { code: 'EEXIST' });
    folder.now.set(nameOf(to), disk.at(from) as Inode);
    return Promise.resolve();
  },
  rename: async (from: string, to: string) => {
    disk.effect();
    disk.folder(dirname(to)).now.set(nameOf(to), disk.at(from) as Inode);
    disk.folder(dirname(from)).now.delete(nameOf(from));
    return Promise.resolve();
  },
  unlink: async (path: string) => {
    disk.effect();
    disk.folder(dirname(path)).now.delete(nameOf(path));
    return Promise.resolve();
  },
  lstat: async (path: string) => {
    disk.folder(path);
    return Promise.resolve({ isSymbolicLink: () => false });
  },
  readdir: async (path: string) =>
    Promise.resolve([...disk.folder(path).now].map(([name, inode]) => ({ name, isDirectory: () => inode instanceof Folder }))),
}));

const lines = windowLines(9, 2);
const batches = [lines.slice(0, 9), lines.slice(9, 18), lines.slice(18)];

/** Archives the records that the archive lacks. @returns the last position reported as archived */
async function run(): Promise<number> {
  let archived = 0;
  try {
    const writer = await openWriter(new DirectoryStore('/data/archive'), `run ${disk.effects}`);
    archived = writer.position?.seq ?? 0;
    for (const batch of batches) {
      const last = batch.at(-1)?.seq ?? 0;
      if (last <= archived) continue;
      await writer.append(batch, through(last));
      archived = last;
    }
  } catch (thrown) {
    if (thrown !== powerCut) throw thrown;
  }
  return archived;
}

/** An empty disk with the folder created by the operator. */
function format(cutAt: number): void {
  disk.root = new Folder();
  disk.root.now.set('data', new Folder());
  disk.root.onDisk = new Map(disk.root.now);
  disk.effects = 0;
  disk.cutAt = cutAt;
}

// promise: A power failure at any moment loses no archived line, and the archive verifies.
it('loses no archived line, and the archive verifies, whenever the power fails', async () => {
  format(Infinity);
  await run();
  const effects = disk.effects;
  expect(effects).toBeGreaterThan(100);
  for (let cut = 1; cut <= effects; cut += sized(4, 1)) {
    format(cut);
    const archived = await run();
    disk.restart();
    const store = new DirectoryStore('/data/archive');
    const writer = await openWriter(store, 'position');
    expect(writer.position?.seq ?? 0, `archived before effect ${cut}`).toBeGreaterThanOrEqual(archived);
    expect(await run(), `archived after effect ${cut}`).toBe(27);
    const report = await verifyArchive(store, [signerOf((await originOf(store)) ?? '', keyFrom(1))]);
    expect(report, `effect ${cut}`).toMatchObject({ result: 'intact', records: 18 });
  }
}, 60_000);
