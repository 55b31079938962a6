/**
 * The reference service as a program, with its control port: its records, its switches, and records
 * that the test adds. This file imports no code of the service.
 */
import type { ChildProcess } from 'node:child_process';
import { inject } from 'vitest';
import { endOf, question } from './e2e-place.ts';
import type { Place } from './e2e-place.ts';
import { referenceProgram } from './programs.ts';

/** The line that the service prints when it listens. It has an OAuth client for each role. */
interface ServiceLine {
  readonly baseUrl: string;
  readonly authUrl: string;
  readonly tenantId: string;
  readonly scopeAddress: string;
  readonly subscriptionKey: string;
  readonly ca: string;
  readonly control: string;
  readonly clients: readonly { readonly clientId: string; readonly clientSecret: string; readonly roles: readonly string[] }[];
}

interface Stats {
  /** By endpoint and status. */
  readonly requests: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly faults: Readonly<Record<string, number>>;
  readonly records: { readonly visible: number; readonly total: number };
}

export class Service {
  readonly line: ServiceLine;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, line: ServiceLine) {
    this.#child = child;
    this.line = line;
  }

  /** Starts it with these options, and resolves when it listens. */
  static async start(place: Place, ...options: string[]): Promise<Service> {
    const child = place.spawn([referenceProgram, '--json', '--tls-dir', inject('tlsDir'), ...options]);
    let output = '';
    child.stderr?.on('data', (part: Buffer) => (output += part.toString()));
    const line = await new Promise<string>((resolve, reject) => {
      let out = '';
      child.stdout?.on('data', (part: Buffer) => {
        out += part.toString();
        if (out.endsWith('\n')) resolve(out);
      });
      child.once('close', (code) => reject(new Error(`the reference service ended with ${code ?? 'a signal'}: ${output}`)));
    });
    return new Service(child, JSON.parse(line) as ServiceLine);
  }

  client(role: string): ServiceLine['clients'][number] {
    const client = this.line.clients.find(({ roles }) => roles.includes(role));
    if (!client) throw new Error(`the reference service has no client for ${role}`);
    return client;
  }

  /** The exact texts of all visible records, oldest first. */
  async truth(): Promise<string[]> {
    const text = await (await this.#control('GET', '/truth')).text();
    return text.split('\n').filter((line) => line !== '');
  }

  async stats(): Promise<Stats> {
    return (await (await this.#control('GET', '/stats')).json()) as Stats;
  }

  async set(switches: Readonly<Record<string, unknown>>): Promise<void> {
    await this.#control('PATCH', '/switches', JSON.stringify(switches));
  }

  /** Adds records unchanged, one JSON text each. */
  async add(texts: readonly string[]): Promise<void> {
    await this.#control('POST', '/records', texts.join('\n'));
  }

  async stop(): Promise<void> {
    const ended = endOf(this.#child);
    this.#child.kill('SIGTERM');
    await ended;
  }

  async #control(method: string, path: string, body?: string): Promise<Response> {
    const url = `${this.line.control}${path}`;
    const answer = await (method === 'GET'
      ? question(url)
      : fetch(url, {
          method,
          // The other side may close an idle connection at the moment of its next use.
          headers: { connection: 'close' },
          ...(body !== undefined && { body }),
        }));
    if (!answer.ok) throw new Error(`${method} ${path} of the control port: ${answer.status} ${await answer.text()}`);
    return answer;
  }
}
