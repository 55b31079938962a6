/**
 * Progress of long work: on a terminal a line with a bar that changes, else a line every half minute.
 */
import { systemClock } from '../clock.ts';
import { span } from '../report/format-time.ts';
import type { Io } from './io.ts';

const barWidth = 30;

export class Progress {
  readonly #stream: Io['stderr'];
  readonly #isTerminal: boolean;
  readonly #began = systemClock.monotonic();
  #printedAt = this.#began;

  constructor(stream: Io['stderr']) {
    this.#stream = stream;
    this.#isTerminal = 'isTTY' in stream && stream.isTTY === true;
  }

  /**
   * @param share  of the work that is done, 0 to 1
   * @param text   gets the seconds since the start; called only if the line is printed
   */
  show(share: number, text: (seconds: number) => string): void {
    const now = systemClock.monotonic();
    if (share === 0 || now - this.#printedAt < (this.#isTerminal ? 200 : 30_000)) return;
    this.#printedAt = now;
    const seconds = (now - this.#began) / 1_000;
    const line = `${text(seconds)}, ${span((seconds * (1 - share)) / share)} left`;
    const bar = '#'.repeat(Math.round(share * barWidth)).padEnd(barWidth, '.');
    this.#stream.write(this.#isTerminal ? `\r\u001b[K[${bar}] ${line}` : `${line}\n`);
  }

  /** Work whose length is unknown; only a terminal shows it. */
  showStep(text: string): void {
    if (this.#isTerminal) this.#stream.write(`\r\u001b[K${text}`);
  }

  end(): void {
    this.showStep('');
  }
}
