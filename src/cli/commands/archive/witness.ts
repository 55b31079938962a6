/** `waybill archive witness`: runs a witness that cosigns the checkpoints of archives. */
import { createPrivateKey } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { formatVerifier, signerOf, type Signer } from '../../../archive/signed-note.ts';
import { Witness } from '../../../archive/witness/witness.ts';
import { createServer } from '../../../connect/node-http.ts';
import { tryLock } from '../../../disk/lock.ts';
import { WaybillError, messageOf } from '../../../errors/errors.ts';
import { printable } from '../../../errors/escape.ts';
import { systemClock } from '../../../time/clock.ts';
import { subcommand } from '../../command.ts';
import { readAbortable, type Io } from '../../io.ts';
import { parsed, required, text, toggle, withDefault, type ValuesOf } from '../../option.ts';
import { keyOption, keysOf } from './place.ts';

const options = {
  name: required(
    parsed(
      'NAME',
      'name of the witness in its cosignatures, e.g. witness.example/audit',
      'a name without blanks and plus signs',
      (given) => (/^[^\p{White_Space}\p{Cc}+]+$/u.test(given) ? given : undefined),
    ),
  ),
  'signing-key': required(text('FILE', 'Ed25519 private key of the witness, in PEM')),
  key: { ...keyOption.key, help: 'public keys of the archives to cosign, one name+id+base64 a line; may be repeated' },
  state: required(text('FILE', 'what the witness has cosigned: it must never be lost or set back')),
  new: toggle('create the file of --state: only for a witness that has not cosigned anything'),
  listen: withDefault(
    parsed('ADDRESS', 'address for HTTP', 'an address such as 127.0.0.1:9465 or [::]:9465', (given) => {
      const url = URL.parse(`http://${given}`);
      return url?.host === given && /:\d+$/.test(given)
        ? { host: url.hostname.replace(/^\[|\]$/g, ''), port: Number(url.port || 80) }
        : undefined;
    }),
    '127.0.0.1:9465',
  ),
};

type Values = ValuesOf<typeof options>;

export const witness = subcommand({
  summary: 'runs a witness: it cosigns each checkpoint that extends the last one, so that nobody can set an archive back or show two',
  options,
  run,
});

/** A request has at most 63 hashes and a checkpoint. */
const maxBodyBytes = 65_536;
const limits = { maxHeaderSize: 16_384, headersTimeout: 5_000, requestTimeout: 10_000, connectionsCheckingInterval: 1_000 };
/** Each holds at most the bytes of a request. */
const maxConnections = 200;

async function run(values: Values, io: Io): Promise<number> {
  const { state, listen } = values;
  const archives = await keysOf(values.key, io.signal);
  const signer = await signerIn(values['signing-key'], values.name, io.signal);
  if (values.new && !(await Witness.createState(state)))
    throw new WaybillError('usage', `cannot create --state "${state}": it exists; leave out --new`);
  const lock = tryLock(`${state}.lock`);
  if (!lock) throw new WaybillError('usage', `cannot use --state "${state}": another witness uses it`);
  try {
    const witness = await Witness.open({ state, signer, archives, now: () => Math.floor(systemClock.now() / 1_000) });
    const server = createServer(limits, (request, response) => {
      answer(witness, request, response, io).catch((thrown: unknown) => {
        io.stderr.write(`error: ${printable(messageOf(thrown))}\n`);
        response.destroy();
      });
    });
    server.maxConnections = maxConnections;
    server.listen(listen);
    await once(server, 'listening').catch((cause: unknown) => {
      throw new WaybillError('usage', `cannot listen on --listen: ${messageOf(cause)}`, { cause });
    });
    const { address, family, port } = server.address() as AddressInfo;
    io.stdout.write(`witness key: ${formatVerifier(signer)}\n`);
    io.stdout.write(`listening on http://${family === 'IPv6' ? `[${address}]` : address}:${port}\n`);
    if (!io.signal.aborted) await once(io.signal, 'abort');
    server.closeAllConnections();
    server.close();
    await witness.idle();
    return 0;
  } finally {
    lock.close();
  }
}

async function signerIn(file: string, name: string, signal: AbortSignal): Promise<Signer> {
  const pem = await readAbortable(file, '--signing-key', signal);
  try {
    return signerOf(name, createPrivateKey(pem), 4);
  } catch (cause) {
    throw new WaybillError('usage', `cannot use --signing-key "${file}": ${messageOf(cause)}`, { cause });
  }
}

interface Reply {
  readonly status: number;
  readonly text: string;
  readonly type?: string | undefined;
}

async function answer(witness: Witness, request: IncomingMessage, response: ServerResponse, io: Io): Promise<void> {
  const { status, text, type = 'text/plain; charset=utf-8' } = await replyTo(witness, request, io);
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(text) }).end(text);
}

async function replyTo(witness: Witness, request: IncomingMessage, io: Io): Promise<Reply> {
  const [, hash] = /^\/([0-9a-f]{64})\/checkpoint$/.exec(request.url ?? '') ?? [];
  if (request.method === 'GET' && hash !== undefined) {
    const note = witness.checkpointOf(hash);
    return note === undefined ? { status: 404, text: 'no cosigned checkpoint\n' } : { status: 200, text: note };
  }
  if (request.url !== '/add-checkpoint') return { status: 404, text: 'not found\n' };
  if (request.method !== 'POST') return { status: 405, text: 'use POST\n' };
  const body = await bodyOf(request);
  if (!body) return { status: 413, text: `more than ${maxBodyBytes} bytes\n` };
  try {
    const { alarm, ...reply } = await witness.addCheckpoint(body);
    if (alarm !== undefined) io.stderr.write(`refused: ${printable(alarm)}\n`);
    return reply;
  } catch (thrown) {
    io.stderr.write(`error: cannot store what was cosigned, so it is not answered: ${printable(messageOf(thrown))}\n`);
    return { status: 500, text: 'the witness cannot store its state\n' };
  }
}

/** @returns undefined for a longer one */
async function bodyOf(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > maxBodyBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
