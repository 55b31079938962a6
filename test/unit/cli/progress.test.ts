import { Writable } from 'node:stream';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Progress } from '../../../src/cli/progress.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
afterEach(() => void vi.useRealTimers());

function stream(isTTY: boolean): { readonly stream: NodeJS.WritableStream; readonly printed: string[] } {
  const printed: string[] = [];
  const write = (chunk: Buffer, _encoding: string, done: () => void): void => {
    printed.push(String(chunk));
    done();
  };
  return { stream: Object.assign(new Writable({ write }), { isTTY }), printed };
}

const copied = (seconds: number): string => `copied for ${seconds} s`;

test('a terminal shows one line with a bar and the remaining time, five times a second', () => {
  const { stream: terminal, printed } = stream(true);
  const progress = new Progress(terminal);
  vi.advanceTimersByTime(100);
  progress.show(0.1, copied);
  expect(printed).toEqual([]);
  vi.advanceTimersByTime(9_900);
  progress.show(0.5, copied);
  progress.show(0.6, copied);
  progress.showStep('verifying');
  progress.end();
  expect(printed).toEqual([
    `\r\u001b[K[${'#'.repeat(15)}${'.'.repeat(15)}] copied for 10 s, 10 s left`,
    '\r\u001b[Kverifying',
    '\r\u001b[K',
  ]);
});

test('a file gets a line every half minute, and no intermediate step', () => {
  const { stream: file, printed } = stream(false);
  const progress = new Progress(file);
  for (const share of [0, 0.25, 0.3]) {
    vi.advanceTimersByTime(20_000);
    progress.show(share, copied);
  }
  progress.showStep('verifying');
  progress.end();
  expect(printed).toEqual(['copied for 40 s, 2 min left\n']);
});
