/** Witnesses of archives: `waybill archive witness` as a process, and servers that break the protocol. */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { keyFrom } from './archive.ts';
import { waybillProgram } from './programs.ts';

export interface RunningWitness extends AsyncDisposable {
  readonly url: string;
  /** Its public key, as it prints it. */
  readonly key: string;
  readonly stderr: () => string;
  /** SIGKILL. */
  kill(): Promise<void>;
}

interface WitnessParts {
  readonly folder: string;
  /** Public keys of archives. */
  readonly archives: readonly string[];
  readonly state?: string;
  readonly isNew?: boolean;
  readonly seed?: number;
  readonly port?: number;
}

/** The process listens when this returns. @throws an error with what it printed if it ends before */
export async function startWitness({
  folder,
  archives,
  state = join(folder, 'witness.state'),
  isNew = false,
  seed = 9,
  port = 0,
}: WitnessParts): Promise<RunningWitness> {
  const [signingKey, keys] = [join(folder, `witness-${seed}.pem`), join(folder, `archives-${randomUUID()}`)];
  writeFileSync(signingKey, keyFrom(seed).export({ format: 'pem', type: 'pkcs8' }));
  writeFileSync(keys, archives.map((key) => `${key.trim()}\n`).join(''));
  const files = ['--signing-key', signingKey, '--key', keys, '--state', state];
  const args = ['archive', 'witness', '--name', `witness.example/w${seed}`, ...files, '--listen', `127.0.0.1:${port}`];
  const child = spawn(process.execPath, [waybillProgram, ...args, ...(isNew ? ['--new'] : [])], { stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = once(child, 'close');
  let [out, err] = ['', ''];
  child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text));
  const listening = new Promise<string>((resolve) => {
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      const url = /^listening on (.*)$/m.exec((out += text))?.[1];
      if (url !== undefined) resolve(url);
    });
  });
  const url = await Promise.race([listening, ended.then(() => undefined)]);
  if (url === undefined) throw new Error(`the witness ended: ${err}`);
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    child.kill(signal);
    await ended;
  };
  return {
    ...{ url, key: /^witness key: (.*)$/m.exec(out)?.[1] ?? '', stderr: () => err },
    kill: () => end('SIGKILL'),
    [Symbol.asyncDispose]: () => end('SIGTERM'),
  };
}

/** A server that answers `add-checkpoint` as the test says. */
export async function startServer(
  answer: (body: string, response: ServerResponse, request: IncomingMessage) => void,
): Promise<AsyncDisposable & { readonly url: string; readonly requests: string[] }> {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString();
      requests.push(body);
      answer(body, response, request);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    ...{ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
