/** Requests of an operator whose commands wait for the answer: retries of dead letters, and test events. Each message is sent once. */
import { codeOf, WaybillError, messageOf } from '../errors/errors.ts';
import type { Limit, Operation } from '../model/journal.ts';
import type { Batch, FeedPosition, Message, Rejection } from '../model/sink.ts';
import type { Meters } from '../model/telemetry.ts';
import type { Prepared } from './batcher.ts';
import type { Feed, FeedParts } from './feed.ts';
import type { Pauses } from './pauses.ts';
import { Suspects } from './suspects.ts';

interface RequestFeedParts extends FeedParts {
  readonly pauses: Pauses;
  readonly meters: Pick<Meters, 'eventsDelivered'>;
}

interface Request {
  readonly feed: 'dead-letters' | 'test';
  /** Of a retry: its row in `operations`. */
  readonly operation?: Operation;
  /** The messages without an answer, in order. */
  left: readonly Message[];
  readonly rejected: Rejection[];
  readonly resolve: (rejected: readonly Rejection[]) => void;
  readonly reject: (cause: WaybillError) => void;
}

export class RequestFeed implements Feed {
  readonly kind = 'request';
  readonly suspects: Suspects;
  readonly #parts: RequestFeedParts;
  /** Dead letters delivered since this loop started, or that the sink reported as delivered when it was opened. */
  readonly #delivered = new Set<number>();
  readonly #requests: Request[] = [];
  /** The request of the batch in flight. It gets its answer from that batch. */
  #current: Request | undefined;
  #closed: WaybillError | undefined;

  constructor(parts: RequestFeedParts) {
    this.#parts = parts;
    this.suspects = new Suspects(parts.clock);
  }

  get dueAt(): number {
    return this.#current || this.#requests.length > 0 ? -Infinity : Infinity;
  }

  /**
   * Retries dead letters: removes each delivered one, and stores the new reason of each rejected one.
   * @returns the rejected ones
   * @throws WaybillError `usage` when a dead letter does not exist or the sink no longer selects it; `sink_unavailable`, `sink_blocked` or
   *         `sink_outcome_unknown` when the sink did not answer for all of them: earlier answers are committed
   */
  async retry(seqs: readonly number[], operation: Operation): Promise<readonly Rejection[]> {
    const { id, journal, pipeline } = this.#parts;
    const messages: Message[] = [];
    const rejected: Rejection[] = [];
    for (const seq of new Set(seqs.toSorted((a, b) => a - b))) {
      const entry = await journal.deadLetter(id, seq);
      if (!entry && this.#delivered.has(seq)) continue;
      if (!entry) throw new WaybillError('usage', `cannot retry entry ${seq} for sink "${id}": the journal has no such dead letter`);
      let message: Message | undefined;
      try {
        message = pipeline(entry, (bytes) => Buffer.from(bytes));
      } catch (thrown) {
        rejected.push({ seq, code: 'cannot_encode', message: messageOf(thrown) });
        continue;
      }
      if (!message)
        throw new WaybillError('usage', `cannot retry entry ${seq} for sink "${id}": the sink no longer selects it (sources, filter)`);
      messages.push(message);
    }
    for (const rejection of rejected) await journal.resolveDeadLetter(id, rejection.seq, { delivered: false, rejection }, operation);
    return messages.length === 0 ? rejected : this.#send({ feed: 'dead-letters', operation, left: messages, rejected });
  }

  /** Sends test events, which the journal does not contain. Throws like `retry`. @returns the rejected ones */
  async test(messages: readonly Message[]): Promise<readonly Rejection[]> {
    return this.#send({ feed: 'test', left: messages, rejected: [] });
  }

  #send(request: Omit<Request, 'resolve' | 'reject'>): Promise<readonly Rejection[]> {
    const { pauses } = this.#parts;
    const refusal = this.#closed ?? pauses.unavailable();
    if (refusal) throw refusal;
    return new Promise((resolve, reject) => {
      this.#requests.push({ ...request, resolve, reject });
      pauses.wake();
    });
  }

  /** Removes a dead letter that the sink reports as delivered: the answer to its retry was lost. The operator of that retry is unknown. */
  async found({ feed, at: seq }: FeedPosition): Promise<void> {
    const { id, journal, clock } = this.#parts;
    // mutant: delivered-dead-letter
    if (feed !== 'dead-letters' || !(await journal.deadLetter(id, seq))) return;
    const operation = { at: clock.now() * 1000, actor: null, operation: 'dead-letters retry', detail: { found: true } };
    await journal.resolveDeadLetter(id, seq, { delivered: true, resumeNote: undefined }, operation);
    this.#delivered.add(seq);
  }

  /** A request with further batches waits for its turn like any other. */
  async fill(): Promise<void> {
    if (this.#current) this.#requests.unshift(this.#current);
    this.#current = undefined;
  }

  async next(): Promise<Prepared | undefined> {
    const request = (this.#current = this.#requests.shift());
    if (!request) return undefined;
    const { id, journal, limit } = this.#parts;
    const left: Message[] = [];
    // Sends a dead letter once even if two requests name it.
    for (const message of request.left)
      if (request.feed === 'test' || !this.#delivered.has(message.seq) || (await journal.deadLetter(id, message.seq))) left.push(message);
    request.left = left;
    const messages = within(left, limit);
    const last = messages.at(-1);
    if (!last) {
      this.#answered(request);
      return undefined;
    }
    const through = { seq: last.seq, chain: noChain };
    return { messages, through, bytes: bytesOf(messages), entries: new Map(), count: messages.length, unmade: undefined };
  }

  addressed(part: Batch): Batch {
    const { id, journal } = this.#parts;
    const feed = this.#current?.feed ?? 'test';
    const sent = part.messages.length;
    return { ...part, through: journal.sinkProgress(id).delivered, uncertain: true, feed: { feed, at: part.through.seq, sent } };
  }

  async acknowledge(...[through, delivered, rejections, stop, left = []]: Parameters<Feed['acknowledge']>): Promise<void> {
    const request = this.#current;
    if (!request) return;
    for (const message of request.left.filter(({ seq }) => seq <= through.seq && !left.some((each) => each.seq === seq))) {
      const rejection = rejections.find(({ seq }) => seq === message.seq);
      await this.#parts.acknowledger.commit(() => this.#keep(request, message, rejection, delivered?.resumeNote), stop);
      request.left = request.left.filter((each) => each !== message);
      if (rejection) request.rejected.push(rejection);
    }
    if (request.left.length === 0) this.#answered(request);
  }

  async #keep(request: Request, { seq }: Message, rejection: Rejection | undefined, resumeNote: string | undefined): Promise<void> {
    const { id, journal, meters } = this.#parts;
    if (request.operation) {
      await journal.resolveDeadLetter(
        id,
        seq,
        rejection ? { delivered: false, rejection } : { delivered: true, resumeNote },
        request.operation,
      );
      if (rejection) return;
      this.#delivered.add(seq);
      meters.eventsDelivered(id, 1);
    } else if (resumeNote !== undefined && resumeNote !== journal.sinkProgress(id).resumeNote)
      await journal.commitResumeNote(id, resumeNote);
  }

  #answered(request: Request): void {
    this.#current = undefined;
    request.resolve(request.rejected);
  }

  /** Ends the request whose batch failed. @returns true when the sink can be used further */
  failed(thrown: unknown): boolean {
    const code = codeOf(thrown);
    const isUnavailable = code === 'sink_unavailable' || code === 'sink_blocked';
    this.#current?.reject(new WaybillError(isUnavailable ? code : 'sink_outcome_unknown', messageOf(thrown), { cause: thrown }));
    this.#current = undefined;
    return isUnavailable;
  }

  fail(cause: WaybillError): void {
    for (const { reject } of this.#requests.splice(0)) reject(cause);
  }

  /** Call when the loop has ended: rejects every waiting request, and every later one. */
  close(cause: WaybillError): void {
    this.#closed = cause;
    this.#current?.reject(cause);
    this.fail(cause);
  }
}

const noChain = new Uint8Array();

/** The first messages, within the limit. A message that exceeds it is alone. */
function within(messages: readonly Message[], { records, bytes }: Limit): readonly Message[] {
  let size = 0;
  const end = messages.findIndex((message, i) => i === records || ((size += message.bytes.length) > bytes && i > 0));
  return end === -1 ? messages : messages.slice(0, end);
}

function bytesOf(messages: readonly Message[]): number {
  return messages.reduce((sum, { bytes }) => sum + bytes.length, 0);
}
