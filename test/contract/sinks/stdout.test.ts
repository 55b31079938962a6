/**
 * The sink `stdout` in a separate process: the contract of every sink, and its own: an accepted
 * message is in the reader's pipe.
 */
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import type { Batch, Sink, DeliveryResult } from '../../../src/model/sink.ts';
import { stdout } from '../../../src/sink/stdout.ts';
import { batchOf, contextOf, message, ModelKept } from '../../support/sinks/sink-batches.ts';
import { sinkSuite } from '../../support/sinks/sink-suite.ts';
import type { Place } from '../../support/sinks/sink-suite.ts';
import type { Order } from '../../support/sinks/stdout-sender.ts';

const program = fileURLToPath(new URL('../../support/sinks/stdout-sender.ts', import.meta.url));
const never = new AbortController().signal;

/** A process with the sink, and the standard output read from it. */
class Sender {
  readonly #child: ChildProcess;
  readonly #answers = new Map<number, (answer: { result?: unknown; error?: unknown }) => void>();
  readonly ready: Promise<unknown>;
  readonly #ended: Promise<unknown>;
  #text = '';
  #id = 0;
  #isKilled = false;

  constructor() {
    this.#child = fork(program, [], { stdio: ['ignore', 'pipe', 'inherit', 'ipc'], serialization: 'advanced' });
    this.ready = once(this.#child, 'message');
    this.#ended = once(this.#child, 'close');
    this.#child.on('message', ({ id, ...answer }: { id: number }) => this.#answers.get(id)?.(answer));
    this.#child.stdout?.setEncoding('utf8').on('data', (data: string) => (this.#text += data));
  }

  async ask(order: { what: 'open' | 'close' | 'abort' } | { what: 'send'; batch: Batch }): Promise<unknown> {
    if (this.#isKilled) return undefined;
    this.#id += 1;
    const id = this.#id;
    const answer = new Promise<{ result?: unknown; error?: unknown }>((resolve) => this.#answers.set(id, resolve));
    this.#child.send({ ...order, id } satisfies Order);
    const { result, error } = await answer;
    if (error !== undefined) throw error as Error;
    return result;
  }

  /** Stops reading: once the pipe is full, nothing more can be written. */
  pause(): void {
    this.#child.stdout?.pause();
  }

  resume(): void {
    this.#child.stdout?.resume();
  }

  leave(): void {
    this.#child.stdout?.destroy();
  }

  async kill(): Promise<void> {
    this.#isKilled = true;
    this.#child.kill('SIGKILL');
    this.#child.stdout?.resume();
    await this.#ended;
  }

  /** The text written so far: complete lines, and possibly a torn one. */
  get text(): string {
    return this.#text;
  }
}

class StdoutPlace implements Place {
  readonly #lives: Sender[] = [];

  readonly open = async (): Promise<Sink> => {
    const sender = new Sender();
    this.#lives.push(sender);
    await sender.ready;
    await sender.ask({ what: 'open' });
    return {
      send: async (batch, signal) => {
        const abort = (): void => void sender.ask({ what: 'abort' });
        signal.addEventListener('abort', abort);
        return (await sender.ask({ what: 'send', batch })) as DeliveryResult;
      },
      [Symbol.asyncDispose]: async () => {
        await sender.ask({ what: 'close' });
      },
    };
  };

  async kill(): Promise<void> {
    await this.#lives.at(-1)?.kill();
  }

  /** Kills each sender: the pipe is read completely only after its writer has ended. */
  async received(): Promise<readonly string[]> {
    for (const life of this.#lives) await life.kill();
    return this.#lives.flatMap(({ text }) => text.split('\n').slice(0, -1));
  }

  stall(): void {
    this.#lives.at(-1)?.pause();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const life of this.#lives) await life.kill();
  }
}

sinkSuite({
  name: 'stdout',
  formats: stdout.formats,
  twice: (size) => size,
  secrets: [],
  start: async () => new StdoutPlace(),
});

test('no message is accepted before it is in the pipe: if the reader stops, a kill loses no accepted message', async () => {
  const sender = new Sender();
  await sender.ready;
  await sender.ask({ what: 'open' });
  sender.pause();
  let taken = 0;
  for (let seq = 1; seq <= 500; seq += 1) {
    const sent = sender.ask({ what: 'send', batch: batchOf([message(seq, `${seq} ${'x'.repeat(2_000)}`)]) });
    const isTaken = await Promise.race([sent.then(() => true), new Promise((resolve) => setTimeout(resolve, 300, false))]);
    if (isTaken !== true) break;
    taken = seq;
  }
  // A Linux pipe holds 64 KiB, and the reader may have read as much.
  expect(taken).toBeGreaterThan(10);
  expect(taken).toBeLessThan(500);
  await sender.kill();
  const lines = sender.text.split('\n').slice(0, -1);
  expect(lines.length).toBeGreaterThanOrEqual(taken);
  expect(lines.map((line) => Number(line.split(' ')[0]))).toEqual(lines.map((_, i) => i + 1));
});

test('a reader that stops gets each attempt once: nothing is written after data that it has not read, also when the sink is opened again', async () => {
  const sender = new Sender();
  await sender.ready;
  await sender.ask({ what: 'open' });
  sender.pause();
  const large = batchOf([message(1, `1 ${'x'.repeat(2_000_000)}`)]);
  const codes: unknown[] = [];
  for (let i = 0; i < 3; i += 1) {
    const sent = sender.ask({ what: 'send', batch: large });
    sent.catch(() => undefined);
    // The pipe is full when these responses arrive.
    await sender.ask({ what: 'close' });
    await sender.ask({ what: 'open' });
    await sender.ask({ what: 'abort' });
    codes.push(await sent.catch((thrown: unknown) => (thrown as Error).message));
  }
  const before = 'its reader has not consumed the previous batch';
  expect(codes).toEqual(['the shutdown timeout has passed', before, before].map((words) => `cannot write to standard output for sink "under-test": ${words}`)); // prettier-ignore
  sender.resume();
  await sender.ask({ what: 'send', batch: batchOf([message(2, '2')]) });
  await sender.kill();
  expect(sender.text.split('\n').map((line) => line.slice(0, 2).trim())).toEqual(['1', '2', '']);
});

test('a reader that has gone fails every send, and does not end the process', async () => {
  const sender = new Sender();
  await sender.ready;
  await sender.ask({ what: 'open' });
  sender.leave();
  for (let i = 1; i <= 5; i += 1) {
    await expect(sender.ask({ what: 'send', batch: batchOf([message(i)]) })).rejects.toThrow(
      /^cannot write to standard output for sink "under-test": (write EPIPE|it is closed)$/,
    );
  }
  await sender.kill();
});

test('the row in docs/guarantees.md states which messages may come twice', async () => {
  expect(stdout.guarantees[0]).toMatchObject({ delivery: 'at least once' });
  expect(stdout.resolvable({})).toBe(false);
  await expect(stdout.open({}, contextOf('one'), new ModelKept(), never)).resolves.not.toHaveProperty('position');
});
