/**
 * The contract of every sink at its boundary (model.ts, `Sink`), as a suite that each sink runs. An
 * adapter gives the address of the sink's receiver, reads its events, and makes it misbehave. A
 * fault that an adapter cannot inject is skipped under its name.
 */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Format } from '../../../src/encode/index.ts';
import { codeOf, WaybillError, messageOf } from '../../../src/errors/errors.ts';
import type { Batch, ResumePoint, Message, Sink } from '../../../src/model/sink.ts';
import { normalizer } from '../../../src/normalize/normalizer.ts';
import { fileNameIn } from '../encode/read-back.ts';
import { poorest, recordOf, settings } from '../normalize/records.ts';
import { isLong } from '../long-run.ts';
import { batchOf, message, messages, ModelKept, textOf } from './sink-batches.ts';
import { encoder } from '../encode/texts.ts';

/** A new, empty receiver for one test. */
export interface Place extends AsyncDisposable {
  open(kept: ResumePoint): Promise<Sink>;
  /** Ends the sender abruptly, with all its state in memory; the receiver continues. */
  kill(): Promise<void>;
  /** The events of the receiver, in its order. */
  received(): Promise<readonly string[]>;
  /** Accepts the next batch, but loses the response. */
  cutAnswer?(): void;
  /**
   * Rejects this message from now on, with this message text; returns the text of a receiver that
   * has only fixed texts.
   */
  refuse?(seq: number, words: string): string | undefined;
  /** From now on a firewall in front of the receiver answers each request with this message by an HTML page of this status. */
  intercept?(seq: number, status: number): void;
  /** Responds to the next batch with "too busy, retry after". */
  busy?(retryAfterMs: number): void;
  /** Accepts nothing any more, and never responds. */
  stall?(): void;
  /** Makes it impossible to open the receiver. */
  ruin?(): void | Promise<void>;
}

interface SinkAdapter {
  readonly name: string;
  readonly formats: readonly Format[];
  /**
   * The number of duplicates allowed after a failure, for a batch of `size` (docs/guarantees.md).
   */
  readonly twice: (size: number) => number;
  /**
   * Messages of a rejected request that a receiver may have stored, and receives again; default
   * none.
   */
  readonly keptOfRefused?: number;
  /** The longest message that its receiver accepts, bytes; default unlimited. */
  readonly longest?: number;
  /**
   * The number of batches sent one by one before a kill; fewer for a receiver with one connection
   * per batch, which the kernel acknowledges with a delay (40 ms).
   */
  readonly batches?: number;
  /** The sink accepts each entry only once, so nothing is sent on demand. */
  readonly takesOnce?: boolean;
  /**
   * Another transport or setting of a sink whose whole suite runs beside it. `npm test` then only
   * delivers, cuts and kills; `npm run test:long` runs the whole suite.
   */
  readonly isVariant?: boolean;
  /** Texts that no error may contain. */
  readonly secrets: readonly string[];
  start(): Promise<Place>;
}

const never = new AbortController().signal;
const ofVariants = [
  'everything arrives once, in order',
  'a batch whose response was lost is sent again',
  'a failed open gives the reason, and names the sink',
  'an invalid message is rejected alone, with the text of the receiver, and the others arrive',
];
const texts = (list: readonly Message[]): string[] => list.map(({ bytes }) => Buffer.from(bytes).toString('utf8'));

export function sinkSuite(adapter: SinkAdapter): void {
  const {
    name,
    formats,
    twice,
    secrets,
    longest = Infinity,
    batches = 400,
    keptOfRefused = 0,
    takesOnce = false,
    isVariant = false,
  } = adapter;
  describe(name, () => {
    let place: Place;
    let started: Place | undefined;
    let kept: ModelKept;
    const errors: unknown[] = [];
    beforeEach(async ({ skip, task }) => {
      skip(isVariant && !isLong && !ofVariants.includes(task.name), 'npm run test:long runs it');
      place = started = await adapter.start();
      kept = new ModelKept();
      errors.length = 0;
    });
    afterEach(async () => {
      await started?.[Symbol.asyncDispose]();
      started = undefined;
      for (const error of errors) {
        const words = `${messageOf(error)} ${JSON.stringify(error)} ${error instanceof Error ? (error.stack ?? '') : ''}`;
        for (const secret of secrets) expect(words).not.toContain(secret);
      }
    });

    /** The reason of a rejected promise. */
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

    /**
     * Opens again, requests the position if the sink stores one, and sends the messages that are
     * missing.
     */
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
      await expectReceived(texts(messages(1, 500)));
    });

    test('an accepted batch is at the receiver, even if the sender is killed immediately after', async () => {
      const sink = await place.open(kept);
      for (let seq = 1; seq <= batches; seq += 1) await send(sink, batchOf(messages(seq, seq)));
      await place.kill();
      await expectReceived(texts(messages(1, batches)));
    });

    test('a large batch and a large message arrive completely', async () => {
      await using sink = await place.open(kept);
      const large = message(1, textOf(1, 'Ж€𝄞'.repeat(Math.min(30_000, Math.floor(longest / 10)))));
      const many = messages(2, 3_000);
      await send(sink, batchOf([large]));
      await send(sink, batchOf(many));
      await expectReceived(texts([large, ...many]));
    });

    test('a kill between acceptance and acknowledgement loses no record, and duplicates no more than the guarantee allows', async () => {
      const all = messages(1, 30);
      const sink = await place.open(kept);
      await send(sink, batchOf(all.slice(0, 10)));
      await sink.send(batchOf(all.slice(10, 20)), never);
      await place.kill();
      const next = await goOn(all);
      await expectWithin(all, 10);
      await next[Symbol.asyncDispose]();
    });

    test('a sender that restarts before its first batch adds no record', async () => {
      const all = messages(1, 10);
      const sink = await place.open(kept);
      await send(sink, batchOf(all));
      await sink[Symbol.asyncDispose]();
      for (let i = 0; i < 3; i += 1) await (await goOn(all))[Symbol.asyncDispose]();
      await expectReceived(texts(all));
    });

    test('a message sent on demand arrives, and moves no position', async ({ skip }) => {
      if (takesOnce) return skip('it accepts no on-demand sends');
      const all = messages(1, 20);
      const extra = message(900_001);
      const sink = await place.open(kept);
      await send(sink, batchOf(all.slice(0, 10)));
      await send(sink, { ...batchOf([extra]), through: kept.position, uncertain: true, feed: { feed: 'test', at: extra.seq, sent: 1 } });
      await place.kill();
      const next = await goOn(all);
      await expectReceived(texts([...all.slice(0, 10), extra, ...all.slice(10)]));
      await next[Symbol.asyncDispose]();
    });

    test('a second close has no effect', async () => {
      const sink = await place.open(kept);
      await send(sink, batchOf(messages(1, 2)));
      await sink[Symbol.asyncDispose]();
      await sink[Symbol.asyncDispose]();
      await expectReceived(texts(messages(1, 2)));
    });

    test.for(formats)('an unusual name arrives as one event and is read back unchanged: %s', async (format) => {
      const odd = 'name|with="odd]\r\nbytes';
      const cef = { ipv6: 'c6a2', geo: 'cfp' } as const;
      const record = recordOf(JSON.stringify({ ...poorest, payloadName: odd }));
      const text = encoder(format, { includeOriginal: true, cef })(normalizer(settings)(record));
      await using sink = await place.open(kept);
      await send(sink, batchOf([message(1), message(2, text), message(3)]));
      let received: readonly string[] = [];
      await expect.poll(async () => (received = await place.received())).toHaveLength(3);
      // CEF writes CR LF as `\n` (CEF 0.1 rev. 26, character encoding). LEEF defines no escape, so each
      // of the two characters becomes a space.
      const read: Readonly<Record<string, string>> = { cef: odd.replace('\r\n', '\n'), leef: odd.replace('\r\n', '  ') };
      expect(fileNameIn[format](received[1] ?? '')).toBe(read[format] ?? odd);
    });

    test('a batch whose response was lost is sent again', async ({ skip }) => {
      const all = messages(1, 30);
      if (!place.cutAnswer) return skip('its receiver sends no responses');
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

    test('an invalid message is rejected alone, with the text of the receiver, and the others arrive', async ({ skip }) => {
      if (!place.refuse) return skip('its receiver rejects no single message');
      const words = place.refuse(4, 'cannot parse field seven') ?? 'cannot parse field seven';
      await expectOnlyFourthRefused(words);
    });

    test.for([302, 400, 403, 404, 406])(
      'a message that a firewall in front of the receiver answers with %i is refused alone, and the others arrive',
      async (status, { skip }) => {
        if (!place.intercept) return skip('it sends no HTTP requests with single messages');
        place.intercept(4, status);
        await expectOnlyFourthRefused(String(status));
      },
    );

    /** Sends messages of which the receiver refuses the fourth, with this text. */
    async function expectOnlyFourthRefused(words: string): Promise<void> {
      await using sink = await place.open(kept);
      const refused: string[] = [];
      // Like the delivery loop: a message that is often refused is rejected.
      const settle = async (batch: Batch, tries = 1): Promise<void> => {
        try {
          const { rejections, retryable: again } = await sink.send(batch, never);
          // One rule for every sink: a refused message is named, and a suspect if a later one was accepted.
          if (again !== undefined && again.isAtOnce !== true) {
            expect(again.reasons?.map(({ seq }) => seq)).toEqual(again.seqs);
            if (batch.messages.at(-1)?.seq !== 4) expect(again.suspects).toEqual([4]);
          }
          const spent = tries >= 6 ? (again?.reasons ?? []) : [];
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
      const received = await firstArrivals(texts(messages(1, 8).filter(({ seq }) => seq !== 4)));
      expect(received.length - 7).toBeLessThanOrEqual(keptOfRefused);
    }

    test('a busy response states the delay, and no message was accepted', async ({ skip }) => {
      if (!place.busy) return skip('its receiver is never busy');
      await using sink = await place.open(kept);
      place.busy(7_000);
      expect(await errorOf(sink.send(batchOf(messages(1, 3)), never))).toMatchObject({ code: 'sink_unavailable', retryAfterMs: 7_000 });
      await expectReceived([]);
      await send(sink, batchOf(messages(1, 3)));
      await expectReceived(texts(messages(1, 3)));
    });

    test('an abort ends a send within a second', async ({ skip }) => {
      if (!place.stall) return skip('its receiver cannot be stalled');
      const sink = await place.open(kept);
      place.stall();
      const abort = new AbortController();
      const sending = errorOf(sink.send(batchOf([message(1, 'x'.repeat(1_000_000))]), abort.signal));
      await new Promise((resolve) => setTimeout(resolve, 100));
      const at = performance.now();
      abort.abort(new WaybillError('aborted', 'the shutdown timeout has passed'));
      expect(await sending).toBeDefined();
      expect(performance.now() - at).toBeLessThan(1_000);
      await place.kill();
    });

    test('a failed open gives the reason, and names the sink', async ({ skip }) => {
      if (!place.ruin) return skip('its receiver cannot be made to fail an open');
      await place.ruin();
      const thrown = await errorOf(place.open(kept));
      expect(['sink_unavailable', 'sink_blocked']).toContain(codeOf(thrown));
      expect(messageOf(thrown)).toContain('"under-test"');
    });

    /** Expects these events at the receiver, and none after them. */
    async function expectReceived(expected: readonly string[]): Promise<void> {
      await expect.poll(() => place.received()).toEqual(expected);
      expect(await receivedInTransit()).toEqual(expected);
    }

    /** Expects these events without their duplicates. @returns all events */
    async function firstArrivals(expected: readonly string[]): Promise<readonly string[]> {
      await expect.poll(async () => [...new Set(await place.received())]).toEqual(expected);
      const received = await receivedInTransit();
      expect([...new Set(received)]).toEqual(expected);
      return received;
    }

    /** The events of the receiver, after the time in which a duplicate in transit arrives. */
    async function receivedInTransit(): Promise<readonly string[]> {
      await new Promise((resolve) => setTimeout(resolve, 50));
      return place.received();
    }

    /**
     * No message is missing, first arrivals are in order, and there are no more duplicates than a
     * batch of this size allows.
     */
    async function expectWithin(all: readonly Message[], size: number): Promise<void> {
      const received = await firstArrivals(texts(all));
      expect(received.length - all.length).toBeLessThanOrEqual(twice(size));
    }
  });
}
