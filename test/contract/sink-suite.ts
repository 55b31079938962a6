/**
 * What every sink promises at its boundary (model.ts, `Sink`), as one suite that each sink borrows. An adapter says where the sink's receiver
 * is, reads back what it has, and makes it misbehave; what an adapter cannot do with its receiver is skipped under its name.
 */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Format } from '../../src/encode/index.ts';
import { codeOf, WaybillError, messageOf } from '../../src/errors.ts';
import type { Batch, ResumePoint, Message, Sink } from '../../src/model/sink.ts';
import { normalizer } from '../../src/normalize/normalizer.ts';
import { fileNameIn } from '../unit/encode/read-back.ts';
import { poorest, recordOf, settings } from '../unit/normalize/records.ts';
import { batchOf, message, messages, ModelKept, textOf } from './sink-batches.ts';
import { encoder } from '../unit/encode/texts.ts';

/** A receiver that has just been started for one test, with nothing in it. */
export interface Place extends AsyncDisposable {
  open(kept: ResumePoint): Promise<Sink>;
  /** The sender is gone from one moment to the next, with everything that only it knew; the receiver stays. */
  kill(): Promise<void>;
  /** The events that the receiver has, in its order. */
  received(): Promise<readonly string[]>;
  /** The next batch is taken, but its answer is cut. */
  cutAnswer?(): void;
  /** From now on this message is refused, with these words; or with those that it gives back, where a receiver has words of its own alone. */
  refuse?(seq: number, words: string): string | undefined;
  /** The next batch is answered with "too busy, come back after". */
  busy?(retryAfterMs: number): void;
  /** The receiver takes nothing any more, and says nothing. */
  stall?(): void;
  /** From now on it cannot be opened. */
  ruin?(): void | Promise<void>;
}

interface SinkAdapter {
  readonly name: string;
  readonly formats: readonly Format[];
  /** How many messages of a batch of `size` may come twice after a failure (docs/guarantees.md). */
  readonly twice: (size: number) => number;
  /** Messages that a receiver may have kept of a request that it refused, and gets again; default none. */
  readonly keptOfRefused?: number;
  /** Bytes of a message that its receiver can be sent at most; as many as one likes where nothing is said. */
  readonly longest?: number;
  /** Batches that are sent one by one before a kill; fewer where each is a connection that the kernel must acknowledge (40 ms). */
  readonly batches?: number;
  /** The sink accepts each entry once, so nothing is sent to it on demand. */
  readonly takesOnce?: boolean;
  /** What may stand in no error. */
  readonly secrets: readonly string[];
  start(): Promise<Place>;
}

const never = new AbortController().signal;
const texts = (list: readonly Message[]): string[] => list.map(({ bytes }) => Buffer.from(bytes).toString('utf8'));

export function sinkSuite(adapter: SinkAdapter): void {
  const { name, formats, twice, secrets, longest = Infinity, batches = 400, keptOfRefused = 0, takesOnce = false } = adapter;
  describe(name, () => {
    let place: Place;
    let kept: ModelKept;
    const errors: unknown[] = [];
    beforeEach(async () => {
      place = await adapter.start();
      kept = new ModelKept();
      errors.length = 0;
    });
    afterEach(async () => {
      await place[Symbol.asyncDispose]();
      for (const error of errors) {
        const words = `${messageOf(error)} ${JSON.stringify(error)} ${error instanceof Error ? (error.stack ?? '') : ''}`;
        for (const secret of secrets) expect(words).not.toContain(secret);
      }
    });

    /** What the promise was rejected with. */
    async function errorOf(promise: Promise<unknown>): Promise<unknown> {
      const thrown = await promise.then(
        () => undefined,
        (error: unknown) => error ?? new Error('rejected with nothing'),
      );
      errors.push(thrown);
      return thrown;
    }

    async function send(sink: Sink, batch: Batch): Promise<void> {
      const { rejections, resumeNote: note } = await sink.send(batch, never);
      expect(rejections).toEqual([]);
      kept.acknowledge(batch, note);
    }

    /** Opens again, asks for the position if the sink keeps one, and sends what is missing of these. */
    async function goOn(all: readonly Message[]): Promise<Sink> {
      const sink = await place.open(kept);
      const found = await sink.position?.(never);
      if (found) kept.acknowledge({ ...batchOf([]), through: found.position }, found.resumeNote);
      const missing = all.filter(({ seq }) => seq > kept.position.seq);
      if (missing.length > 0) await send(sink, batchOf(missing, true));
      return sink;
    }

    test('everything arrives once, in order', async () => {
      await using sink = await place.open(kept);
      await send(sink, batchOf(messages(1, 3)));
      await send(sink, batchOf(messages(4, 4)));
      await send(sink, batchOf(messages(5, 500)));
      expect(await place.received()).toEqual(texts(messages(1, 500)));
    });

    test('what is taken is with the receiver, even when the sender is killed the moment after', async () => {
      const sink = await place.open(kept);
      for (let seq = 1; seq <= batches; seq += 1) await send(sink, batchOf(messages(seq, seq)));
      await place.kill();
      expect(await place.received()).toEqual(texts(messages(1, batches)));
    });

    test('a large batch and a large message arrive whole', async () => {
      await using sink = await place.open(kept);
      const large = message(1, textOf(1, 'Ж€𝄞'.repeat(Math.min(30_000, Math.floor(longest / 10)))));
      const many = messages(2, 3_000);
      await send(sink, batchOf([large]));
      await send(sink, batchOf(many));
      expect(await place.received()).toEqual(texts([large, ...many]));
    });

    test('a kill between taking and acknowledging loses nothing, and doubles what the guarantee allows', async () => {
      const all = messages(1, 30);
      const sink = await place.open(kept);
      await send(sink, batchOf(all.slice(0, 10)));
      await sink.send(batchOf(all.slice(10, 20)), never);
      await place.kill();
      const next = await goOn(all);
      await expectWithin(all, 10);
      await next[Symbol.asyncDispose]();
    });

    test('a sender that begins again without having sent anything adds nothing', async () => {
      const all = messages(1, 10);
      const sink = await place.open(kept);
      await send(sink, batchOf(all));
      await sink[Symbol.asyncDispose]();
      for (let i = 0; i < 3; i += 1) await (await goOn(all))[Symbol.asyncDispose]();
      expect(await place.received()).toEqual(texts(all));
    });

    test('a message that an operator sends arrives, and moves no position', async ({ skip }) => {
      if (takesOnce) return skip('nothing is sent to it on demand');
      const all = messages(1, 20);
      const extra = message(900_001);
      const sink = await place.open(kept);
      await send(sink, batchOf(all.slice(0, 10)));
      await send(sink, { ...batchOf([extra]), through: kept.position, uncertain: true, onDemand: 'test' });
      await place.kill();
      const next = await goOn(all);
      expect(await place.received()).toEqual(texts([...all.slice(0, 10), extra, ...all.slice(10)]));
      await next[Symbol.asyncDispose]();
    });

    test('closing twice is closing once', async () => {
      const sink = await place.open(kept);
      await send(sink, batchOf(messages(1, 2)));
      await sink[Symbol.asyncDispose]();
      await sink[Symbol.asyncDispose]();
      expect(await place.received()).toEqual(texts(messages(1, 2)));
    });

    test.for(formats)('an odd name arrives as one event and reads back the same: %s', async (format) => {
      const odd = 'name|with="odd]\r\nbytes';
      const cef = { ipv6: 'c6a2', geo: 'cfp' } as const;
      const record = recordOf(JSON.stringify({ ...poorest, payloadName: odd }));
      const text = encoder(format, { includeOriginal: true, cef })(normalizer(settings)(record));
      await using sink = await place.open(kept);
      await send(sink, batchOf([message(1), message(2, text), message(3)]));
      const received = await place.received();
      expect(received).toHaveLength(3);
      // CEF knows one line break, `\\n` (CEF 0.1 rev. 26, character encoding); LEEF none, and has no escape.
      const read: Readonly<Record<string, string>> = { cef: odd.replace('\r\n', '\n'), leef: odd.replace('\r\n', '  ') };
      expect(fileNameIn[format](received[1] ?? '')).toBe(read[format] ?? odd);
    });

    test('a lost answer, and the same batch again', async ({ skip }) => {
      const all = messages(1, 30);
      if (!place.cutAnswer) return skip('its receiver gives no answer that could be cut');
      const sink = await place.open(kept);
      await send(sink, batchOf(all.slice(0, 10)));
      place.cutAnswer();
      expect(['sink_unavailable', 'sink_blocked', 'sink_refused']).not.toContain(
        codeOf(await errorOf(sink.send(batchOf(all.slice(10, 20)), never))),
      );
      await sink[Symbol.asyncDispose]();
      const next = await goOn(all);
      await expectWithin(all, 10);
      await next[Symbol.asyncDispose]();
    });

    test('a poisonous message is refused alone, with the words of the receiver, and the others arrive', async ({ skip }) => {
      if (!place.refuse) return skip('its receiver refuses no single message');
      const words = place.refuse(4, 'cannot parse field seven') ?? 'cannot parse field seven';
      await using sink = await place.open(kept);
      const refused: string[] = [];
      // As the loop does: what is named too often is refused.
      const settle = async (batch: Batch, tries = 1): Promise<void> => {
        try {
          const { rejections, retryable: again } = await sink.send(batch, never);
          const spent = again?.attempts !== undefined && tries >= again.attempts ? (again.reasons ?? []) : [];
          for (const rejection of [...rejections, ...spent]) refused.push(`${rejection.seq}: ${rejection.message}`);
          const isLeft = ({ seq }: Message): boolean => again?.seqs.includes(seq) === true && !spent.some((each) => each.seq === seq);
          const left = batch.messages.filter(isLeft);
          if (left.length > 0) await settle(batchOf(left), tries + 1);
        } catch (thrown) {
          errors.push(thrown);
          if (codeOf(thrown) !== 'sink_refused') throw thrown;
          const [only] = batch.messages;
          const half = Math.ceil(batch.messages.length / 2);
          if (batch.messages.length === 1) refused.push(`${only?.seq ?? 0}: ${messageOf(thrown)}`);
          else for (const part of [batch.messages.slice(0, half), batch.messages.slice(half)]) await settle(batchOf(part, true));
        }
      };
      await settle(batchOf(messages(1, 8)));
      expect(refused).toHaveLength(1);
      expect(refused[0]).toMatch(/^4: /);
      expect(refused[0]).toContain(words);
      const received = await place.received();
      expect([...new Set(received)]).toEqual(texts(messages(1, 8).filter(({ seq }) => seq !== 4)));
      expect(received.length - 7).toBeLessThanOrEqual(keptOfRefused);
    });

    test('a busy answer says how long to wait, and nothing was taken', async ({ skip }) => {
      if (!place.busy) return skip('its receiver is never busy');
      await using sink = await place.open(kept);
      place.busy(7_000);
      expect(await errorOf(sink.send(batchOf(messages(1, 3)), never))).toMatchObject({ code: 'sink_unavailable', retryAfterMs: 7_000 });
      expect(await place.received()).toEqual([]);
      await send(sink, batchOf(messages(1, 3)));
      expect(await place.received()).toEqual(texts(messages(1, 3)));
    });

    test('an abort ends a send within a second', async ({ skip }) => {
      if (!place.stall) return skip('a send cannot be held up from outside');
      const sink = await place.open(kept);
      place.stall();
      const abort = new AbortController();
      const sending = errorOf(sink.send(batchOf([message(1, 'x'.repeat(1_000_000))]), abort.signal));
      await new Promise((resolve) => setTimeout(resolve, 100));
      const at = performance.now();
      abort.abort(new WaybillError('aborted', 'the grace period is over'));
      expect(await sending).toBeDefined();
      expect(performance.now() - at).toBeLessThan(1_000);
      await place.kill();
    });

    test('what cannot be opened says why, under the name of the sink', async ({ skip }) => {
      if (!place.ruin) return skip('there is nothing that could be made unopenable');
      await place.ruin();
      const thrown = await errorOf(place.open(kept));
      expect(['sink_unavailable', 'sink_blocked']).toContain(codeOf(thrown));
      expect(messageOf(thrown)).toContain('"under-test"');
    });

    /** Nothing is missing, first arrivals are in order, and no more is there twice than a batch of this size may be. */
    async function expectWithin(all: readonly Message[], size: number): Promise<void> {
      const received = await place.received();
      expect([...new Set(received)]).toEqual(texts(all));
      expect(received.length - all.length).toBeLessThanOrEqual(twice(size));
    }
  });
}
