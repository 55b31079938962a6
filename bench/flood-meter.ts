/**
 * The daemon under flood, measured from outside: rates of collection and delivery, latency of
 * `/healthz`, memory.
 */
import { closeSync, openSync, readSync } from 'node:fs';
import { request } from 'node:http';
import type Database from 'better-sqlite3';
import { mainThreadMs, memoryMiB } from './process.ts';

/** Records per second. */
export interface Rates {
  readonly collected: number;
  readonly delivered: number;
  /** Share of a CPU that the main thread of the daemon used. */
  readonly mainThread: number;
}
/** `failed`: a response other than 200, or none within 30 s. */
export interface Health {
  readonly asked: number;
  readonly failed: number;
  readonly slowestMs: number;
}

/** Counts the lines of a growing file. */
export class Lines {
  readonly #path: string;
  readonly #buffer = Buffer.alloc(1_048_576);
  #at = 0;
  #count = 0;

  constructor(path: string) {
    this.#path = path;
  }

  count(): number {
    let file: number;
    try {
      file = openSync(this.#path, 'r');
    } catch {
      return 0;
    }
    for (;;) {
      const read = readSync(file, this.#buffer, 0, this.#buffer.length, this.#at);
      if (read === 0) break;
      this.#at += read;
      for (let at = this.#buffer.indexOf(10); at >= 0 && at < read; at = this.#buffer.indexOf(10, at + 1)) this.#count += 1;
    }
    closeSync(file);
    return this.#count;
  }
}

interface Moment {
  readonly at: number;
  readonly collected: number;
  readonly delivered: number;
  readonly cpu: number;
}

/** Rates since the last call. */
export class Meter {
  readonly #now: () => Moment;
  #last: Moment;

  constructor(pid: number, db: Database.Database, lines: Lines) {
    const collected = db.prepare<[], { n: number }>('SELECT sum(collected) AS n FROM sources');
    this.#now = () => ({ at: performance.now(), collected: collected.get()?.n ?? 0, delivered: lines.count(), cpu: mainThreadMs(pid) });
    this.#last = this.#now();
  }

  rates(): Rates {
    const last = this.#last;
    const now = (this.#last = this.#now());
    const per = (now.at - last.at) / 1000;
    return {
      collected: (now.collected - last.collected) / per,
      delivered: (now.delivered - last.delivered) / per,
      mainThread: (now.cpu - last.cpu) / (now.at - last.at),
    };
  }
}

/**
 * Requests `/healthz` four times a second, on a new connection each time, and samples the memory.
 */
export class Prober {
  readonly #timer: NodeJS.Timeout;
  readonly #asked: Promise<number | undefined>[] = [];
  #memoryMost = 0;

  constructor(port: number, pid: number) {
    this.#timer = setInterval(() => {
      this.#asked.push(healthMs(port));
      this.#memoryMost = Math.max(this.#memoryMost, memoryMiB(pid).now);
    }, 250);
  }

  async end(): Promise<Health & { readonly memoryMost: number }> {
    clearInterval(this.#timer);
    const took = await Promise.all(this.#asked);
    const good = took.filter((ms) => ms !== undefined);
    return { asked: took.length, failed: took.length - good.length, slowestMs: Math.max(0, ...good), memoryMost: this.#memoryMost };
  }
}

/** The latency in ms; undefined for a response other than 200, or none within 30 s. */
function healthMs(port: number): Promise<number | undefined> {
  const began = performance.now();
  return new Promise((resolve) => {
    const asking = request({ port, host: '127.0.0.1', path: '/healthz', agent: false, timeout: 30_000 }, (answer) => {
      answer.resume();
      answer.on('end', () => resolve(answer.statusCode === 200 ? performance.now() - began : undefined));
      answer.on('error', () => resolve(undefined));
    });
    asking.on('timeout', () => asking.destroy());
    asking.on('error', () => resolve(undefined));
    asking.end();
  });
}
