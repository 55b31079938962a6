/**
 * The daemon as a program: its configuration file, `waybill run` with log and exit, the admin
 * server, and the commands. Durations are short: seconds here stand for days in production.
 */
import type { ChildProcess } from 'node:child_process';
import { appendFileSync, writeFileSync } from 'node:fs';
import type { LogEventCode } from '../../src/model/log-events.ts';
import { endOf, pause, question, until, patience } from './e2e-place.ts';
import type { Ended, Place } from './e2e-place.ts';
import type { Service } from './e2e-service.ts';
import { noteLine } from './telemetry/written-events.ts';

export type Settings = Record<string, unknown>;

export interface LogLine {
  readonly level: string;
  readonly event: LogEventCode;
  readonly message: string;
  readonly [field: string]: unknown;
}

/** The output of `ledger --json` (docs/operations.md). */
export interface Ledger {
  readonly complete: boolean;
  readonly sources: readonly LedgerSource[];
}

export interface LedgerSource {
  readonly id: string;
  readonly completeUntil: string | null;
  readonly readUntil: string;
  readonly collected: number;
  readonly late: number;
  readonly windows: readonly LedgerWindow[];
}

interface LedgerWindow {
  readonly from: string;
  readonly to: string;
  readonly state: string;
  readonly reason: string | null;
  readonly total: number | null;
  readonly records: number;
  readonly late: number;
  readonly recounts: number;
  readonly sinks: Readonly<Record<string, { readonly complete: boolean; readonly deadLetters: number }>>;
}

/** The settings of a source that polls this service with the permissions of a role. */
export function sourceOf(service: Service, start: string, more: Settings = {}, role = 'Security Administrator'): Settings {
  const { baseUrl, authUrl, tenantId, scopeAddress, subscriptionKey, ca } = service.line;
  const { clientId, clientSecret } = service.client(role);
  return {
    id: 'production',
    baseUrl,
    auth: { authUrl, tenantId, clientId, clientSecret, scopeAddress },
    subscriptionKey,
    tls: { ca },
    start,
    pollInterval: '1s',
    closeDelay: '2s',
    recountAfter: ['3s', '8s', '15s'],
    requests: { perSecond: 500, timeout: '5s' },
    ...more,
  };
}

/** Writes a configuration; JSON is YAML. */
export function configure(place: Place, sources: readonly Settings[], sinks: readonly Settings[], more: Settings = {}): string {
  const file = place.path('waybill.yaml');
  const whole = { dataDir: './state', sources, sinks, admin: { listen: '127.0.0.1:0' }, shutdownTimeout: '5s', ...more };
  writeFileSync(file, JSON.stringify(whole, null, 2));
  return file;
}

/** A time so many ms before now, in whole seconds, in the format of `start`. */
export function ago(ms: number): string {
  return `${new Date(Date.now() - ms).toISOString().slice(0, 19)}Z`;
}

export class Daemon {
  readonly log: LogLine[] = [];
  /** Lines of standard error that are not log lines. */
  readonly otherOutput: string[] = [];
  readonly ended: Promise<Ended>;
  readonly #child: ChildProcess;
  readonly #file: string;

  /** Starts `waybill run` with these options. `daemon.log` has a copy of its standard error. */
  constructor(place: Place, ...options: string[]) {
    this.#file = place.path('daemon.log');
    this.#child = place.spawnWaybill(['run', '--config', 'waybill.yaml', ...options]);
    this.ended = endOf(this.#child);
    // Of the sink stdout.
    this.#child.stdout?.on('data', (part: Buffer) => appendFileSync(place.path('stdout'), part));
    let rest = '';
    this.#child.stderr?.setEncoding('utf8').on('data', (part: string) => {
      const lines = (rest + part).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) this.#read(line);
    });
    this.#child.stderr?.on('end', () => {
      if (rest !== '') this.otherOutput.push(rest);
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Waits for the first log line of this event. */
  async logged(event: LogEventCode, ms = patience): Promise<LogLine> {
    return until(
      () => `"${event}" in the log\n${this.words()}`,
      ms,
      () => {
        const found = this.find(event);
        if (!found) this.#mustRun();
        return found;
      },
    );
  }

  find(event: LogEventCode): LogLine | undefined {
    return this.log.find((line) => line.event === event);
  }

  /** The log as text, for error messages. */
  words(): string {
    return [...this.log.slice(-30).map((line) => JSON.stringify(line)), ...this.otherOutput].join('\n');
  }

  /** GET on the admin server, at the address in the log. */
  async get(path: string): Promise<{ status: number; text: string }> {
    const { addresses } = (await this.logged('admin.listening')) as LogLine & { addresses: string[] };
    const answer = await question(`${addresses[0] ?? ''}${path}`);
    return { status: answer.status, text: await answer.text() };
  }

  /** The report of the running daemon: the same as `ledger --json`. */
  async ledger(): Promise<Ledger> {
    const { status, text } = await this.get('/ledger');
    if (status !== 200) throw new Error(`/ledger answers ${status}: ${text}`);
    return JSON.parse(text) as Ledger;
  }

  /** Undefined while the state is not open. */
  async snapshot(): Promise<Snapshot | undefined> {
    const { status, text } = await this.get('/snapshot');
    if (status === 503) return undefined;
    if (status !== 200) throw new Error(`/snapshot responds ${status}: ${text}`);
    return JSON.parse(text) as Snapshot;
  }

  /** Waits until `/readyz` responds with this status and, if given, with a text that matches `words`. @returns the text */
  async ready(status: number, words?: RegExp, ms = patience): Promise<string> {
    let last = '';
    return until(
      () => `/readyz with ${status}${words ? ` and ${words.source}` : ''}, but ${last}\n${this.words()}`,
      ms,
      async () => {
        const answer = await this.get('/readyz');
        last = `${answer.status} ${answer.text}`;
        if (answer.status === status && (words?.test(answer.text) ?? true)) return answer.text;
        this.#mustRun();
        return undefined;
      },
    );
  }

  /** SIGKILL, at once. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    const { code, signal } = await this.ended;
    if (signal !== 'SIGKILL') throw new Error(`the daemon had ended before it was killed, with ${code ?? signal ?? ''}\n${this.words()}`);
  }

  /** Sends a signal that must not end the daemon. */
  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  /** SIGTERM. @returns how it ended, and after how many ms */
  async stop(): Promise<Ended & { readonly ms: number }> {
    const began = performance.now();
    this.#child.kill('SIGTERM');
    return { ...(await this.ended), ms: performance.now() - began };
  }

  #read(line: string): void {
    appendFileSync(this.#file, `${line}\n`);
    noteLine(line);
    if (line.startsWith('{')) this.log.push(JSON.parse(line) as LogLine);
    else if (line !== '') this.otherOutput.push(line);
  }

  #mustRun(): void {
    const { exitCode, signalCode } = this.#child;
    if (exitCode !== null || signalCode !== null) throw new Error(`the daemon ended with ${exitCode ?? signalCode ?? ''}\n${this.words()}`);
  }
}

/** `ledger --json`, with or without a running daemon. */
export async function ledgerOf(place: Place, ...options: string[]): Promise<{ code: number | null; ledger: Ledger }> {
  const { code, stdout, stderr } = await place.waybill('ledger', '--config', 'waybill.yaml', '--json', ...options);
  if (stdout === '') throw new Error(`ledger ended with ${code ?? 'a signal'}: ${stderr}`);
  return { code, ledger: JSON.parse(stdout) as Ledger };
}

/** The ledger up to the last closed window. The time after it is due soon, or overdue while no daemon runs, and would change the verdict. */
export async function readLedgerOf(place: Place, ...options: string[]): Promise<{ code: number | null; ledger: Ledger }> {
  const { ledger } = await ledgerOf(place, ...options);
  const reached = ledger.sources.map((source) => Date.parse(source.readUntil));
  return ledgerOf(place, ...options, '--to', new Date(Math.min(...reached)).toISOString());
}

/** The part of `/snapshot` that these tests read. Unlike `/ledger`, the daemon answers it without a new thread. */
interface Snapshot {
  /** `closedUntil` in µs since 1970; 0 before the start of the ledger. */
  readonly sources: readonly { readonly id: string; readonly closedUntil: number; readonly collected: number }[];
  readonly sinks: readonly { readonly id: string; readonly lagEntries: number }[];
}

/**
 * Waits until every record of the service is collected, and acknowledged by all other sinks than
 * `except`. The service must create no record in that time.
 */
export async function caughtUp(daemon: Daemon, service: Service, ms: number, except: readonly string[] = []): Promise<void> {
  let last = '';
  await until(
    () => `everything acknowledged: ${last}\n${daemon.words()}`,
    ms,
    async () => {
      const { visible, total } = (await service.stats()).records;
      const snapshot = await daemon.snapshot();
      if (!snapshot) return undefined;
      const { sinks } = snapshot;
      const collected = snapshot.sources[0]?.collected;
      last = JSON.stringify({ visible, total, collected, sinks });
      const isDone = sinks.every(({ id, lagEntries }) => lagEntries === 0 || except.includes(id));
      return (visible === total && collected === total && isDone) || undefined;
    },
  );
}

/**
 * Waits until every window that starts before `end` is final (or a gap, where gaps are allowed) and complete at each sink.
 * @param end  a whole second in ms since 1970
 */
export async function settled(
  daemon: Daemon,
  end: number,
  ms: number,
  mayHaveGaps: (source: string) => boolean = () => false,
): Promise<void> {
  let last = 'no windows';
  await until(
    () => `windows final up to ${new Date(end).toISOString()}; ${last}`,
    ms,
    async () => {
      const live = (await daemon.snapshot())?.sources ?? [];
      last = JSON.stringify(live.map(({ id, closedUntil }) => ({ id, closedUntil })));
      if (live.length === 0 || live.some(({ closedUntil }) => closedUntil < end * 1_000)) return undefined;
      const { sources } = await daemon.ledger();
      const open = sources.filter((source) => {
        const isDone = ({ state, sinks }: LedgerWindow): boolean =>
          (state === 'final' || (state === 'gap' && mayHaveGaps(source.id))) && Object.values(sinks).every(({ complete }) => complete);
        return source.windows.some((window) => Date.parse(window.from) < end && !isDone(window));
      });
      last = open
        .map(
          ({ id, readUntil, windows }) =>
            `${id} closed until ${readUntil}: ${JSON.stringify(windows.filter(({ state }) => state !== 'final').slice(0, 3))}`,
        )
        .join('\n');
      if (open.length === 0) return true;
      await pause(500);
      return undefined;
    },
  );
}
