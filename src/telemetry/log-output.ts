/**
 * Where log lines go: a stream whose reader may be slow, stuck or gone, and none of that may hold up the daemon. What the reader has not taken is kept up
 * to a bound; lines beyond it, and lines that cannot be written, are lost and counted.
 */

/** Standard error, a file, or what a test gives. */
export interface LineStream {
  write(line: string, done?: (error?: Error | null) => void): unknown;
  once?(event: 'drain', listener: () => void): unknown;
  readonly isTTY?: boolean | undefined;
  /** What was written and is not taken yet. */
  readonly writableLength?: number;
}

const keptMax = 1_048_576;

export class LogOutput {
  readonly #stream: LineStream;
  readonly #drained: () => void;
  #lost = 0;
  /** Lines lost since the log said so last. */
  #unsaid = 0;
  #isWaiting = false;

  /** @param drained  called when there is room again after lines were lost for lack of it */
  constructor(stream: LineStream, drained: () => void) {
    this.#stream = stream;
    this.#drained = drained;
  }

  /** Lines that nobody can read any more, since the start. */
  get lost(): number {
    return this.#lost;
  }

  write(line: string): void {
    if (this.#isFull()) {
      if (!this.#isWaiting) this.#stream.once?.('drain', () => this.#roomAgain());
      this.#isWaiting = true;
      this.#lose();
    } else this.#stream.write(line, (error) => error && this.#lose());
  }

  /** When lines were lost that the log does not know of, and there is room again: writes the line that says so. */
  confess(line: (lines: number) => string): void {
    const lines = this.#unsaid;
    if (lines === 0 || this.#isFull()) return;
    this.#unsaid = 0;
    this.#stream.write(line(lines), (error) => {
      if (error) this.#unsaid += lines;
    });
  }

  #roomAgain(): void {
    this.#isWaiting = false;
    this.#drained();
  }

  #lose(): void {
    this.#lost += 1;
    this.#unsaid += 1;
  }

  #isFull(): boolean {
    return (this.#stream.writableLength ?? 0) >= keptMax;
  }
}
