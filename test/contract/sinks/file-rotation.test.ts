/**
 * Rotation and compression by the sink `file`: the files, the order of writes to disk, and every
 * line once after a kill between any two steps.
 */
import * as fs from 'node:fs';
import { open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { systemClock } from '../../../src/time/clock.ts';
import type { Batch, Sink } from '../../../src/model/sink.ts';
import type { Clock } from '../../../src/model/time.ts';
import { file } from '../../../src/sink/file/index.ts';
import { temporary } from '../../support/model-journal.ts';
import { batchOf, contextOf, message, messages, ModelKept, positionOf } from '../../support/sinks/sink-batches.ts';
import { sized } from '../../support/long-run.ts';

/**
 * Every change of the disk and of the journal is a step. From a chosen step on, no step happens any
 * more: the process is dead.
 */
const world = vi.hoisted(() => ({
  steps: [] as string[],
  deadAt: Infinity,
  async step<Result>(name: string, effect: () => Promise<Result>): Promise<Result> {
    if (this.steps.length >= this.deadAt) throw new Error('killed');
    this.steps.push(name);
    return effect();
  },
  begin(deadAt = Infinity): void {
    this.steps = [];
    this.deadAt = deadAt;
  },
}));

const nameOf = (path: unknown): string => String(path).slice(String(path).lastIndexOf('/') + 1).replace(/\d{8}T\d{6}\.\d{3}Z/, 'TIME'); // prettier-ignore

vi.mock('node:fs/promises', async (original) => {
  const actual = await original<typeof import('node:fs/promises')>();
  return {
    ...actual,
    rename: (from: string, to: string) => world.step(`rename ${nameOf(from)} ${nameOf(to)}`, () => actual.rename(from, to)),
    unlink: (path: string) => world.step(`unlink ${nameOf(path)}`, () => actual.unlink(path)),
    open: (path: string, flags: number, mode?: number) => {
      const isMade = (flags & actual.constants.O_CREAT) !== 0 && !fs.existsSync(path);
      return isMade ? world.step(`make ${nameOf(path)}`, () => actual.open(path, flags, mode)) : actual.open(path, flags, mode);
    },
  };
});

/** Acknowledgements are grouped: a kill loses those not yet committed. */
class GroupedKept extends ModelKept {
  commitsAtOnce = false;
  #waiting: { batch: Batch; note: string | undefined } | undefined;

  override acknowledge(batch: Batch, note: string | undefined): void {
    this.#waiting = { batch, note };
    if (this.commitsAtOnce) this.commit();
  }

  override async commitResumeNote(note: string): Promise<void> {
    await world.step('note', async () => {
      this.commit();
      await super.commitResumeNote(note);
    });
  }

  commit(): void {
    if (this.#waiting) super.acknowledge(this.#waiting.batch, this.#waiting.note);
    this.#waiting = undefined;
  }

  forget(): void {
    this.#waiting = undefined;
  }
}

const never = new AbortController().signal;
type Settings = Parameters<typeof file.open>[0];
let folder: string;
let path: string;
let kept: GroupedKept;
let opened: Sink[] = [];

beforeEach(async () => {
  folder = temporary();
  path = join(folder, 'audit.log');
  kept = new GroupedKept();
  world.begin();
  const handle = await open('/dev/null');
  const prototype = Object.getPrototypeOf(handle) as FileHandle;
  await handle.close();
  for (const name of ['write', 'datasync', 'sync', 'truncate'] as const) {
    const actual = Reflect.get(prototype, name) as (this: FileHandle, ...given: unknown[]) => Promise<never>;
    vi.spyOn(prototype, name).mockImplementation(async function (this: FileHandle, ...given: unknown[]) {
      const target = nameOf(fs.readlinkSync(`/proc/self/fd/${this.fd}`));
      // A simulated sync does nothing: it does not change what remains after a kill.
      return world.step(`${name} ${target}`, async () => (name.endsWith('sync') ? undefined : actual.apply(this, given)) as never);
    });
  }
});
afterEach(async () => {
  world.begin();
  for (const sink of opened) await sink[Symbol.asyncDispose]();
  opened = [];
  vi.restoreAllMocks();
  fs.rmSync(folder, { recursive: true, force: true });
});

async function openSink(settings: Partial<Settings> = {}, clock: Clock = systemClock): Promise<Sink> {
  const sink = await file.open({ path, compression: 'none', ...settings }, contextOf('siem', { clock }), kept, never);
  opened.push(sink);
  return sink;
}

async function send(sink: Sink, batch: Batch): Promise<void> {
  const { resumeNote: note } = await sink.send(batch, never);
  kept.acknowledge(batch, note);
}

const text = (from: number, through: number): string => messages(from, through).map((each) => `${Buffer.from(each.bytes).toString('utf8')}\n`).join(''); // prettier-ignore

/** Rotated files, oldest first: their names sort by time. */
function aside(): string[] {
  return fs.readdirSync(folder).filter((name) => /^audit\.log\.\d{8}T/.test(name)).sort(); // prettier-ignore
}

function read(name: string): string {
  const bytes = fs.readFileSync(join(folder, name));
  return (name.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8');
}

/** Resolves when every rotated file is compressed, or the process is dead. */
async function compressed(): Promise<void> {
  for (let i = 0; i < 2_000 && world.steps.length < world.deadAt; i += 1) {
    if (aside().every((name) => name.endsWith('.gz'))) return;
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

describe('rotation', () => {
  test('comes before the file exceeds its size, between two batches', async () => {
    const sink = await openSink({ rotate: { size: 100 } });
    for (const from of [1, 4, 7]) await send(sink, batchOf(messages(from, from + 2)));
    expect(aside().map(read)).toEqual([text(1, 3), text(4, 6)]);
    expect(read('audit.log')).toBe(text(7, 9));
    for (const name of aside()) {
      expect(name).toMatch(/^audit\.log\.\d{8}T\d{6}\.\d{3}Z$/);
      expect(fs.statSync(join(folder, name)).mode & 0o777).toBe(0o600);
    }
  });

  test('gives a batch that exceeds the size a separate file', async () => {
    const sink = await openSink({ rotate: { size: text(31, 32).length } });
    await send(sink, batchOf(messages(1, 30)));
    await send(sink, batchOf(messages(31, 31)));
    await send(sink, batchOf(messages(32, 32)));
    expect(aside().map(read)).toEqual([text(1, 30)]);
    expect(read('audit.log')).toBe(text(31, 32));
  });

  test('comes with the first batch after an interval, counted from 1970; never for an empty file or a clock that was set back', async () => {
    const hour = 3_600_000;
    const begun = Math.floor(Date.now() / hour) * hour;
    let now = Date.now();
    const clock: Clock = { ...systemClock, now: () => now };
    const sink = await openSink({ rotate: { interval: hour } }, clock);
    now = begun + hour;
    await send(sink, batchOf(messages(1, 2)));
    expect(aside()).toEqual([]);
    now = begun - 5 * hour;
    await send(sink, batchOf(messages(3, 3)));
    expect(aside()).toEqual([]);
    now = begun + hour;
    await send(sink, batchOf(messages(4, 4)));
    const stamp = new Date(now).toISOString().replace(/[-:]/g, '');
    expect(aside()).toEqual([`audit.log.${stamp}`]);
    expect([read(aside()[0] ?? ''), read('audit.log')]).toEqual([text(1, 3), text(4, 4)]);
  });

  test('never replaces an existing file, compressed or not', async () => {
    const now = Date.parse('2026-11-21T23:00:00.500Z');
    const clock: Clock = { ...systemClock, now: () => now };
    for (const taken of ['500Z', '501Z.gz']) fs.writeFileSync(`${path}.20261121T230000.${taken}`, 'of another program');
    const sink = await openSink({ rotate: { size: 10 } }, clock);
    await send(sink, batchOf(messages(1, 1)));
    await send(sink, batchOf(messages(2, 2)));
    expect(read('audit.log.20261121T230000.500Z')).toBe('of another program');
    expect(read('audit.log.20261121T230000.502Z')).toBe(text(1, 1));
  });

  test('is off without the setting', async () => {
    const sink = await openSink();
    await send(sink, batchOf(messages(1, 3_000)));
    await send(sink, batchOf(messages(3_001, 3_001)));
    expect(aside()).toEqual([]);
  });
});

describe('gzip', () => {
  test('every rotated file is compressed completely, also the files of an earlier instance', async () => {
    fs.writeFileSync(`${path}.20261121T220000.000Z`, text(91, 92));
    fs.mkdirSync(join(folder, '.waybill'));
    for (const hour of [22, 21]) fs.writeFileSync(join(folder, '.waybill', `audit.log.20261121T${hour}0000.000Z.gz.part`), 'half');
    fs.writeFileSync(`${path}.1`, 'of logrotate');
    const sink = await openSink({ rotate: { size: 100 }, compression: 'gzip' });
    await compressed();
    for (const from of [1, 4, 7]) await send(sink, batchOf(messages(from, from + 2)));
    await compressed();
    expect(aside().map((name) => name.slice(-3))).toEqual(['.gz', '.gz', '.gz']);
    expect(aside().map(read)).toEqual([text(91, 92), text(1, 3), text(4, 6)]);
    expect(read('audit.log.1')).toBe('of logrotate');
    for (const name of aside()) expect(fs.statSync(join(folder, name)).mode & 0o777).toBe(0o600);
  });

  test('a file that cannot be compressed stays as it is and is logged, and delivery continues', async () => {
    const warned: object[] = [];
    const log = { ...contextOf('siem').log, write: (event: string, fields?: object) => warned.push({ ...fields, event }) };
    // A directory in the place of the compressed file.
    fs.mkdirSync(`${path}.20261121T220000.000Z.gz`);
    fs.writeFileSync(`${path}.20261121T220000.000Z`, text(91, 92));
    const settings = { path, rotate: { size: 100 }, compression: 'gzip' as const };
    const sink = await file.open(settings, contextOf('siem', { log }), kept, never);
    opened.push(sink);
    await vi.waitFor(() => expect(warned).toMatchObject([{ sink: 'siem', path, event: 'sink.compression_failed' }]));
    expect(read('audit.log.20261121T220000.000Z')).toBe(text(91, 92));
    await send(sink, batchOf(messages(1, 3)));
    expect(read('audit.log')).toBe(text(1, 3));
  });

  test('close ends a compression at once, and the next instance resumes it', async () => {
    fs.writeFileSync(`${path}.20261121T220000.000Z`, Buffer.alloc(30_000_000, 'line\n'));
    const sink = await openSink({ rotate: { size: 100 }, compression: 'gzip' });
    const at = performance.now();
    await sink[Symbol.asyncDispose]();
    expect(performance.now() - at).toBeLessThan(1_000);
    expect(fs.statSync(`${path}.20261121T220000.000Z`).size).toBe(30_000_000);
    fs.writeFileSync(`${path}.20261121T220000.000Z`, text(91, 92));
    await openSink({ rotate: { size: 100 }, compression: 'gzip' });
    await compressed();
    expect(aside().map(read)).toEqual([text(91, 92)]);
  });

  test('check reports when it has no effect', async () => {
    const found = await file.check({ path, compression: 'gzip' }, contextOf('siem'), never);
    expect(found.at(-1)).toEqual({
      level: 'warning',
      message: '"compression: gzip" has no effect without "rotate": only rotated files are compressed',
      setting: 'sinks.siem.compression',
    });
    expect(await file.check({ path, compression: 'gzip', rotate: { size: 1e6 } }, contextOf('siem'), never)).toHaveLength(1);
  });
});

describe('the order of writes to disk', () => {
  test('acknowledgements first, then the rename, the new file, its resume note, the line; the plain file is deleted last', async () => {
    const sink = await openSink({ rotate: { size: 100 }, compression: 'gzip' });
    await send(sink, batchOf(messages(1, 3)));
    world.begin();
    await send(sink, batchOf(messages(4, 6)));
    await compressed();
    const directory = nameOf(folder);
    const half = 'audit.log.TIME.gz.part';
    const isOfGzip = (step: string): boolean => step.includes('.gz') || step.startsWith('unlink');
    const [own, ofGzip] = [world.steps.filter((step) => !isOfGzip(step)), world.steps.filter(isOfGzip)];
    // The compressor syncs the directory concurrently with the writing of the line.
    expect(own.filter((step, i) => i < 6 || step !== `sync ${directory}`)).toEqual([
      ...['note', 'rename audit.log audit.log.TIME', `sync ${directory}`, 'make audit.log', 'sync audit.log', `sync ${directory}`],
      ...['note', 'write audit.log', 'datasync audit.log', 'write audit.log.position'],
    ]);
    expect(ofGzip.filter((step) => !step.startsWith('write'))).toEqual([
      ...[`make ${half}`, `sync ${half}`, `rename ${half} audit.log.TIME.gz`, 'unlink audit.log.TIME'],
    ]);
    const after = world.steps.slice(world.steps.indexOf(`rename ${half} audit.log.TIME.gz`));
    expect(after.indexOf(`sync ${directory}`)).toBeLessThan(after.indexOf('unlink audit.log.TIME'));
    expect(after).toContain(`sync ${directory}`);
  });
});

// promise: A kill between any two steps of a rotation neither loses nor duplicates a line.
describe('a kill between any two steps', () => {
  /** Three batches, each in its own file, until the process ends. */
  async function life(): Promise<void> {
    const sink = await openSink({ rotate: { size: 100 }, compression: 'gzip' });
    for (const from of [1, 4, 7]) {
      await send(sink, batchOf(messages(from, from + 2)));
      await compressed();
    }
  }

  test.each([
    ['the journal knows every batch', true],
    ['the journal is as old as its last commit', false],
  ])('every line occurs once, and no step is left unfinished: %s', async (_name, commits) => {
    let count = 0;
    for (let deadAt = 0; ; deadAt += sized(3, 1)) {
      fs.rmSync(folder, { recursive: true, force: true });
      fs.mkdirSync(folder);
      kept = new GroupedKept();
      kept.commitsAtOnce = commits;
      world.begin(deadAt);
      const hasEnded = await life().then(() => true, () => false); // prettier-ignore
      await compressed();
      const where = `killed before step ${deadAt}, after ${world.steps.slice(-3).join(', ')}`;
      const buried = async (): Promise<void> => {
        kept.forget();
        // The open handles of the process end with it.
        for (const sink of opened.splice(0)) await sink[Symbol.asyncDispose]();
      };
      await buried();
      // The next process is killed as well, during its recovery or a little later.
      world.begin((deadAt * 7) % 16);
      await openSink({ rotate: { size: 100 }, compression: 'gzip' }).then(compressed, () => undefined);
      await buried();
      world.begin();
      const sink = await openSink({ rotate: { size: 100 }, compression: 'gzip' });
      const found = await sink.position?.(never);
      if (found) kept.acknowledge({ ...batchOf([]), through: found.position }, found.resumeNote);
      const seq = found?.position.seq ?? 0;
      for (let from = seq + 1; from <= 12; from += 3) await send(sink, batchOf(messages(from, from + 2)));
      await compressed();
      expect([...aside(), 'audit.log'].map(read).join(''), where).toBe(text(1, 12));
      expect(aside().filter((name) => !name.endsWith('.gz')), where).toEqual([]); // prettier-ignore
      count += 1;
      if (hasEnded) break;
    }
    expect(count).toBeGreaterThan(sized(10, 30));
  });
});

describe('a file of another program that ends in the middle of a line', () => {
  const foreign = '{"of":"another program"}';

  test('the first line of the sink starts a new line, after open', async () => {
    fs.writeFileSync(path, foreign);
    const sink = await openSink();
    // An open writes nothing before the first line.
    expect(read('audit.log')).toBe(foreign);
    await send(sink, batchOf(messages(1, 2)));
    await send(sink, batchOf(messages(3, 3)));
    expect(read('audit.log')).toBe(`${foreign}\n${text(1, 3)}`);
  });

  test('the same after a kill during the first batch, and when such a file appears at the path', async () => {
    fs.writeFileSync(path, foreign);
    await openSink();
    fs.appendFileSync(path, '\n{"half a');
    const sink = await openSink();
    expect(read('audit.log')).toBe(foreign);
    await send(sink, batchOf(messages(1, 2)));
    expect(read('audit.log')).toBe(`${foreign}\n${text(1, 2)}`);
    fs.renameSync(path, `${path}.1`);
    fs.writeFileSync(path, foreign);
    await send(sink, batchOf(messages(3, 4)));
    expect(read('audit.log')).toBe(`${foreign}\n${text(3, 4)}`);
  });

  test('a large first batch does not overflow its buffer', async () => {
    fs.writeFileSync(path, foreign);
    const sink = await openSink();
    const line = 'x'.repeat(256 * 1024 - 1);
    await send(sink, batchOf([message(1, line)]));
    expect(read('audit.log')).toBe(`${foreign}\n${line}\n`);
    expect((await sink.position?.(never))?.position).toEqual(positionOf(1));
  });
});
