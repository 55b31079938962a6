import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterEach, expect, test, vi } from 'vitest';
import { collectWhenIdle } from '../../../src/daemon/collect-when-idle.ts';

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

const flags = ['--expose-gc', '--heap-growing-percent=100'];

/** Runs a script with 40 MB of garbage from its start, and returns the MB that it holds when it ends. */
async function heldAfter(script: string): Promise<number> {
  const program = `
    const { collectWhenIdle } = await import('./src/daemon/collect-when-idle.ts');
    let garbage = Array.from({ length: 40 }, () => new Array(131072).fill(1.5));
    const held = () => process.memoryUsage().heapUsed / 1e6;
    const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
    if (held() < 40) throw new Error('there is no garbage');
    garbage = undefined;
    ${script}
    console.log(held());
    process.exit();`;
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, '--input-type=module', '-e', program]);
  return Number(stdout);
}

const untilCollected = 'for (let tries = 0; tries < 200 && held() > 30; tries += 1) await wait(50);';

test('the garbage of the start is collected when the thread rests, and the garbage of work after it', { timeout: 60_000 }, async () => {
  expect(await heldAfter(`collectWhenIdle(100); ${untilCollected}`)).toBeLessThan(30);
  const work = `
    garbage = Array.from({ length: 40 }, () => new Array(131072).fill(1.5));
    for (const to = performance.now() + 300; performance.now() < to; ) Math.random();
    garbage = undefined;`;
  expect(await heldAfter(`collectWhenIdle(100); ${untilCollected} ${work} await wait(100); ${untilCollected}`)).toBeLessThan(30);
});

test('collects only while it rests, and only when the heap has grown', () => {
  const used = { user: 0, system: 0 };
  vi.spyOn(process, 'threadCpuUsage').mockImplementation((before = { user: 0, system: 0 }) => ({
    user: used.user - before.user,
    system: used.system - before.system,
  }));
  const live = 20;
  let heap = live;
  vi.spyOn(process, 'memoryUsage').mockImplementation((() => ({ heapTotal: heap * 1_048_576 })) as typeof process.memoryUsage);
  const gc = vi.fn(() => (heap = live));
  vi.stubGlobal('gc', gc);
  vi.useFakeTimers();
  const collects = (cpuMs: number, grownMiB: number): boolean => {
    used.user += cpuMs * 600;
    used.system += cpuMs * 400;
    heap += grownMiB;
    gc.mockClear();
    vi.advanceTimersByTime(10_000);
    return gc.mock.calls.length > 0;
  };
  collectWhenIdle(10_000);
  expect(collects(9_000, 5), 'work').toBe(false);
  expect(collects(510, 5), 'work').toBe(false);
  expect(collects(490, 0), 'first rest').toBe(true);
  expect(collects(0, 11), 'little growth').toBe(false);
  expect(collects(0, 1), 'enough growth').toBe(true);
  expect(collects(600, 20), 'work').toBe(false);
  expect(collects(100, 0), 'rest').toBe(true);
  expect(collects(0, 0), 'nothing new').toBe(false);
  // The heap grows in each interval: each pause is four times as long as the one before, up to 64 intervals.
  expect(collects(600, 0), 'work').toBe(false);
  const steady = Array.from({ length: 160 }, (_, i) => i).filter(() => collects(100, 12));
  expect(steady).toEqual([0, 1, 5, 21, 85, 149]);
});

test('without its option of V8 it does nothing', () => {
  vi.stubGlobal('gc', undefined);
  vi.useFakeTimers();
  collectWhenIdle();
  expect(vi.getTimerCount()).toBe(0);
});
