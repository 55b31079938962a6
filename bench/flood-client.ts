/**
 * The client of the flood benchmark, in a separate process: sends one kind of flood to the admin
 * server on loopback, and prints the outcome as one line of JSON. It reopens connections that the
 * server closes, as a hostile client would.
 */
import { connect } from 'node:net';
import type { Socket } from 'node:net';

export interface Flood {
  readonly port: number;
  /**
   * `pipelined`: requests without waiting for responses; `sequential`: each after the previous
   * response; `connections`: one request per connection; `idle`: connections that send half a
   * request; `slow`: requests whose responses are not read; `bodies`: 10 MB each.
   */
  readonly kind: 'pipelined' | 'sequential' | 'connections' | 'idle' | 'slow' | 'bodies';
  /** Method and target: `GET /metrics`. */
  readonly request: string;
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * The minimum number of requests: the flood lasts `seconds`, and up to three times as long until
   * it has sent this many.
   */
  readonly total: number;
  readonly connections: number;
  readonly seconds: number;
}

export interface Flooded {
  /** Requests, complete or partial, that the kernel has accepted. */
  readonly sent: number;
  /** Responses by status. */
  readonly answers: Readonly<Record<string, number>>;
  readonly connects: number;
  readonly seconds: number;
}

const bodyBytes = 10_000_000;
const flood = JSON.parse(process.argv[2] ?? '') as Flood;
const head = `${flood.request} HTTP/1.1\r\nhost: 127.0.0.1\r\n${Object.entries(flood.headers ?? {})
  .map(([name, value]) => `${name}: ${value}\r\n`)
  .join('')}`;
const request = `${head}\r\n`;
/** Requests written at once, if they do not wait for responses. */
const batch = 1_000;
const many = request.repeat(batch);
const body = Buffer.alloc(1_000_000, 'x');

const answers: Record<string, number> = {};
let sent = 0;
let connects = 0;
const began = performance.now();
const lastMs = 3 * flood.seconds * 1000;
const isOver = (): boolean => {
  const ms = performance.now() - began;
  return ms > lastMs || (ms > flood.seconds * 1000 && sent >= flood.total);
};

await Promise.all(Array.from({ length: flood.connections }, () => one()));
const seconds = (performance.now() - began) / 1000;
process.stdout.write(`${JSON.stringify({ sent, answers, connects, seconds } satisfies Flooded)}\n`);
process.exit(0);

async function one(): Promise<void> {
  while (!isOver()) {
    connects += 1;
    await connection(connect(flood.port, '127.0.0.1'));
  }
}

function connection(socket: Socket): Promise<void> {
  let tail = '';
  return new Promise((resolve) => {
    const timer = setInterval(() => isOver() && socket.destroy(), 200);
    socket.once('close', () => {
      clearInterval(timer);
      resolve();
    });
    socket.on('error', () => undefined);
    socket.setNoDelay(true);
    socket.once('connect', () => begin(socket));
    if (flood.kind === 'slow') return;
    socket.on('data', (part: Buffer) => {
      // Statuses only: the end of one chunk may contain the start of a status line.
      const text = tail + part.toString('latin1');
      let last = 0;
      for (const match of text.matchAll(/HTTP\/1\.1 (\d{3}) /g)) {
        answers[match[1] ?? ''] = (answers[match[1] ?? ''] ?? 0) + 1;
        last = match.index + match[0].length;
        if (flood.kind === 'sequential' && !isOver() && !/\r\nconnection: close\r\n/i.test(text)) ask(socket);
        if (flood.kind === 'connections') socket.destroy();
      }
      tail = text.slice(Math.max(last, text.length - 12));
      if (isOver() && flood.kind !== 'pipelined') socket.end();
    });
  });
}

function begin(socket: Socket): void {
  switch (flood.kind) {
    case 'pipelined':
      pipeline(socket);
      return;
    case 'bodies':
      sent += 1;
      socket.write(`${head}content-type: application/json\r\ncontent-length: ${bodyBytes}\r\n\r\n`);
      pour(socket, bodyBytes);
      return;
    case 'idle':
      sent += 1;
      socket.write(head);
      return;
    default:
      ask(socket);
  }
}

function ask(socket: Socket): void {
  sent += 1;
  socket.write(request);
}

/** Writes as fast as the connection accepts data. */
function pipeline(socket: Socket): void {
  while (!isOver() && !socket.destroyed) {
    // Counts only requests that the kernel accepted: a write fails if the server has closed the
    // connection.
    const counted = (error?: Error | null): void => void (sent += error ? 0 : batch);
    if (!socket.write(many, counted)) {
      socket.once('drain', () => pipeline(socket));
      return;
    }
  }
  socket.end();
}

function pour(socket: Socket, left: number): void {
  if (left <= 0 || socket.destroyed) return;
  socket.write(body.subarray(0, left), () => pour(socket, left - body.length));
}
