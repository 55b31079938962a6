/**
 * The output of the log. A slow reader must not delay the daemon: lines are buffered up to a limit, beyond which they are lost and counted.
 */

/** Standard error, a file, or a test double. */
export interface LineStream {
  write(line: string, done?: (error?: Error | null) => void): unknown;
  once?(event: 'drain', listener: () => void): unknown;
  readonly isTTY?: boolean | undefined;
  /** Bytes written and not yet read. */
  readonly writableLength?: number;
}

const maxBuffered = 1_048_576;

export class LogOutput {
  readonly #stream: LineStream;
  readonly #drained: () => void;
  #lost = 0;
  /** Lost lines that no log line has reported. */
  #unreported = 0;
  #isWaiting = false;

  /** @param drained  called when the buffer has space again after lines were lost */
  constructor(stream: LineStream, drained: () => void) {
    this.#stream = stream;
    this.#drained = drained;
  }

  /** Lost lines since the start. */
  get lost(): number {
    return this.#lost;
  }

  write(line: string): void {
    if (this.#isFull()) {
      if (!this.#isWaiting) this.#stream.once?.('drain', () => this.#drain());
      this.#isWaiting = true;
      this.#lose();
    } else this.#stream.write(line, (error) => error && this.#lose());
  }

  /** Writes the line about lost lines, if there are unreported ones and the buffer has space. */
  reportLost(line: (lines: number) => string): void {
    const lines = this.#unreported;
    if (lines === 0 || this.#isFull()) return;
    this.#unreported = 0;
    this.#stream.write(line(lines), (error) => {
      if (error) this.#unreported += lines;
    });
  }

  #drain(): void {
    this.#isWaiting = false;
    this.#drained();
  }

  #lose(): void {
    this.#lost += 1;
    this.#unreported += 1;
  }

  #isFull(): boolean {
    return (this.#stream.writableLength ?? 0) >= maxBuffered;
  }
}
