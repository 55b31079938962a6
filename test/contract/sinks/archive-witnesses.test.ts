/** The sink `archive` with witnesses: cosignatures of `waybill archive witness`, and of servers that hang, lie or refuse. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { checkpointPath } from '../../../src/archive/checkpoint.ts';
import { cosignatureLine, formatVerifier, openNote, parseVerifier, signerOf, signNote } from '../../../src/archive/signed-note.ts';
import type { Verifier } from '../../../src/archive/signed-note.ts';
import { WitnessClient } from '../../../src/archive/witness/client.ts';
import type { Log } from '../../../src/model/telemetry.ts';
import { Secret } from '../../../src/settings/secret.ts';
import { archive } from '../../../src/sink/archive/index.ts';
import { ArchiveSink } from '../../../src/sink/archive/sink.ts';
import { keyFrom, MemoryStore, seededBytes } from '../../support/archive.ts';
import { publicKeyIn } from '../../support/archive-files.ts';
import { isLong } from '../../support/long-run.ts';
import { temporary } from '../../support/model-journal.ts';
import { batchOf, contextOf, messages, ModelKept } from '../../support/sinks/sink-batches.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { startServer, startWitness } from '../../support/witness.ts';

const never = new AbortController().signal;
const minute = 60_000;
const name = 'witness.example/w9';
const signer = signerOf(name, keyFrom(9), 4);
const now = (): number => Math.floor(Date.now() / 1000);
const verifierOf = (key: string): Verifier => parseVerifier(key, 4) ?? expect.unreachable(key);
/** The text of the checkpoint in a request, and its note. */
const checkpointIn = (body: string): string => body.slice(body.indexOf('\n\n') + 2).replace(/\n\u2014[^]*$/, '');

class Rig {
  readonly store: MemoryStore;
  readonly kept = new ModelKept();
  readonly clock = new VirtualClock(Date.now(), 'manual');
  readonly events: string[] = [];
  constructor(store = new MemoryStore()) {
    this.store = store;
  }

  /** @param witnesses  address and key of each; default the key of `signer` */
  async open(witnesses: readonly { readonly url: string; readonly key?: string }[], requestMs = 30_000): Promise<ArchiveSink> {
    const log: Log = { write: (...[event]) => void this.events.push(event) };
    const clients = witnesses.map(
      ({ url, key = formatVerifier(signer) }, i) =>
        new WitnessClient({ url, key: verifierOf(key) }, { setting: `sinks.archive.witnesses[${i}]`, requestMs }),
    );
    const target = { name: 'memory', store: this.store, key: keyFrom(1), random: seededBytes('rig'), witnesses: clients };
    return ArchiveSink.open(target, contextOf('archive', { format: 'raw', clock: this.clock, log }), this.kept);
  }

  async send(sink: ArchiveSink, from: number, through = from): Promise<void> {
    const batch = batchOf(messages(from, through));
    this.kept.acknowledge(batch, (await sink.send(batch, never)).resumeNote);
  }

  get cosignatures(): string[] {
    return [...this.store.files.keys()].filter((path) => path.startsWith('cosignatures/')).sort();
  }

  /** The public key of the archive. */
  get key(): string {
    return [...this.store.files].find(([path]) => path.startsWith('keys/'))?.[1].toString() ?? '';
  }

  text(path: string): string {
    return this.store.files.get(path)?.toString() ?? '';
  }
}

/** An archive of 301 lines with its first checkpoint, so that its public key is known. */
async function begun(): Promise<Rig> {
  const rig = new Rig();
  await using sink = await rig.open([]);
  await rig.send(sink, 1, 300);
  return rig;
}

describe('a checkpoint', () => {
  test('is cosigned by the witness, which stores it: the cosignature is in the archive and at the witness', async () => {
    const rig = await begun();
    await using witness = await startWitness({ folder: temporary(), archives: [rig.key], isNew: true });
    await using sink = await rig.open([witness]);
    await expect.poll(() => rig.cosignatures).toEqual([`cosignatures/0000000001-${witness.key.split('+')[1] ?? ''}`]);
    const [path = ''] = rig.cosignatures;
    expect(rig.text(path).startsWith(rig.text(checkpointPath(1)))).toBe(true);
    const opened = openNote(Buffer.from(rig.text(path)), [verifierOf(witness.key)]);
    expect(opened).toMatchObject({ cosignedBy: [{ time: expect.any(Number) as number }] });
    expect(sink.cosignatures).toMatchObject([{ witness: name, lastError: undefined }]);
    expect(Math.abs((sink.cosignatures?.[0]?.newest ?? 0) / 1e6 - now())).toBeLessThan(60);
    const origin = rig.text(path).split('\n')[0] ?? '';
    const held = await fetch(`${witness.url}/${createHash('sha256').update(origin).digest('hex')}/checkpoint`);
    expect(await held.text()).toBe(rig.text(path));
  });

  test('is cosigned at most once a minute, and then the newest one, also after a restart of either side', async ({ skip }) => {
    skip(!isLong, 'npm run test:long runs it');
    const rig = await begun();
    const folder = temporary();
    const parts = { folder, archives: [rig.key] };
    let witness = await startWitness({ ...parts, isNew: true });
    let sink = await rig.open([witness]);
    const numbers = (): number[] => rig.cosignatures.map((path) => Number(path.slice(13, 23)));
    await expect.poll(numbers).toEqual([1]);
    for (let seq = 301; seq < 310; seq += 1) await rig.send(sink, seq);
    await rig.clock.advance(minute - 1);
    expect(numbers()).toEqual([1]);
    await rig.clock.advance(1);
    await expect.poll(numbers).toEqual([1, 10]);
    await sink[Symbol.asyncDispose]();
    await witness.kill();
    witness = await startWitness({ ...parts, port: Number(new URL(witness.url).port) });
    sink = await rig.open([witness]);
    expect(sink.cosignatures?.[0]?.newest).toBeGreaterThan(0);
    // More than 256 leaves lie between: the proof needs tiles of two levels.
    await rig.send(sink, 310, 900);
    await expect.poll(numbers).toEqual([1, 10, 11]);
    expect(witness.stderr()).toBe('');
    await sink[Symbol.asyncDispose]();
    await witness[Symbol.asyncDispose]();
  });

  test('that the witness cosigned before a kill, and that the archive has not stored, is cosigned again', async () => {
    const rig = await begun();
    await using witness = await startWitness({ folder: temporary(), archives: [rig.key], isNew: true });
    {
      await using sink = await rig.open([witness]);
      expect(sink.cosignatures).toHaveLength(1);
      await expect.poll(() => rig.cosignatures).toHaveLength(1);
    }
    const [path = ''] = rig.cosignatures;
    rig.store.files.delete(path);
    await using sink = await rig.open([witness]);
    await expect.poll(() => rig.cosignatures).toEqual([path]);
    await rig.send(sink, 301);
    await rig.clock.advance(minute);
    await expect.poll(() => rig.cosignatures).toHaveLength(2);
    expect(rig.events).toEqual(['archive.cosigned', 'archive.cosigned', 'archive.cosigned']);
  });
});

describe('a witness refuses', () => {
  test('an archive that was set back, and one that has two histories; it says so, and the sink too', async () => {
    const rig = await begun();
    const copy = new MemoryStore(rig.store.files);
    await using witness = await startWitness({ folder: temporary(), archives: [rig.key], isNew: true });
    {
      await using sink = await rig.open([]);
      await rig.send(sink, 301, 310);
    }
    {
      await using sink = await rig.open([witness]);
      await expect.poll(() => sink.cosignatures?.[0]?.newest).toBeDefined();
    }
    // The copy from before, continued: first shorter than what was cosigned, then longer.
    const other = new Rig(copy);
    other.kept.acknowledge(batchOf(messages(1, 300)), undefined);
    await using sink = await other.open([witness]);
    await expect
      .poll(() => sink.cosignatures?.[0]?.lastError)
      .toMatch(/it has cosigned 312 lines, and this archive has 301: the archive was set back/);
    await other.send(sink, 301, 400);
    await other.clock.advance(minute);
    await expect
      .poll(() => sink.cosignatures?.[0]?.lastError)
      .toMatch(/status 422 \(this checkpoint does not extend the one that it cosigned before\)/);
    expect(other.cosignatures).toEqual([]);
    expect(witness.stderr()).toMatch(/^refused: "waybill\/.*" has 301 lines, fewer than the 312 that were cosigned/);
    expect(witness.stderr()).toMatch(/^refused: "waybill\/.*" has 402 lines, but no proof that they extend the 312 that were cosigned/m);
  });

  test('what anyone may send: it stores no signature that it did not check, and calls only two roots of one size two histories', async () => {
    const rig = await begun();
    await using witness = await startWitness({ folder: temporary(), archives: [rig.key], isNew: true });
    const note = rig.text('checkpoint');
    const [origin = '', size = '', root = ''] = note.split('\n');
    const ask = async (sent: string, old: string, ...proof: readonly string[]): Promise<number> => {
      const body = [`old ${old}`, ...proof, '', sent].join('\n');
      return (await fetch(`${witness.url}/add-checkpoint`, { method: 'POST', body })).status;
    };
    // An auditor who knows the key of this line would find the checkpoint altered.
    const wrong = cosignatureLine('another text\n', signerOf('witness.example/w5', keyFrom(5), 4), now());
    expect(await ask(`${note}${wrong.repeat(50)}`, '0')).toBe(200);
    const served = await fetch(`${witness.url}/${createHash('sha256').update(origin).digest('hex')}/checkpoint`);
    expect((await served.text()).match(/(?<=^\u2014 )\S+/gm)).toEqual([origin, 'witness.example/w9']);

    expect([await ask(note, '0'), await ask(note, size, root)]).toEqual([409, 422]);
    expect(witness.stderr()).toBe('');
    const other = signNote(`${origin}\n${size}\n${Buffer.alloc(32).toString('base64')}\n`, [signerOf(origin, keyFrom(1))]);
    expect(await ask(other, size)).toBe(422);
    expect(witness.stderr()).toMatch(/^refused: "waybill\/.*" has two histories: the root of its 301 lines differs .*\u2014 waybill/);
  });

  test('an archive whose key it does not know', async ({ skip }) => {
    skip(!isLong, 'npm run test:long runs it');
    const rig = await begun();
    const origin = rig.key.split('+')[0] ?? '';
    const folder = temporary();
    await using foreign = await startWitness({ folder, archives: [formatVerifier(signerOf('waybill/other', keyFrom(1)))], isNew: true });
    await using former = await startWitness({
      ...{ folder: temporary(), archives: [formatVerifier(signerOf(origin, keyFrom(2)))], isNew: true, seed: 8 },
    });
    await using sink = await rig.open([foreign, former]);
    await expect
      .poll(() => sink.cosignatures?.map(({ lastError }) => /status (\d+) \(it does not know/.exec(lastError ?? '')?.[1]))
      .toEqual(['404', '403']);
  });

  test('to begin without its state, to use the state of another key, and to begin twice', async ({ skip }) => {
    skip(!isLong, 'npm run test:long runs it');
    const rig = await begun();
    const folder = temporary();
    const parts = { folder, archives: [rig.key] };
    await expect(startWitness(parts)).rejects.toThrow(/there is no such file; .* create it once with --new/);
    await using witness = await startWitness({ ...parts, isNew: true });
    await using sink = await rig.open([witness]);
    await expect.poll(() => sink.cosignatures?.[0]?.newest).toBeDefined();
    await expect(startWitness(parts)).rejects.toThrow(/another witness uses it/);
    await expect(startWitness({ ...parts, isNew: true })).rejects.toThrow(/it exists; leave out --new/);
    await witness.kill();
    await expect(startWitness({ ...parts, seed: 7 })).rejects.toThrow(/it has a checkpoint that this key did not cosign/);
  });
});

/** Answers of a server in place of the witness, and what `status` says. The cosigned text is in `body`. */
const hostile: readonly (readonly [string, (body: string, response: import('node:http').ServerResponse) => void, RegExp])[] = [
  ['hangs before its response', () => undefined, /no complete response within 3 s/],
  ['hangs in its response', (_, response) => void response.writeHead(200).write('\u2014 '), /no complete response within 3 s/],
  ['sends without an end', (_, response) => void response.end('x'.repeat(70_000)), /more than 65536 bytes/],
  ['closes the connection', (_, response) => void response.destroy(), /cannot reach/],
  ['answers 500', (_, response) => void response.writeHead(500).end('down\u001b[2J'), /status 500: "down\\u001b\[2J"/],
  ['answers 409 without a size', (_, response) => void response.writeHead(409).end('1\n'), /status 409/],
  [
    'says another size each time',
    (body, response) =>
      void response.writeHead(409, { 'content-type': 'text/x.tlog.size' }).end(body.startsWith('old 0\n') ? '7\n' : '8\n'),
    /it says that it has cosigned 7 lines, and then that it has cosigned 8/,
  ],
  [
    'says a size above the archive',
    (_, response) => void response.writeHead(409, { 'content-type': 'text/x.tlog.size' }).end('999999\n'),
    /it has cosigned 999999 lines, and this archive has 301/,
  ],
  [
    'signs with another key',
    (body, response) => void response.end(cosignatureLine(checkpointIn(body), signerOf(name, keyFrom(8), 4), now())),
    /no valid cosignature by "witness.example\/w9"/,
  ],
  [
    'signs another text',
    (_, response) => void response.end(cosignatureLine('waybill/other\n1\nAAAA\n', signer, now())),
    /no valid cosignature by "witness.example\/w9"/,
  ],
  ['signs nothing', (_, response) => void response.end(), /no valid cosignature/],
  [
    'signs a time of tomorrow',
    (body, response) => void response.end(cosignatureLine(checkpointIn(body), signer, now() + 86_400)),
    /its cosignature has the time .*, more than 1 h away from the clock of this machine/,
  ],
  [
    'signs a time of yesterday',
    (body, response) => void response.end(cosignatureLine(checkpointIn(body), signer, now() - 86_400)),
    /its cosignature has the time .*, more than 1 h away from the clock of this machine/,
  ],
  ['redirects', (_, response) => void response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(), /status 302/],
];

describe('a server in place of a witness', () => {
  test.each(hostile)('that %s stores nothing and holds nothing; status says so, and the next answer counts', async (_, answer, error) => {
    const rig = await begun();
    let isHostile = true;
    await using server = await startServer((body, response) => {
      if (isHostile) answer(body, response);
      else response.end(cosignatureLine(checkpointIn(body), signer, now()));
    });
    await using sink = await rig.open([server], 3_000);
    await rig.send(sink, 301);
    await rig.send(sink, 302);
    await expect.poll(() => sink.cosignatures?.[0]?.lastError).toMatch(error);
    expect(rig.cosignatures).toEqual([]);
    expect(rig.events).toEqual(['archive.cosign_failed']);
    const before = server.requests.length;
    expect(before).toBeLessThanOrEqual(2);
    await rig.clock.advance(minute - 1);
    expect(server.requests).toHaveLength(before);
    isHostile = false;
    await rig.clock.advance(1);
    await expect.poll(() => rig.cosignatures).toEqual([`cosignatures/0000000003-${signer.id.toString('hex')}`]);
    expect(sink.cosignatures).toMatchObject([{ witness: name, lastError: undefined }]);
  });

  test('is asked again after 1, 2, 4, 8 minutes, and then every quarter of an hour', async () => {
    const rig = await begun();
    await using server = await startServer((_, response) => void response.writeHead(500).end());
    await using sink = await rig.open([server]);
    await rig.send(sink, 301);
    for (const [i, minutes] of [1, 2, 4, 8, 15, 15].entries()) {
      await expect.poll(() => rig.events).toHaveLength(i + 1);
      await rig.clock.advance(minutes * minute - 1);
      expect(server.requests).toHaveLength(i + 1);
      await rig.clock.advance(1);
    }
  });

  test('does not delay the end of the sink', async () => {
    const rig = await begun();
    await using server = await startServer(() => undefined);
    const sink = await rig.open([server]);
    await rig.send(sink, 301);
    await expect.poll(() => server.requests).toHaveLength(1);
    await sink[Symbol.asyncDispose]();
    expect(rig.events).toEqual([]);
  });

  test('may add lines of other keys, which are ignored', async () => {
    const rig = await begun();
    const line = (body: string, seed: number): string =>
      cosignatureLine(checkpointIn(body), signerOf(`witness.example/w${seed}`, keyFrom(seed), 4), now());
    await using server = await startServer((body, response) => void response.end(`${line(body, 5)}${line(body, 9)}${line(body, 6)}`));
    await using sink = await rig.open([server]);
    await rig.send(sink, 301);
    await expect.poll(() => rig.cosignatures).toHaveLength(1);
    expect(rig.text(rig.cosignatures[0] ?? '').match(/^\u2014 witness/gm)).toHaveLength(1);
  });
});

test('check asks each witness about the newest checkpoint', async () => {
  const directory = join(temporary(), 'archive');
  const signingKey = new Secret(keyFrom(1).export({ format: 'pem', type: 'pkcs8' }).toString());
  const checked = async (...witnesses: { url: string; key: string }[]): Promise<unknown[]> =>
    (await archive.check({ directory, signingKey, witnesses }, contextOf('archive', { format: 'raw' }), never)).slice(1);
  await using refusing = await startServer((_, response) => void response.writeHead(403).end('unknown log\n'));
  const other = { url: refusing.url, key: formatVerifier(signer) };
  expect(await checked(other)).toMatchObject([
    { level: 'warning', message: 'witness "witness.example/w9" is not checked: there is no checkpoint yet' },
  ]);
  {
    await using sink = await archive.open({ directory, signingKey }, contextOf('archive', { format: 'raw' }), new ModelKept(), never);
    await sink.send(batchOf(messages(1, 3)), never);
  }
  await using witness = await startWitness({ folder: temporary(), archives: [publicKeyIn(directory)], isNew: true });
  expect((await checked(witness, other)).slice(1)).toMatchObject([
    { level: 'ok', message: 'witness "witness.example/w9" knows this archive' },
    { level: 'error', setting: 'sinks.archive.witnesses[1]', message: expect.stringContaining('does not know the public key') as string },
  ]);
  expect((await checked(witness)).slice(1)).toMatchObject([
    { level: 'ok', message: 'witness "witness.example/w9" knows this archive: it has cosigned 4 lines' },
  ]);
  expect(readFileSync(join(directory, 'checkpoint'), 'utf8')).not.toContain('witness.example');
  await using ahead = await startServer(
    (_, response) => void response.writeHead(409, { 'content-type': 'text/x.tlog.size' }).end('9999\n'),
  );
  expect((await checked({ url: ahead.url, key: formatVerifier(signer) })).slice(1)).toMatchObject([
    {
      level: 'error',
      message: expect.stringContaining('has cosigned 9999 lines, and this archive has 4: the archive was set back') as string,
    },
  ]);
});
