/**
 * The sink `file` and its disk: the file and its length, truncation, permissions, rotation,
 * deletion or replacement by another process, and the order of writes to disk.
 */
import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import * as fs from 'node:fs';
import { open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { systemClock } from '../../../src/time/clock.ts';
import { Delivery } from '../../../src/deliver/delivery.ts';
import type { Sink } from '../../../src/model/sink.ts';
import type { Log, Meters } from '../../../src/model/telemetry.ts';
import { file } from '../../../src/sink/file/index.ts';
import { append, openJournal, temporary } from '../../support/model-journal.ts';
import { plain } from '../../support/deliver/rig.ts';
import { batchOf, contextOf, messages, ModelKept, positionOf } from '../../support/sinks/sink-batches.ts';

const never = new AbortController().signal;
const silent = (): void => undefined;
const log: Log = { write: silent };
const meters = { eventsDelivered: silent, deliveryDelay: silent, sinkRetried: silent } as unknown as Meters;

let folder: string;
let path: string;
let kept: ModelKept;
let opened: Sink[] = [];

beforeEach(() => {
  folder = temporary();
  path = join(folder, 'audit.log');
  kept = new ModelKept();
});
afterEach(async () => {
  vi.restoreAllMocks();
  for (const sink of opened) await sink[Symbol.asyncDispose]();
  opened = [];
  fs.rmSync(folder, { recursive: true, force: true });
});

async function openSink(): Promise<Sink> {
  const sink = await file.open({ path, compression: 'none' }, contextOf('siem'), kept, never);
  opened.push(sink);
  return sink;
}

/** Sends messages; `acknowledge` says whether the journal learns of it. */
async function send(sink: Sink, from: number, through: number, { acknowledge = true } = {}): Promise<void> {
  const batch = batchOf(messages(from, through));
  const { resumeNote: note } = await sink.send(batch, never);
  if (acknowledge) kept.acknowledge(batch, note);
}

const text = (from: number, through: number): string => messages(from, through).map((each) => `${Buffer.from(each.bytes).toString('utf8')}\n`).join(''); // prettier-ignore
const read = (name = 'audit.log'): string => fs.readFileSync(join(folder, name), 'utf8');
const beside = (ending: string): string => join(dirname(path), '.waybill', `${basename(path)}.${ending}`);
const slots = (): string => beside('position');

describe('on open', () => {
  test.each(['{"half a li', '{"a whole line of a batch that was never acknowledged"}\n', '\0\0\0\0'])(
    'bytes after our length are truncated: %j',
    async (torn) => {
      const sink = await openSink();
      await send(sink, 1, 3);
      fs.appendFileSync(path, torn);
      await openSink();
      expect(read()).toBe(text(1, 3));
    },
  );

  test('an existing file is never truncated, and lines are appended to it', async () => {
    fs.writeFileSync(path, 'of another program\n');
    const sink = await openSink();
    await send(sink, 1, 2);
    await openSink();
    expect(read()).toBe(`of another program\n${text(1, 2)}`);
  });

  test('the slot of the position file is used if it is newer and its chain is in the journal', async () => {
    const first = await openSink();
    await send(first, 1, 3);
    await send(first, 4, 6, { acknowledge: false });
    const second = await openSink();
    expect((await second.position?.(never))?.position).toEqual(positionOf(6));
    expect(read()).toBe(text(1, 6));
  });

  test.each([
    ['an entry that the journal does not have', () => (kept.head = 5)],
    ['a chain that the journal does not have', () => (kept.chainAt = async () => Buffer.alloc(32, 255))],
  ])('a slot ahead with %s blocks the sink, and nothing is cut', async (_name, change) => {
    const first = await openSink();
    await send(first, 1, 3);
    await send(first, 4, 6, { acknowledge: false });
    change();
    await expect(openSink()).rejects.toMatchObject({ code: 'sink_blocked', message: expect.stringContaining('entry 6') as string });
    expect(read()).toBe(text(1, 6));
  });

  test('a slot of another journal blocks the sink, even an older one', async () => {
    await send(await openSink(), 1, 3);
    kept = new ModelKept('b'.repeat(32));
    kept.position = positionOf(10);
    await expect(openSink()).rejects.toMatchObject({ code: 'sink_blocked', message: expect.stringContaining('another state') as string });
    expect(read()).toBe(text(1, 3));
  });

  const openOther = async (own: ModelKept): Promise<Sink> => {
    const sink = await file.open({ path, compression: 'none' }, contextOf('other'), own, never);
    opened.push(sink);
    return sink;
  };

  /** The position file as an earlier release wrote it: the slots name no sink. */
  function forgetSink(): void {
    const bytes = fs.readFileSync(slots());
    for (const at of [0, 512]) {
      const text = bytes.toString('utf8', at + 65, at + 512).trimEnd();
      if (text === '') continue;
      const nameless = JSON.stringify({ ...(JSON.parse(text) as object), sink: undefined });
      bytes.write(`${createHash('sha256').update(nameless).digest('hex')} ${nameless}\n`.padEnd(512, ' '), at);
    }
    fs.writeFileSync(slots(), bytes);
  }

  /** The sink "siem" wrote the file and was removed; a new sink has its path. */
  async function abandoned(): Promise<ModelKept> {
    const first = await openSink();
    await send(first, 1, 3);
    await first[Symbol.asyncDispose]();
    return new ModelKept();
  }

  test('a slot of another sink blocks the sink, until an operator adopts the file: then it receives everything', async () => {
    const own = await abandoned();
    await expect(openOther(own)).rejects.toMatchObject({
      code: 'sink_blocked',
      message: `cannot continue "${path}" for sink "other": the sink "siem" wrote it up to entry 3; give this sink another path, name it "siem" again, or see "waybill sinks adopt"`,
    });
    own.adopt = true;
    const sink = await openOther(own);
    own.adopt = false;
    expect(await sink.position?.(never)).toMatchObject({ position: { seq: 0 }, sink: 'other' });
    await send(sink, 1, 4, { acknowledge: false });
    expect(read()).toBe(text(1, 3) + text(1, 4));
    expect(await (await openOther(own)).position?.(never)).toMatchObject({ position: positionOf(4), sink: 'other' });
    // The first sink returns: it does not cut off the lines of the other one.
    await expect(openSink()).rejects.toMatchObject({ code: 'sink_blocked' });
    for (const each of opened.splice(0)) await each[Symbol.asyncDispose]();
    kept.position = positionOf(4);
    await openSink();
    expect(read()).toBe(text(1, 3) + text(1, 4));
  });

  test('a slot without the name of a sink continues the sink that has a note, and is foreign to a new one', async () => {
    const first = await openSink();
    await send(first, 1, 3);
    await send(first, 4, 6, { acknowledge: false });
    forgetSink();
    expect(await (await openSink()).position?.(never)).toMatchObject({ position: positionOf(6), sink: 'siem' });
    const own = await abandoned();
    forgetSink();
    expect(await (await openOther(own)).position?.(never)).toMatchObject({ position: positionOf(3), sink: undefined });
    expect(read()).toBe(text(1, 6) + text(1, 3));
  });

  test('an older slot is ignored: the resume note of the journal is newer', async () => {
    const first = await openSink();
    await send(first, 1, 3);
    const old = fs.readFileSync(slots());
    await send(first, 4, 6);
    fs.writeFileSync(slots(), old);
    const second = await openSink();
    expect((await second.position?.(never))?.position).toEqual(positionOf(6));
    expect(read()).toBe(text(1, 6));
    await send(second, 7, 7);
    expect(read()).toBe(text(1, 7));
  });

  test('of equal positions, the resume note of the journal is used', async () => {
    const first = await openSink();
    await send(first, 1, 3);
    fs.renameSync(path, `${path}.1`);
    fs.writeFileSync(path, 'other\n');
    // The start of the other file is noted; the slot still names the first one, for the same
    // position.
    await openSink();
    fs.appendFileSync(path, 'torn');
    await openSink();
    expect(read()).toBe('other\n');
    expect(read('audit.log.1')).toBe(text(1, 3));
  });

  test.each([0, 1])('a torn slot counts as absent, and the other one is used (slot %i)', async (torn) => {
    const first = await openSink();
    await send(first, 1, 3);
    await send(first, 4, 6, { acknowledge: false });
    const bytes = fs.readFileSync(slots());
    // Two slots of 512 bytes; the newer one holds entry 6.
    const newer = bytes.subarray(512, 1024).includes('"seq":6') ? 1 : 0;
    bytes.fill('?', torn * 512 + 100, torn * 512 + 110);
    fs.writeFileSync(slots(), bytes);
    const second = await openSink();
    // Without the newer slot the second batch is unknown: it is truncated, and comes again.
    const known = torn === newer ? 3 : 6;
    expect((await second.position?.(never))?.position).toEqual(positionOf(known));
    expect(read()).toBe(text(1, known));
    await send(second, known + 1, 8);
    await openSink();
    expect(read()).toBe(text(1, 8));
  });

  test.each(['', '{}', 'x'.repeat(2_000), '\0'.repeat(1_024)])('an invalid position file is ignored (%#)', async (content) => {
    fs.mkdirSync(dirname(slots()));
    fs.writeFileSync(slots(), content);
    const sink = await openSink();
    await send(sink, 1, 2);
    await openSink();
    expect(read()).toBe(text(1, 2));
  });

  test('a file that is shorter than its accepted length has lost data, and is not changed', async () => {
    await send(await openSink(), 1, 3);
    fs.truncateSync(path, 20);
    await expect(openSink()).rejects.toMatchObject({ code: 'file_truncated', message: expect.stringContaining('20 bytes') as string });
    expect(fs.statSync(path).size).toBe(20);
  });

  test('of two instances at once, the second waits for the first and truncates none of its lines', async () => {
    await send(await openSink(), 1, 3);
    fs.appendFileSync(path, 'torn');
    const prototype = await handles();
    const truncate = callOf(prototype, 'truncate');
    let isHeld = true;
    const thaw = Promise.withResolvers<undefined>();
    vi.spyOn(prototype, 'truncate').mockImplementation(async function (this: FileHandle, length) {
      if (isHeld) {
        isHeld = false;
        await thaw.promise;
      }
      await truncate.apply(this, [length]);
    });
    // The first one hangs past its deadline, and the loop opens another.
    const late = openSink();
    const next = (async () => {
      const sink = await openSink();
      await send(sink, 4, 6);
    })();
    await new Promise((resolve) => setTimeout(resolve, 50));
    thaw.resolve(undefined);
    await Promise.all([late, next]);
    expect(read()).toBe(text(1, 6));
  });
});

describe('while open', () => {
  test('after a rename, the sink writes a new file', async () => {
    const sink = await openSink();
    await send(sink, 1, 3);
    fs.renameSync(path, `${path}.1`);
    await send(sink, 4, 6);
    expect([read('audit.log.1'), read()]).toEqual([text(1, 3), text(4, 6)]);
    await openSink();
    expect([read('audit.log.1'), read()]).toEqual([text(1, 3), text(4, 6)]);
  });

  test('a rename is followed without a batch: a second rotation may compress and delete the renamed file, which is no loss', async () => {
    const sink = await openSink();
    await send(sink, 1, 3);
    fs.renameSync(path, `${path}.1`);
    await vi.waitFor(() => expect(fs.existsSync(path)).toBe(true), 10_000);
    await send(sink, 4, 4);
    fs.unlinkSync(`${path}.1`);
    await send(sink, 5, 6);
    expect(kept.losses).toEqual([]);
    expect(read()).toBe(text(4, 6));
  });

  test('a file that was deleted is reported without a batch', async () => {
    const sink = await openSink();
    await send(sink, 1, 3);
    fs.unlinkSync(path);
    await vi.waitFor(() => expect(kept.losses).toMatchObject([{ first: 1, last: 3 }]), 10_000);
  });

  test('a file that copytruncate emptied is written from its new end, without a hole', async () => {
    const sink = await openSink();
    await send(sink, 1, 3);
    fs.copyFileSync(path, `${path}.1`);
    fs.truncateSync(path, 0);
    await send(sink, 4, 6);
    expect([read('audit.log.1'), read()]).toEqual([text(1, 3), text(4, 6)]);
    await openSink();
    expect(read()).toBe(text(4, 6));
  });

  test('a deleted file is created again, and a file in its place is appended to', async () => {
    const sink = await openSink();
    await send(sink, 1, 3);
    fs.unlinkSync(path);
    await send(sink, 4, 4);
    expect(read()).toBe(text(4, 4));
    fs.unlinkSync(path);
    fs.writeFileSync(path, 'new\n');
    await send(sink, 5, 5);
    expect(read()).toBe(`new\n${text(5, 5)}`);
  });

  test.each([
    ['truncated to half', () => fs.truncateSync(path, Math.floor(fs.statSync(path).size / 2)), 'was truncated from'],
    ['emptied', () => fs.truncateSync(path, 0), 'was truncated from'],
    ['deleted', () => fs.unlinkSync(path), 'was deleted'],
    [
      'replaced',
      () => {
        fs.unlinkSync(path);
        fs.writeFileSync(path, '');
      },
      'was deleted',
    ],
  ])('a file that is %s while it is open is reported once, with the entries that it held', async (_what, harm, words) => {
    const sink = await openSink();
    await send(sink, 1, 3);
    fs.renameSync(path, `${path}.1`);
    await send(sink, 4, 6);
    // A rename loses nothing.
    expect(kept.losses).toEqual([]);
    harm();
    await send(sink, 7, 8);
    expect(kept.losses).toEqual([{ first: 4, last: 6, message: expect.stringContaining(words) as string }]);
    await send(sink, 9, 9);
    expect(kept.losses).toHaveLength(1);
    // After a restart, too, the file holds the records after the loss.
    const again = await openSink();
    fs.truncateSync(path, 0);
    await send(again, 10, 10);
    expect(kept.losses.slice(1)).toMatchObject([{ first: 7, last: 9 }]);
  });

  test('check refuses a file with a second hard link, and so does the sink before it writes', async () => {
    await (await openSink())[Symbol.asyncDispose]();
    fs.linkSync(path, join(folder, 'second.log'));
    for (const name of ['audit.log', 'second.log'])
      await expect(
        file.open({ path: join(folder, name), compression: 'none' }, contextOf('siem'), new ModelKept(), never),
      ).rejects.toMatchObject({
        code: 'sink_blocked',
        message: expect.stringContaining('the file has 2 hard links') as string,
      });
    expect(await file.check({ path, compression: 'none' }, contextOf('siem'), never)).toEqual([
      { level: 'error', message: expect.stringContaining('2 hard links') as string, setting: 'sinks.siem.path' },
    ]);
    fs.unlinkSync(join(folder, 'second.log'));
    await send(await openSink(), 1, 1);
    expect(kept.losses).toEqual([]);
  });

  test('the journal has the new file before its first line: after a kill no line is repeated', async () => {
    const sink = await openSink();
    await send(sink, 1, 3);
    fs.renameSync(path, `${path}.1`);
    fs.writeFileSync(path, 'first line of the new file\n');
    const before = kept.notes;
    const lengths: number[] = [];
    const commitNote = kept.commitResumeNote.bind(kept);
    kept.commitResumeNote = async (note) => {
      lengths.push(fs.statSync(path).size);
      await commitNote(note);
    };
    // The batch reaches the new file, and the process dies before its slot and its acknowledgement are written.
    const slot = fs.readFileSync(slots());
    await send(sink, 4, 6, { acknowledge: false });
    fs.writeFileSync(slots(), slot);
    expect([kept.notes, lengths]).toEqual([before + 1, [27]]);
    const next = await openSink();
    expect((await next.position?.(never))?.position).toEqual(positionOf(3));
    await send(next, 4, 6);
    expect(read()).toBe(`first line of the new file\n${text(4, 6)}`);
  });

  test('a missing directory blocks the sink until it exists again', async () => {
    const sink = await openSink();
    await send(sink, 1, 1);
    fs.renameSync(folder, `${folder}.away`);
    await expect(send(sink, 2, 2)).rejects.toMatchObject({ code: 'sink_blocked', message: expect.stringContaining('ENOENT') as string });
    fs.renameSync(`${folder}.away`, folder);
    await send(sink, 2, 2);
    expect(read()).toBe(text(1, 2));
  });
});

describe('permissions', () => {
  test('both files are 0600, whatever the umask', async () => {
    // The umask belongs to a process, and test workers share theirs, so this runs in a separate
    // process.
    const moduleOf = (name: string): string => JSON.stringify(new URL(`../../../src/${name}`, import.meta.url).href);
    const made = execFileSync(
      process.execPath,
      ['--input-type=module', '-e', `process.umask(0); const { file } = await import(${moduleOf('sink/file/index.ts')}); const { systemClock } = await import(${moduleOf('time/clock.ts')});
       const kept = { journal: 'a', position: { seq: 0, chain: new Uint8Array(32) }, resumeNote: undefined, chainAt: async () => undefined, commitResumeNote: async () => {} };
       await (await file.open({ path: ${JSON.stringify(path)}, compression: 'none' }, { id: 'siem', clock: systemClock }, kept, AbortSignal.timeout(9e3)))[Symbol.asyncDispose]();`],
      { encoding: 'utf8' },
    ); // prettier-ignore
    expect(made).toBe('');
    expect([path, slots()].map((each) => (fs.statSync(each).mode & 0o777).toString(8))).toEqual(['600', '600']);
  });

  test('every file that matches <path>* holds messages only, also after a second open', async () => {
    await send(await openSink(), 1, 3);
    for (const sink of opened.splice(0)) await sink[Symbol.asyncDispose]();
    kept = new ModelKept();
    const sink = await openSink();
    expect((await sink.position?.(never))?.position).toEqual(positionOf(3));
    await send(sink, 4, 6);
    expect(fs.readdirSync(folder).sort()).toEqual(['.waybill', 'audit.log']);
    expect(read()).toBe(text(1, 6));
  });

  test.each(['audit.log', '.waybill/audit.log.position', '.waybill'])(
    'a link in place of %s is refused, and its target is not changed',
    async (name) => {
      const secret = join(folder, 'secret');
      fs.writeFileSync(secret, 'untouched');
      if (name.includes('/')) fs.mkdirSync(join(folder, '.waybill'));
      fs.symlinkSync(secret, join(folder, name));
      await expect(openSink()).rejects.toMatchObject({
        code: 'sink_blocked',
        message: expect.stringContaining('sinks.siem.path') as string,
      });
      expect(fs.readFileSync(secret, 'utf8')).toBe('untouched');
    },
  );

  test('a missing directory, or a directory in place of the file, blocks the sink; the error names the setting', async () => {
    fs.mkdirSync(path);
    await expect(openSink()).rejects.toMatchObject({
      code: 'sink_blocked',
      message: `cannot open "${path}" for sink "siem" (sinks.siem.path): it is a directory, not a file`,
    });
    path = join(folder, 'missing', 'audit.log');
    await expect(openSink()).rejects.toThrow(`cannot open "${slots()}" for sink "siem" (sinks.siem.path): ENOENT`);
  });
});

describe('an unsuitable path', () => {
  const check = (): ReturnType<typeof file.check> => file.check({ path, compression: 'none' }, contextOf('siem'), never);
  const made: Record<string, () => void> = {
    'a directory': () => fs.mkdirSync(path),
    'a FIFO': () => execFileSync('mkfifo', [path]),
    'a device': () => (path = '/dev/null'),
    'a socket': () => execFileSync(process.execPath, ['-e', `require('net').createServer().listen(${JSON.stringify(path)}, () => process.exit(0))`]),
    'a symbolic link': () => fs.symlinkSync(join(folder, 'elsewhere'), path),
  }; // prettier-ignore

  test.each(Object.keys(made))(
    '%s: check reports an error, and the sink is blocked, both with the name of the setting; no file is created',
    async (what) => {
      try {
        made[what]?.();
      } catch {
        // A process that creates a socket ends by a signal.
      }
      const before = fs.readdirSync(folder);
      const words = `${what}, ${what === 'a symbolic link' ? 'which is not followed: name the file itself' : 'not a file'}`;
      expect(await check()).toEqual([
        { level: 'error', message: `cannot use "${path}" (sinks.siem.path): it is ${words}`, setting: 'sinks.siem.path' },
      ]);
      await expect(openSink()).rejects.toMatchObject({
        code: 'sink_blocked',
        message: `cannot open "${path}" for sink "siem" (sinks.siem.path): it is ${words}`,
      });
      expect(fs.readdirSync(folder)).toEqual(before);
    },
  );

  test('a name that is too long for rotation is refused at the start', async () => {
    path = join(folder, 'n'.repeat(235));
    const rotate = { size: 4_096 };
    const words = 'its name is 1 bytes too long for rotate, which renames it to <path>.20261121T230000.000Z';
    const settings = { path, rotate, compression: 'none' as const };
    expect(await file.check(settings, contextOf('siem'), never)).toEqual([
      { level: 'error', message: `cannot use "${path}" (sinks.siem.path): ${words}`, setting: 'sinks.siem.path' },
    ]);
    await expect(file.open(settings, contextOf('siem'), kept, never)).rejects.toMatchObject({
      code: 'sink_blocked',
      message: `cannot open "${path}" for sink "siem" (sinks.siem.path): ${words}`,
    });
    path = join(folder, 'n'.repeat(234));
    expect(await file.check({ path, rotate, compression: 'none' }, contextOf('siem'), never)).toMatchObject([{ level: 'ok' }]);
    expect(await file.check({ path, rotate, compression: 'gzip' }, contextOf('siem'), never)).toMatchObject([{ level: 'error' }]);
  });

  test('the path of the position file is checked too', async () => {
    fs.mkdirSync(slots(), { recursive: true });
    expect(await check()).toMatchObject([{ level: 'error', setting: 'sinks.siem.path' }]);
    fs.rmdirSync(slots());
    expect(await check()).toEqual([{ level: 'ok', message: `"${path}" can be created` }]);
    await openSink();
    expect(await check()).toEqual([{ level: 'ok', message: `"${path}" exists and is writable` }]);
  });

  test('the file of another sink, by a link to its directory or a second name, blocks the later sink', async () => {
    await send(await openSink(), 1, 3);
    fs.symlinkSync(folder, join(folder, 'again'));
    fs.linkSync(path, join(folder, 'second.log'));
    const before = read();
    for (const [name, adopt] of [
      ['again/audit.log', true],
      ['second.log', false],
    ] as const) {
      const adopting = Object.assign(new ModelKept(), { adopt });
      const opening = file.open({ path: join(folder, name), compression: 'none' }, contextOf('other'), adopting, never);
      await expect(opening).rejects.toMatchObject({
        code: 'sink_blocked',
        message: `cannot use "${join(folder, name)}" for sink "other" (sinks.other.path): the sink "siem" writes the same file, as "${path}"`,
      });
    }
    expect(read()).toBe(before);
    fs.unlinkSync(join(folder, 'second.log'));
    // The first sink continues, also after a restart; once it uses another file, the old one is free.
    await send(await openSink(), 4, 5);
    expect(read()).toBe(text(1, 5));
    fs.renameSync(path, join(folder, 'second.log'));
    await send(opened.at(-1) as Sink, 6, 6);
    const other = await file.open({ path: join(folder, 'second.log'), compression: 'none' }, contextOf('other'), new ModelKept(), never);
    opened.push(other);
    expect(read('second.log')).toBe(text(1, 5));
  });
});

describe('another process', () => {
  /** A process with its own state and the sink open. */
  async function openElsewhere(journal: string) {
    const child = spawn(
      process.execPath,
      ['--input-type=module', '-e', `const { file } = await import(${JSON.stringify(new URL('../../../src/sink/file/index.ts', import.meta.url).href)});
       const kept = { journal: ${JSON.stringify(journal)}, position: { seq: 0, chain: new Uint8Array(32) }, resumeNote: undefined, chainAt: async () => undefined, commitResumeNote: async () => {} };
       const opened = await file.open({ path: ${JSON.stringify(path)}, compression: 'none' }, { id: 'elsewhere' }, kept, AbortSignal.timeout(9e3)).then(() => 'open', (error) => error.message);
       process.stdout.write(opened);
       setInterval(() => opened, 1e6);`],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    ); // prettier-ignore
    const [output] = (await once(child.stdout, 'data')) as [Buffer];
    const kill = async (): Promise<void> => {
      child.kill('SIGKILL');
      await once(child, 'close');
    };
    return { output: output.toString(), kill };
  }
  const words = (id: string): string =>
    `cannot open "${path}" for sink "${id}" (sinks.${id}.path): another running process writes it and holds "${fs.realpathSync(folder)}/.waybill/audit.log.lock"`;

  test('that writes the file blocks the sink before its first line, until that process ends in any way', async () => {
    const other = await openElsewhere('b'.repeat(32));
    try {
      expect(other.output).toBe('open');
      await expect(openSink()).rejects.toMatchObject({ code: 'sink_blocked', message: words('siem') });
    } finally {
      await other.kill();
    }
    await send(await openSink(), 1, 3);
    expect(read()).toBe(text(1, 3));
    expect((fs.statSync(beside('lock')).mode & 0o777).toString(8)).toBe('600');
  });

  test('stays locked out after rotation and reopening; a sink that failed to open locks nothing', async () => {
    const first = await openSink();
    await send(first, 1, 3);
    fs.renameSync(path, `${path}.1`);
    await send(first, 4, 6);
    await openSink();
    await first[Symbol.asyncDispose]();
    opened.shift();
    const other = await openElsewhere(kept.journal);
    await other.kill();
    expect(other.output).toBe(words('elsewhere'));
    for (const sink of opened.splice(0)) await sink[Symbol.asyncDispose]();
    const own = kept;
    kept = new ModelKept('b'.repeat(32));
    await expect(openSink()).rejects.toThrow('belongs to another state');
    const next = await openElsewhere('c'.repeat(32));
    await next.kill();
    expect(next.output).toContain('belongs to another state');
    kept = own;
  });

  test('is locked out by a new lock after the first was deleted', async () => {
    await openSink();
    fs.unlinkSync(beside('lock'));
    await openSink();
    const other = await openElsewhere('b'.repeat(32));
    await other.kill();
    expect(other.output).toBe(words('elsewhere'));
  });
});

describe('the order of writes to disk', () => {
  test('a truncation is synced before the next write; then data, sync, position', async () => {
    await send(await openSink(), 1, 3);
    fs.appendFileSync(path, 'torn');
    const calls = await observed();
    const sink = await openSink();
    await send(sink, 4, 6);
    await send(sink, 7, 9);
    const each = ['write audit.log', 'datasync audit.log', 'write audit.log.position'];
    expect(calls).toEqual(['truncate audit.log', 'sync audit.log', ...each, ...each]);
  });

  test('a new file and its directory are synced before the journal stores it, and before its first line', async () => {
    const sink = await openSink();
    await send(sink, 1, 3);
    fs.renameSync(path, `${path}.1`);
    const calls = await observed();
    kept.commitResumeNote = async () => void calls.push('note');
    await send(sink, 4, 6);
    const name = folder.slice(folder.lastIndexOf('/') + 1);
    const begin = ['sync audit.log', `sync ${name}`, 'note'];
    expect(calls).toEqual([...begin, 'write audit.log', 'datasync audit.log', 'write audit.log.position']);
  });

  test('a batch is accepted only after its sync has returned', async () => {
    const sink = await openSink();
    const prototype = await handles();
    vi.spyOn(prototype, 'datasync').mockRejectedValueOnce(new Error('EIO: i/o error'));
    await expect(send(sink, 1, 3)).rejects.toMatchObject({ code: 'sink_outcome_unknown' });
    const next = await openSink();
    expect((await next.position?.(never))?.position.seq).toBe(0);
    expect(read()).toBe('');
  });

  test('an open waits for the writes of an earlier instance', async () => {
    const first = await openSink();
    await send(first, 1, 3);
    const prototype = await handles();
    const datasync = callOf(prototype, 'datasync');
    const thaw = Promise.withResolvers<undefined>();
    vi.spyOn(prototype, 'datasync').mockImplementationOnce(async function (this: FileHandle) {
      await thaw.promise;
      await datasync.apply(this, []);
    });
    const writing = send(first, 4, 6, { acknowledge: false });
    let isOpen = false;
    const opening = openSink().then((sink) => ((isOpen = true), sink));
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(isOpen).toBe(false);
    thaw.resolve(undefined);
    await writing;
    // The delayed write reached the disk: the position file shows it, and nothing is sent again.
    expect((await (await opening).position?.(never))?.position).toEqual(positionOf(6));
    expect(read()).toBe(text(1, 6));
  });
});

test('a full disk: the sink retries, resumes when there is space, and loses and repeats no line', async ({ skip }) => {
  const disk = join(folder, 'small');
  fs.mkdirSync(disk);
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', disk], { stdio: 'pipe' });
  } catch (cause) {
    return skip(`no small disk can be mounted here: ${String(cause).split('\n')[0] ?? ''}`);
  }
  try {
    path = join(disk, 'audit.log');
    const ballast = join(disk, 'ballast');
    fs.writeFileSync(ballast, Buffer.alloc(40_000));
    await using journal = await openJournal(join(folder, 'state'), systemClock);
    journal.sinkPositions.register('siem', 'file', path, journal.positionFor('journal'), undefined);
    await append(journal, 100, () => ({ pad: 'x'.repeat(200) }));
    const stop = new AbortController();
    const state = journal.sinkPositions.sink('siem');
    const loop = new Delivery({
      settings: {
        id: 'siem',
        type: 'file',
        batch: { maxRecords: 9, maxBytes: 1e6, maxWait: 1 },
        deadline: 60_000,
        resolvable: true,
        failReadinessAfter: 1e6,
      },
      journal,
      pipeline: plain,
      open: (signal) =>
        file.open(
          { path, compression: 'none' },
          contextOf('siem'),
          {
            journal: journal.id,
            get position() {
              return state.delivered;
            },
            get resumeNote() {
              return state.resumeNote;
            },
            completeSince: 0,
            chainAt: (seq) => journal.chainAt(seq),
            commitResumeNote: (note) => journal.commitResumeNote('siem', note),
            archiveCheckpoint: (checkpoint) => journal.archiveCheckpoint('siem', checkpoint),
            restored: () => journal.restored('siem'),
            replayedFrom: () => undefined,
            lost: (loss, note) => journal.lost('siem', loss, note),
          },
          signal,
        ),
      clock: systemClock,
      random: () => 0.2,
      log,
      meters,
    });
    const running = loop.run(stop.signal, stop.signal);
    await vi.waitFor(
      () => expect(loop.view()).toMatchObject({ state: 'retrying', lastError: expect.stringContaining('ENOSPC') as string }),
      5_000,
    );
    expect(loop.view().acknowledged).toBeLessThan(100);
    fs.rmSync(ballast);
    await vi.waitFor(() => expect(loop.view()).toMatchObject({ state: 'active', acknowledged: 100 }), 10_000);
    stop.abort(new Error('stop'));
    await running;
    const numbers = fs.readFileSync(path, 'utf8').split('\n').slice(0, -1).map((line) => (JSON.parse(line) as { logId: number }).logId); // prettier-ignore
    expect(numbers).toEqual(Array.from({ length: 100 }, (_, i) => i + 1));
  } finally {
    execFileSync('umount', [disk], { stdio: 'pipe' });
  }
});

/** The prototype of every file handle of this process. */
async function handles(): Promise<FileHandle> {
  const handle = await open('/dev/null');
  const prototype = Object.getPrototypeOf(handle) as FileHandle;
  await handle.close();
  return prototype;
}

type Call = (this: FileHandle, ...given: unknown[]) => Promise<unknown>;

function callOf(prototype: FileHandle, name: 'write' | 'datasync' | 'sync' | 'truncate'): Call {
  return Reflect.get(prototype, name) as Call;
}

/**
 * From now on records every call that changes or syncs a file, with the name that the kernel has
 * for the file.
 */
async function observed(): Promise<string[]> {
  const calls: string[] = [];
  const prototype = await handles();
  for (const name of ['write', 'datasync', 'sync', 'truncate'] as const) {
    const original = callOf(prototype, name);
    vi.spyOn(prototype, name).mockImplementation(async function (this: FileHandle, ...given: unknown[]) {
      const target = fs.readlinkSync(`/proc/self/fd/${this.fd}`);
      const result = await original.apply(this, given);
      calls.push(`${name} ${target.slice(target.lastIndexOf('/') + 1)}`);
      return result as never;
    });
  }
  return calls;
}
