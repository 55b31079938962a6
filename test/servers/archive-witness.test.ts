/** The protocol of witnesses against litewitness of filippo.io/torchwood, which is independent of Waybill. */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { createHash, createPublicKey } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { DirectoryStore } from '../../src/archive/directory-store.ts';
import { formatVerifier, parseVerifier, signerOf } from '../../src/archive/signed-note.ts';
import { verifyArchive } from '../../src/archive/verify/verify.ts';
import { Secret } from '../../src/settings/secret.ts';
import { archive } from '../../src/sink/archive/index.ts';
import type { Sink } from '../../src/model/sink.ts';
import { keyFrom } from '../support/archive.ts';
import { publicKeyIn, publicKeyPath } from '../support/archive-files.ts';
import { hasPython, verifyWithPython } from '../support/second-verifier.ts';
import { cacheFolder, notAsked } from '../support/servers/programs.ts';
import { batchOf, contextOf, messages, ModelKept } from '../support/sinks/sink-batches.ts';

const program = join(cacheFolder(), 'litewitness-0.6.1/litewitness');
const hasAgent = spawnSync('ssh-add', ['-h']).error === undefined;
const missing =
  notAsked() ??
  (!existsSync(program) ? `no ${program}: test/servers/install.sh litewitness builds it` : hasAgent ? undefined : 'no ssh-agent');
const never = new AbortController().signal;

/** A private key as OpenSSH reads it: ssh-add refuses PKCS #8 with Ed25519. */
function opensshKey(seed: number): string {
  const text = (bytes: Uint8Array | string): Buffer => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(Buffer.byteLength(bytes));
    return Buffer.concat([length, Buffer.from(bytes)]);
  };
  const raw = createPublicKey(keyFrom(seed)).export({ format: 'der', type: 'spki' }).subarray(-32);
  const open = Buffer.concat([text('ssh-ed25519'), text(raw)]);
  const secret = Buffer.concat([Buffer.alloc(8), open, text(Buffer.concat([Buffer.alloc(32, seed), raw])), text('')]);
  const padding = Buffer.from(Array.from({ length: (8 - (secret.length % 8)) % 8 }, (_, i) => i + 1));
  const parts = [Buffer.from('openssh-key-v1\0'), text('none'), text('none'), text(''), Buffer.of(0, 0, 0, 1), text(open)];
  const body = Buffer.concat([...parts, text(Buffer.concat([secret, padding]))]).toString('base64');
  return `-----BEGIN OPENSSH PRIVATE KEY-----\n${body.replace(/.{70}/g, '$&\n')}\n-----END OPENSSH PRIVATE KEY-----\n`;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}

// promise: litewitness, another implementation of a witness, cosigns an archive and refuses an archive with two histories.
test('litewitness cosigns an archive, and both verifiers accept it; it refuses another history', async ({ skip }) => {
  if (missing !== undefined) return skip(missing);
  const folder = mkdtempSync(join(tmpdir(), 'waybill-litewitness-'));
  const [socket, database] = [join(folder, 'agent'), join(folder, 'db')];
  const agent = spawn('ssh-agent', ['-D', '-a', socket], { stdio: 'ignore' });
  const directory = join(folder, 'archive');
  const signingKey = new Secret(keyFrom(1).export({ format: 'pem', type: 'pkcs8' }).toString());
  const kept = new ModelKept();
  const send = async (sink: Sink, from: number, to: number): Promise<void> => {
    const batch = batchOf(messages(from, to));
    kept.acknowledge(batch, (await sink.send(batch, never)).resumeNote);
  };
  const opened = (place: string, witnesses: { url: string; key: string }[]): Promise<Sink> =>
    archive.open({ directory: place, signingKey, witnesses }, contextOf('archive', { format: 'raw' }), kept, never);
  {
    await using sink = await opened(directory, []);
    await send(sink, 1, 300);
  }
  execFileSync('cp', ['-r', directory, `${directory}-copy`]);
  const copied = Object.assign(new ModelKept(), { position: kept.position, resumeNote: kept.resumeNote });
  // What `witnessctl add-log` and `add-key` write. That program of the same module needs a module that is not available everywhere.
  const [origin = ''] = publicKeyIn(directory).split('+');
  const db = new Database(database);
  db.exec('CREATE TABLE log (origin TEXT PRIMARY KEY, tree_size INTEGER NOT NULL, tree_hash TEXT NOT NULL)');
  db.exec('CREATE TABLE key (origin TEXT NOT NULL, key TEXT NOT NULL, FOREIGN KEY(origin) REFERENCES log(origin))');
  db.prepare('INSERT INTO log VALUES (?, 0, ?)').run(origin, createHash('sha256').digest('base64'));
  db.prepare('INSERT INTO key VALUES (?, ?)').run(origin, publicKeyIn(directory).trim());
  db.close();
  writeFileSync(join(folder, 'key'), opensshKey(9), { mode: 0o600 });
  await expect.poll(() => existsSync(socket)).toBe(true);
  execFileSync('ssh-add', [join(folder, 'key')], { env: { ...process.env, SSH_AUTH_SOCK: socket }, stdio: 'pipe' });
  const fingerprint =
    execFileSync('ssh-add', ['-l'], { env: { ...process.env, SSH_AUTH_SOCK: socket }, encoding: 'utf8' }).split(' ')[1] ?? '';
  const port = await freePort();
  const name = 'witness.example/lite';
  const args = ['-db', database, '-ssh-agent', socket, '-name', name, '-key', fingerprint, '-listen', `127.0.0.1:${port}`];
  const witness = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '';
  witness.stderr.setEncoding('utf8').on('data', (text: string) => (log += text));
  try {
    await expect
      .poll(() =>
        fetch(`http://127.0.0.1:${port}/`).then(
          () => 'listens',
          () => log,
        ),
      )
      .toBe('listens');
    const verifier = signerOf(name, keyFrom(9), 4);
    const access = { url: `http://127.0.0.1:${port}`, key: formatVerifier(verifier) };
    const report = async (): Promise<unknown> =>
      verifyArchive(new DirectoryStore(directory), [parseVerifier(publicKeyIn(directory)) ?? expect.unreachable()], {
        cosignatures: { witnesses: [verifier], quorum: 1 },
      });
    for (const [first, last, lines] of [
      [301, 310, 301],
      [311, 900, 312],
      [901, 910, 903],
    ] as const) {
      // Each opening cosigns the newest checkpoint, with a proof from the one that was cosigned at the opening before.
      await using sink = await opened(directory, [access]);
      await expect
        .poll(() => sink.cosignatures?.[0], { timeout: 10_000 })
        .toMatchObject({ lastError: undefined, newest: expect.any(Number) as number });
      await expect
        .poll(report, { timeout: 10_000 })
        .toMatchObject({ result: 'intact', findings: [{ severity: 'note', object: 'segments/' }], cosignatures: { witnesses: 1, lines } });
      await send(sink, first, last);
    }
    writeFileSync(join(folder, 'witness.pub'), `${access.key}\n`);
    const place = ['--directory', directory, '--key', publicKeyPath(directory)];
    if (hasPython) expect(verifyWithPython(...place, '--witness', join(folder, 'witness.pub'))).toMatchObject({ code: 0 });

    // The copy continues with other lines: longer than what was cosigned.
    Object.assign(kept, { position: copied.position, resumeNote: copied.resumeNote });
    {
      await using sink = await opened(`${directory}-copy`, []);
      await send(sink, 301, 2_000);
    }
    await using sink = await opened(`${directory}-copy`, [access]);
    await expect.poll(() => sink.cosignatures?.[0]?.lastError, { timeout: 10_000 }).toMatch(/status 422/);
  } finally {
    for (const child of [witness, agent]) {
      const ended = once(child, 'close');
      child.kill();
      await ended;
    }
    rmSync(folder, { recursive: true });
  }
});
