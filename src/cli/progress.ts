/** Progress of long work: on a terminal a line with a bar that changes, else a line every half minute. */
import { systemClock } from '../time/clock.ts';
import { span } from '../report/format-time.ts';
import { isTerminal, type Io } from './io.ts';

const barWidth = 30;
/** ms between two lines that are not shown on a terminal. */
const fileMs = 30_000;

export class Progress {
  readonly #stream: Io['stderr'];
  readonly isTerminal: boolean;
  readonly #began = systemClock.monotonic();
  #printedAt: number | undefined;

  constructor(stream: Io['stderr']) {
    this.#stream = stream;
    this.isTerminal = isTerminal(stream);
  }

  /** @param share  of the work that is done, 0 to 1 @param text  gets the seconds since the start; called only if the line is printed */
  show(share: number, text: (seconds: number) => string): void {
    const now = systemClock.monotonic();
    if (share === 0 || now - (this.#printedAt ?? this.#began) < (this.isTerminal ? 200 : fileMs)) return;
    const seconds = (now - this.#began) / 1_000;
    const line = `${text(seconds)}, ${span((seconds * (1 - share)) / share)} left`;
    const bar = '#'.repeat(Math.round(share * barWidth)).padEnd(barWidth, '.');
    this.#print(this.isTerminal ? `[${bar}] ${line}` : line, now);
  }

  /** A line of text alone: at once on a terminal; else the first one, and then one every half minute. */
  showLine(text: string): void {
    const now = systemClock.monotonic();
    if (this.isTerminal || now - (this.#printedAt ?? -Infinity) >= fileMs) this.#print(text, now);
  }

  /** Work whose length is unknown; only a terminal shows it. */
  showStep(text: string): void {
    if (this.isTerminal) this.#stream.write(`\r\u001b[K${text}`);
  }

  end(): void {
    this.showStep('');
  }

  #print(line: string, now: number): void {
    this.#printedAt = now;
    this.#stream.write(this.isTerminal ? `\r\u001b[K${line}` : `${line}\n`);
  }
}
