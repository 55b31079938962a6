/** The members of a fleet as processes, each with a configuration and a log of its own: `member-0.yaml`, `member-0.log`. */
import type { ChildProcess } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { endOf, type Place } from '../e2e-place.ts';
import { waybillProgram } from '../programs.ts';
import { noteLine } from '../telemetry/written-events.ts';

/** How a member differs from the others. */
export interface MemberProgram {
  /** By default the program under test. */
  readonly program?: string;
  readonly env?: Readonly<Record<string, string>>;
}

export class Members {
  readonly #place: Place;
  readonly #programs: readonly MemberProgram[];
  readonly #running: ChildProcess[] = [];
  /** The end of their logs. */
  output = '';
  /** The number of log lines by event. */
  readonly events = new Map<string, number>();
  /** Lines that are no events, such as the stack of an unhandled error. */
  readonly defects: string[] = [];

  /** @param programs  by slot */
  constructor(place: Place, programs: readonly MemberProgram[] = []) {
    this.#place = place;
    this.#programs = programs;
  }

  start(slot: number): void {
    const { program = waybillProgram, env = {} } = this.#programs[slot] ?? {};
    const child = this.#place.spawn([program, 'run', '--config', this.#place.path(`member-${slot}.yaml`)], env);
    let rest = '';
    child.stderr?.setEncoding('utf8').on('data', (part: string) => {
      appendFileSync(this.#place.path(`member-${slot}.log`), part);
      this.output = (this.output + part).slice(-20_000);
      const lines = (rest + part).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) this.#read(line, program === waybillProgram);
    });
    this.#running[slot] = child;
  }

  signal(slot: number, signal: NodeJS.Signals): void {
    this.#running[slot]?.kill(signal);
  }

  async kill(slot: number): Promise<void> {
    const child = this.#running[slot];
    if (!child) return;
    const ended = endOf(child);
    child.kill('SIGKILL');
    await ended;
  }

  /** @returns the exit codes */
  async stop(): Promise<unknown[]> {
    const ends = this.#running.map((child) => endOf(child));
    for (const child of this.#running) child.kill('SIGTERM');
    return (await Promise.all(ends)).map(({ code }) => code);
  }

  #read(line: string, isOurs: boolean): void {
    if (isOurs) noteLine(line);
    if (!line.startsWith('{"level"')) {
      this.defects.push(line);
      return;
    }
    const { event } = JSON.parse(line) as { event: string };
    this.events.set(event, (this.events.get(event) ?? 0) + 1);
  }
}
