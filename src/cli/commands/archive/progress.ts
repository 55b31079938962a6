/** The progress of a verification: a line that changes on a terminal, else a line every half minute. */
import { systemClock } from '../../../clock.ts';
import { grouped, span } from '../../../report/format-time.ts';
import type { Io } from '../../io.ts';

export class Progress {
  readonly #stream: Io['stderr'];
  readonly #isTerminal: boolean;
  readonly #began = systemClock.monotonic();
  #printedAt = this.#began;

  constructor(stream: Io['stderr']) {
    this.#stream = stream;
    this.#isTerminal = 'isTTY' in stream && stream.isTTY === true;
  }

  show({ lines, of }: { readonly lines: number; readonly of: number }): void {
    const now = systemClock.monotonic();
    if (lines === 0 || now - this.#printedAt < (this.#isTerminal ? 200 : 30_000)) return;
    this.#printedAt = now;
    const seconds = (now - this.#began) / 1_000;
    const text = `verified ${grouped(lines)} of ${grouped(of)} lines, ${span((seconds * (of - lines)) / lines)} left`;
    this.#stream.write(this.#isTerminal ? `\r\u001b[K${text}` : `${text}\n`);
  }

  end(): void {
    if (this.#isTerminal) this.#stream.write('\r\u001b[K');
  }
}
