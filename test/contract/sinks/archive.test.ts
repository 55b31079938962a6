/**
 * The sink `archive`: the contract of every sink, and its own: one archive, one state, one writer.
 */
import { generateKeyPairSync } from 'node:crypto';
import { cpSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { DirectoryStore } from '../../../src/archive/directory-store.ts';
import type { LineRange } from '../../../src/archive/line.ts';
import { parseVerifier } from '../../../src/archive/signed-note.ts';
import { verifyArchive } from '../../../src/archive/verify/verify.ts';
import type { VerifyReport } from '../../../src/archive/verify/verify.ts';
import type { DeliveryResult, Message, ResumePoint, Sink } from '../../../src/model/sink.ts';
import { Secret } from '../../../src/settings/secret.ts';
import { archive } from '../../../src/sink/archive/index.ts';
import { ArchiveSink } from '../../../src/sink/archive/sink.ts';
import { archivedRecords, publicKeyIn } from '../../support/archive-files.ts';
import { keyFrom } from '../../support/archive.ts';
import { temporary } from '../../support/model-journal.ts';
import { batchOf, contextOf, message, messages, ModelKept, positionOf } from '../../support/sinks/sink-batches.ts';
import { sinkSuite } from '../../support/sinks/sink-suite.ts';
import type { Place } from '../../support/sinks/sink-suite.ts';
import { noting } from '../../support/telemetry/written-events.ts';

const never = new AbortController().signal;
const pem = keyFrom(1).export({ format: 'pem', type: 'pkcs8' }).toString();

function openAt(directory: string, kept: ResumePoint, key = pem): Promise<Sink> {
  return archive.open({ directory, signingKey: new Secret(key) }, contextOf('under-test', { format: 'raw' }), kept, never);
}

class ArchivePlace implements Place {
  readonly #folder = temporary();
  readonly #directory = join(this.#folder, 'archive');

  readonly open = (kept: ResumePoint): Promise<Sink> => openAt(this.#directory, kept);

  /** Abandons the object without closing it. */
  async kill(): Promise<void> {}

  received(): Promise<readonly string[]> {
    return Promise.resolve(archivedRecords(this.#directory));
  }

  ruin(): void {
    rmSync(this.#directory, { recursive: true, force: true });
    writeFileSync(this.#directory, 'a file');
  }

  [Symbol.asyncDispose](): Promise<void> {
    rmSync(this.#folder, { recursive: true, force: true });
    return Promise.resolve();
  }
}

function filesIn(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1));
}

sinkSuite({
  name: 'archive',
  formats: archive.formats,
  twice: () => 0,
  batches: 40,
  takesOnce: true,
  secrets: [pem, pem.split('\n')[1] ?? ''],
  start: () => Promise.resolve(new ArchivePlace()),
});

describe('an archive', () => {
  let folder: string;
  let directory: string;
  let kept: ModelKept;
  beforeEach(() => {
    folder = temporary();
    directory = join(folder, 'archive');
    kept = new ModelKept();
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  async function deliver(from: number, through: number): Promise<void> {
    await using sink = await openAt(directory, kept);
    const batch = batchOf(messages(from, through));
    kept.acknowledge(batch, (await sink.send(batch, never)).resumeNote);
  }

  /** Without the note that the records of these messages have no logId. */
  async function verified(): Promise<VerifyReport> {
    const key = parseVerifier(publicKeyIn(directory));
    if (!key) throw new Error(`no public key in ${directory}`);
    const report = await verifyArchive(new DirectoryStore(directory), [key]);
    return { ...report, findings: report.findings.filter(({ object }) => object !== 'segments/') };
  }

  test('verifies, and has the position of the journal', async () => {
    await deliver(1, 3);
    await deliver(4, 4);
    expect(await verified()).toMatchObject({ result: 'intact', checkpoints: 2, records: 4, findings: [] });
    await using sink = await openAt(directory, kept);
    expect((await sink.position?.(never))?.position).toEqual(positionOf(4));
  });

  test.each<[string, () => void]>([
    ['gone', () => rmSync(directory, { recursive: true })],
    ['an empty directory', () => rmSync(join(directory, 'checkpoints'), { recursive: true })],
  ])('that received records and is %s is not started again', async (_name, change) => {
    await deliver(1, 3);
    change();
    await expect(openAt(directory, kept)).rejects.toMatchObject({ code: 'archive_broken' });
  });

  test('of another state blocks the sink, until an operator adopts it: then a signed line names both journals', async () => {
    await deliver(1, 3);
    kept = new ModelKept('b'.repeat(32));
    kept.position = positionOf(10);
    await expect(openAt(directory, kept)).rejects.toMatchObject({ code: 'sink_blocked' });
    kept.adopt = true;
    await (await openAt(directory, kept))[Symbol.asyncDispose]();
    kept.adopt = false;
    await deliver(11, 12);
    const { result, records, findings } = await verified();
    expect({ result, records }).toEqual({ result: 'unproven', records: 5 });
    expect(findings).toMatchObject([{ severity: 'unproven', message: expect.stringContaining('b'.repeat(32)) as string }]);
  });

  test('that lacks entries of its journal is continued by an operator, and a signed line names them', async () => {
    await deliver(1, 3);
    // The sink was retired; when it returned, the journal no longer had the entries 4 to 10.
    Object.assign(kept, { position: positionOf(10), resumeNote: undefined, completeSince: message(11).time, adopt: true });
    await (await openAt(directory, kept))[Symbol.asyncDispose]();
    kept.adopt = false;
    await using sink = await openAt(directory, kept);
    expect((await sink.position?.(never))?.position).toEqual(positionOf(10));
    await deliver(11, 12);
    const { result, records, findings } = await verified();
    expect({ result, records }).toEqual({ result: 'unproven', records: 5 });
    expect(findings).toMatchObject([{ severity: 'unproven', message: expect.stringContaining('the entries 4 to 10') as string }]);
    expect(archivedRecords(directory, 'line').map((line) => JSON.parse(line) as object)).toMatchObject([
      ...[{}, {}, {}, { kind: 'position', after: 0, seq: 3 }, { kind: 'position', after: 10, seq: 10 }],
      ...[{}, {}, { kind: 'position', after: 10, seq: 12 }],
    ]);
  });

  test('that another sink wrote blocks the sink, until an operator adopts it: then it goes on after the last entry', async () => {
    await deliver(1, 3);
    const own = new ModelKept();
    const openOther = (): Promise<Sink> =>
      archive.open({ directory, signingKey: new Secret(pem) }, contextOf('other', { format: 'raw' }), own, never);
    await expect(openOther()).rejects.toMatchObject({
      code: 'sink_blocked',
      message: expect.stringContaining('the sink "under-test" wrote it up to entry 3; use another directory') as string,
    });
    own.adopt = true;
    await using sink = await openOther();
    const found = await sink.position?.(never);
    expect(found).toMatchObject({ position: positionOf(3), sink: 'under-test' });
    // The journal acknowledges the position, and removes the order.
    Object.assign(own, { position: positionOf(3), resumeNote: found?.resumeNote, adopt: false });
    await using again = await openOther();
    const batch = batchOf(messages(4, 5));
    own.acknowledge(batch, (await again.send(batch, never)).resumeNote);
    expect(await again.position?.(never)).toMatchObject({ position: positionOf(5), sink: 'other' });
    expect(await verified()).toMatchObject({ result: 'intact', records: 5, findings: [] });
    expect(archivedRecords(directory, 'line').map((line) => JSON.parse(line) as object)).toMatchObject([
      ...[{}, {}, {}, { kind: 'position', sink: 'under-test', seq: 3 }],
      ...[{}, {}, { kind: 'position', sink: 'other', after: 3, seq: 5 }],
    ]);
    // The first sink returns, at entry 3.
    await expect(openAt(directory, kept)).rejects.toMatchObject({ code: 'sink_blocked' });
  });

  const lines = (): Record<string, unknown>[] =>
    archivedRecords(directory, 'line').map((line) => JSON.parse(line) as Record<string, unknown>);
  const uidsIn = (): unknown[] => lines().flatMap(({ kind, uid }) => (kind === 'record' ? [uid] : []));
  /** The record of entry `seq`, which another state collected as another entry. */
  const again = (seq: number, as: number): Message => ({ ...message(seq), seq: as });
  async function adopt(): Promise<void> {
    kept.adopt = true;
    await (await openAt(directory, kept))[Symbol.asyncDispose]();
    kept.adopt = false;
  }
  async function send(...given: Message[]): Promise<DeliveryResult> {
    await using sink = await openAt(directory, kept);
    const batch = batchOf(given);
    const result = await sink.send(batch, never);
    kept.acknowledge(batch, result.resumeNote);
    return result;
  }

  // promise: An archive has each record once, also after a lost or restored state
  test('that is ahead of a restored state is continued once an operator adopts it, with what it lacks', async () => {
    await deliver(1, 3);
    await deliver(4, 6);
    const copy = { position: positionOf(3), resumeNote: kept.resumeNote, head: 5 };
    Object.assign(kept, copy);
    await expect(openAt(directory, kept)).rejects.toMatchObject({
      code: 'archive_ahead',
      message: expect.stringMatching(/it has entry 6, which this state does not know .*"waybill sinks adopt"/) as string,
    });
    await adopt();
    await using sink = await openAt(directory, kept);
    expect((await sink.position?.(never))?.position).toEqual(positionOf(3));
    // The restored state collects two of the three records again, in another order, and new ones.
    expect(await send(again(6, 4), again(7, 5), again(4, 6))).toMatchObject({ duplicates: 2 });
    expect(await send(again(8, 7), again(5, 8))).toMatchObject({ duplicates: 1 });
    expect(uidsIn()).toEqual([1, 2, 3, 4, 5, 6, 7, 8].map((seq) => message(seq).uid));
    const { result, records, findings } = await verified();
    expect({ result, records }).toEqual({ result: 'unproven', records: 8 });
    expect(findings).toMatchObject([{ severity: 'unproven', message: expect.stringContaining('.1" follows') as string }]);
    // The same copy is restored once more.
    Object.assign(kept, copy, { head: 3 });
    await expect(openAt(directory, kept)).rejects.toMatchObject({ code: 'archive_ahead' });
    await adopt();
    await send(again(8, 4), again(9, 5));
    expect(uidsIn().at(-1)).toBe(message(9).uid);
    expect(uidsIn()).toHaveLength(9);
    expect((await verified()).findings[1]).toMatchObject({ message: expect.stringContaining('.2" follows') as string });
  });

  test('of a lost state gets no record twice from the next state, also after a restart', async () => {
    await deliver(1, 300);
    kept = new ModelKept('b'.repeat(32));
    await adopt();
    expect(await send(again(2, 1), again(300, 2), again(301, 3))).toMatchObject({ duplicates: 2 });
    // A record that only its entry distinguishes from a later one, and a ledger entry with the uid of a record.
    const entry = {
      ledger: 'suspension',
      source: 'records',
      from: 3e15,
      to: 3e15,
      revision: 1,
      state: 'suspended',
      reason: 'rights',
      since: 3e15,
    };
    const ledger = { ...message(5, JSON.stringify(entry)), seq: 4, number: undefined, isLedger: true as const };
    expect(await send(ledger, { ...again(7, 5), time: Number.MAX_SAFE_INTEGER, undated: true })).toMatchObject({ duplicates: 1 });
    expect(uidsIn()).toHaveLength(301);
    expect(lines().filter(({ kind }) => kind === 'ledger')).toHaveLength(1);
    expect(lines().at(-1)).toMatchObject({ kind: 'position', seq: 5, adopted: { lines: 301 } });
  });

  test('of a lost key is named by the first line of the next archive, which begins with nothing else', async () => {
    await deliver(1, 3);
    const former = readFileSync(join(directory, 'checkpoint'), 'utf8');
    const next = join(folder, 'next');
    const openNext = (file: string): Promise<Sink> =>
      archive.open(
        { directory: next, signingKey: new Secret(keyFrom(2).export({ format: 'pem', type: 'pkcs8' }).toString()), formerCheckpoint: file },
        contextOf('under-test', { format: 'raw' }),
        kept,
        never,
      );
    kept = Object.assign(new ModelKept(), { position: positionOf(2) });
    writeFileSync(join(folder, 'text'), 'waybill/a\n7\nAAAA\n');
    for (const wrong of [join(folder, 'none'), join(folder, 'text')])
      await expect(openNext(wrong)).rejects.toMatchObject({
        code: 'sink_blocked',
        message: expect.stringContaining('sinks.under-test.formerCheckpoint') as string,
      });
    await using sink = await openNext(join(directory, 'checkpoint'));
    expect((await sink.position?.(never))?.position).toEqual(positionOf(2));
    const batch = batchOf(messages(3, 3));
    kept.acknowledge(batch, (await sink.send(batch, never)).resumeNote);
    rmSync(directory, { recursive: true });
    // Later, the file may be gone.
    await (await openNext(join(directory, 'checkpoint')))[Symbol.asyncDispose]();
    const [first, ...others] = archivedRecords(next, 'line').map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(first).toMatchObject({ kind: 'position', after: 2, seq: 2, former });
    expect(others).toHaveLength(2);
    for (const line of others) expect(line).not.toHaveProperty('former');
    directory = next;
    expect(await verified()).toMatchObject({ result: 'intact', records: 1, findings: [{ severity: 'note', object: '--former' }] });
  });

  test('is not continued after a checkpoint of a key that was replaced', async () => {
    const keys = { first: pem, second: keyFrom(2).export({ format: 'pem', type: 'pkcs8' }).toString() };
    const openWith = (key: string, previous?: string): Promise<Sink> => {
      const settings = {
        directory,
        signingKey: new Secret(key),
        previousSigningKey: previous === undefined ? undefined : new Secret(previous),
      };
      return archive.open(settings, contextOf('under-test', { format: 'raw' }), kept, never);
    };
    const deliverWith = async (seq: number, key: string, previous?: string): Promise<void> => {
      await using sink = await openWith(key, previous);
      const batch = batchOf(messages(seq, seq));
      kept.acknowledge(batch, (await sink.send(batch, never)).resumeNote);
    };
    await deliverWith(1, keys.first);
    await deliverWith(2, keys.second, keys.first);
    await deliverWith(3, keys.second, keys.first);
    // Another process has the former key and may write: it continues the archive as if the key were in use.
    const delivered = { position: kept.position, resumeNote: kept.resumeNote };
    kept.resumeNote = undefined;
    await deliverWith(4, keys.first, keys.second);
    await deliverWith(5, keys.first);
    Object.assign(kept, delivered);
    await expect(openWith(keys.second, keys.first)).rejects.toMatchObject({
      code: 'archive_broken',
      message: expect.stringContaining('replaced this key') as string,
    });
  });

  test('has two writers for a moment: one of them stops, and opens again', async () => {
    await deliver(1, 3);
    await using first = await openAt(directory, kept);
    await using second = await openAt(directory, kept);
    await second.send(batchOf(messages(4, 4)), never);
    await expect(first.send(batchOf(messages(4, 5)), never)).rejects.toMatchObject({ code: 'archive_conflict' });
    await using again = await openAt(directory, kept);
    expect((await again.position?.(never))?.position).toEqual(positionOf(4));
  });

  test('gets no checkpoint after the deadline of its batch', async () => {
    await deliver(1, 3);
    await using sink = await openAt(directory, kept);
    const abort = new AbortController();
    const sent = sink.send(batchOf(messages(4, 4)), abort.signal);
    abort.abort(new Error('the deadline has passed'));
    await expect(sent).rejects.toMatchObject({ code: 'sink_outcome_unknown' });
    await using again = await openAt(directory, kept);
    expect((await again.position?.(never))?.position).toEqual(positionOf(3));
  });

  test('contains the ledger: a window, a suspension and its end, an operation', async () => {
    const entries = [
      {
        ...{ ledger: 'window', action: 'window-proven', source: 'records', from: 1e15, to: 2e15, revision: 1, state: 'proven' },
        ...{ query: { startTime: 'a' }, total: 5, records: 0, late: 0, digest: 'e3'.repeat(32), recounts: 1, attempts: 0, closed: 3e15 },
        proof: { passes: 2, requests: 3, first: 1, last: 2 },
      },
      { ledger: 'suspension', source: 'records', from: 3e15, to: 3e15, revision: 1, state: 'suspended', reason: 'rights', since: 3e15 },
      { ledger: 'suspension', source: 'records', from: 4e15, to: 4e15, revision: 1, state: 'active', reason: 'rights', since: 3e15 },
      {
        ledger: 'operation',
        source: '',
        from: 5e15,
        to: 5e15,
        revision: 1,
        number: 1,
        actor: null,
        operation: 'sinks retry',
        detail: { sink: 'a' },
      },
    ];
    const batch = batchOf(
      entries.map((entry, i) => ({
        ...message(i + 1, JSON.stringify(entry)),
        number: undefined,
        isLedger: true as const,
        received: entry.to,
      })),
    );
    kept.completeSince = 1e15;
    await using sink = await openAt(directory, kept);
    await sink.send(batch, never);
    const none = { query: null, total: null, records: 0, digest: null, passes: null, recounts: 0 };
    const time = (micros: number): string => new Date(micros / 1_000).toISOString().replace('Z', '000Z');
    expect(archivedRecords(directory, 'line').map((line) => ({ ...(JSON.parse(line) as object), salt: undefined }))).toMatchObject([
      {
        ...{ kind: 'ledger', seq: 1, source: 'records', from: time(1e15), to: time(2e15), state: 'proven', at: time(2e15) },
        ...{ query: { startTime: 'a' }, total: 5, records: 0, digest: 'e3'.repeat(32), passes: 2, recounts: 1, reason: null },
      },
      { kind: 'ledger', seq: 2, source: 'records', from: time(3e15), state: 'suspended', reason: 'rights', ...none },
      { kind: 'ledger', seq: 3, source: 'records', from: time(4e15), state: 'resumed', reason: 'rights', ...none },
      { kind: 'operation', seq: 4, at: time(5e15), actor: null, operation: 'sinks retry', detail: { sink: 'a' } },
      { kind: 'position', after: 0, seq: 4, completeSince: time(kept.completeSince) },
    ]);
  });

  test('reports one checkpoint a day, and archives its ledger entry', async () => {
    await deliver(1, 3);
    await deliver(4, 4);
    expect(kept.checkpoints).toHaveLength(2);
    expect(kept.checkpoints[1]).toBe(readFileSync(join(directory, 'checkpoint'), 'utf8'));
    await using sink = await openAt(directory, kept);
    for (const seq of [5, 6]) await sink.send(batchOf(messages(seq, seq)), never);
    // After each open, the sink reports its first checkpoint of the day once. The journal ignores a second report for the same day.
    expect(kept.checkpoints).toHaveLength(3);
    const entry = {
      ...{ ledger: 'archive-checkpoint', source: '', from: 5e15, to: 5e15, revision: 1 },
      sink: 'archive',
      checkpoint: 'a\nb',
    };
    await sink.send(batchOf([{ ...message(7, JSON.stringify(entry)), number: undefined, isLedger: true as const }]), never);
    expect(JSON.parse(archivedRecords(directory, 'line').at(-2) ?? '')).toMatchObject({
      ...{ kind: 'operation', seq: 7, actor: null, operation: 'archive-checkpoint', detail: { sink: 'archive', checkpoint: 'a\nb' } },
    });
  });

  describe('that is replaced while the sink is open', () => {
    let sink: Sink | undefined;
    afterEach(async () => {
      await sink?.[Symbol.asyncDispose]();
      sink = undefined;
    });
    beforeEach(async () => {
      await deliver(1, 2);
      cpSync(directory, join(folder, 'older'), { recursive: true });
      await deliver(3, 3);
      await deliver(4, 5);
      sink = await openAt(directory, kept);
      renameSync(directory, join(folder, 'right'));
    });
    const refused = (seq: number, reason: string): object => ({
      code: 'archive_broken',
      message: expect.stringContaining(`"checkpoints/${String(seq).padStart(10, '0')}": ${reason}`) as string,
    });

    test('by an older copy stops the sink with its name, and what is gone is a loss until the archive is back', async () => {
      renameSync(join(folder, 'older'), directory);
      await expect(sink?.send(batchOf(messages(6, 6)), never)).rejects.toMatchObject(refused(3, 'it is missing'));
      // No checkpoint leaves a hole: the copy is intact.
      expect(await verified()).toMatchObject({ result: 'intact', checkpoints: 1 });
      const reopened = await openAt(directory, kept);
      expect(kept.losses).toMatchObject([{ first: 3, last: 5, code: 'archive_broken' }]);
      expect(kept.losses[0]?.message).toContain(`"${directory}" ends at entry 2`);
      await reopened[Symbol.asyncDispose]();
      renameSync(directory, join(folder, 'older'));
      renameSync(join(folder, 'right'), directory);
      await deliver(6, 6);
      expect(kept.losses).toEqual([]);
      expect(await verified()).toMatchObject({ result: 'intact', records: 6, checkpoints: 4 });
    });

    test('by nothing stops the sink, and everything is a loss', async () => {
      await expect(sink?.send(batchOf(messages(6, 6)), never)).rejects.toMatchObject(refused(3, 'it is missing'));
      rmSync(directory, { recursive: true });
      await expect(openAt(directory, kept)).rejects.toMatchObject({ code: 'archive_broken' });
      expect(kept.losses).toMatchObject([{ first: 1, last: 5 }]);
    });

    test('by one with another history stops the sink', async () => {
      renameSync(join(folder, 'older'), directory);
      const other = Object.assign(new ModelKept(), { position: positionOf(2), resumeNote: kept.resumeNote });
      await using forked = await openAt(directory, other);
      for (const seq of [6, 7]) await forked.send(batchOf(messages(seq, seq)), never);
      await expect(sink?.beat?.(never)).rejects.toMatchObject(refused(3, 'it has other bytes'));
    });
  });

  describe('with an order to prune', () => {
    const originIn = (): string => readFileSync(join(directory, 'checkpoint'), 'utf8').split('\n')[0] ?? '';
    const firsts = (): number[] => readdirSync(join(directory, 'segments')).map((name) => Number(name.slice(0, 16)) + 1);
    const orderOf = (seq: number, operation: string, detail: object): Message => ({
      ...message(
        seq,
        JSON.stringify({
          ...{ ledger: 'operation', source: '', from: 5e15, to: 5e15, revision: 1, number: 1, actor: 'm.weber', operation },
          detail: { sink: 'under-test', archive: originIn(), ...detail },
        }),
      ),
      number: undefined,
      isLedger: true,
    });
    const prune = (seq: number, lines: readonly LineRange[], more: object = {}): Message =>
      orderOf(seq, 'archive prune', { before: '2026-11-01T00:00:00Z', lines, reason: '13 months', ...more });
    const last = (): object => {
      const newest = filesIn(directory).filter((path) => path.startsWith('segments/')).sort().at(-1) ?? ''; // prettier-ignore
      const lines = gunzipSync(readFileSync(join(directory, newest))).toString().trimEnd().split('\n'); // prettier-ignore
      return JSON.parse(lines.at(-1) ?? '') as object;
    };
    // Segments of two lines each: a record, and the position.
    beforeEach(async () => {
      for (let seq = 1; seq <= 5; seq += 1) await deliver(seq, seq);
    });
    /** The sink stays open: closing it ends the removal. */
    let sink: Sink | undefined;
    afterEach(async () => {
      await sink?.[Symbol.asyncDispose]();
      sink = undefined;
    });
    async function send(...given: Message[]): Promise<void> {
      sink ??= await openAt(directory, kept);
      const batch = batchOf(given);
      kept.acknowledge(batch, (await sink.send(batch, never)).resumeNote);
    }
    async function restart(): Promise<void> {
      await sink?.[Symbol.asyncDispose]();
      sink = await openAt(directory, kept);
    }

    test('deletes the segments of its lines after the order is signed, and no other file', async () => {
      const files = filesIn(directory).filter((path) => !path.startsWith('segments/'));
      await send(prune(6, [{ first: 1, last: 4 }]));
      await expect.poll(firsts).toEqual([5, 7, 9, 11]);
      expect(filesIn(directory)).toEqual(expect.arrayContaining(files.filter((path) => !path.includes('.p/'))));
      expect(last()).toMatchObject({ kind: 'position', removing: [{ first: 1, last: 4 }] });
      await send(message(7));
      expect(last()).not.toHaveProperty('removing');
    });

    test.each<[string, () => Message]>([
      ['for another archive', () => prune(6, [{ first: 1, last: 4 }], { archive: 'waybill/other' })],
      ['with lines in no order', () => prune(6, [{ first: 3, last: 4 }, { first: 1, last: 2 }])], // prettier-ignore
    ])('%s deletes nothing', async (_name, order) => {
      await send(order());
      await send(message(7));
      expect(last()).not.toHaveProperty('removing');
      expect(firsts()).toEqual([1, 3, 5, 7, 9, 11, 13]);
    });

    test('of the newest lines leaves the newest segment, which the archive continues', async () => {
      await send(prune(6, [{ first: 1, last: 100 }]));
      await expect.poll(firsts).toEqual([11]);
      await restart();
      await send(message(7));
    });

    test('spares what a later hold names, and what a replay has yet to read until it has read it', async () => {
      kept.replayed = 4;
      await send(
        prune(6, [{ first: 1, last: 8 }]),
        orderOf(7, 'archive hold', { case: 'x', from: null, to: null, lines: [{ first: 5, last: 6 }] }),
      );
      await expect.poll(firsts).toEqual([3, 5, 7, 9, 11]);
      kept.replayed = undefined;
      // A restart goes on with it.
      await restart();
      await expect.poll(firsts).toEqual([5, 9, 11]);
    });

    test('that the store refuses is tried again with the next segment', async () => {
      const lines: unknown[] = [];
      const log = noting({ write: (event, ...fields) => void lines.push([event, ...fields]) });
      const store = new DirectoryStore(directory);
      let refusals = 1;
      const remove = store.remove.bind(store);
      store.remove = (path) => ((refusals -= 1) < 0 ? remove(path) : Promise.reject(new Error('locked')));
      sink = await ArchiveSink.open({ name: directory, store, key: keyFrom(1) }, { ...contextOf('under-test'), log }, kept);
      await sink.send(batchOf([prune(6, [{ first: 1, last: 2 }])]), never);
      await expect.poll(() => lines).toMatchObject([['archive.removal_failed', { error: { message: 'locked' } }]]);
      expect(firsts()).toContain(1);
      await sink.send(batchOf(messages(7, 7)), never);
      await expect.poll(() => lines[1]).toEqual(['archive.segments_removed', { sink: 'under-test', segments: 1 }]);
      expect(firsts()).not.toContain(1);
    });
  });

  test('rejects a ledger entry of an unknown form', async () => {
    await using sink = await openAt(directory, kept);
    const entry = { ...message(1, '{"ledger":"other"}'), number: undefined, isLedger: true as const };
    await expect(sink.send(batchOf([entry]), never)).rejects.toMatchObject({ code: 'sink_blocked' });
  });
});

describe('check', () => {
  const findings = (directory: string, key = pem) =>
    archive.check({ directory, signingKey: new Secret(key) }, contextOf('under-test', { format: 'raw' }), never);

  test('names the archive and the key for auditors', async () => {
    const folder = temporary();
    const directory = join(folder, 'archive');
    expect(await findings(directory)).toMatchObject([{ level: 'ok' }]);
    await (await openAt(directory, new ModelKept())).send(batchOf(messages(1, 2)), never);
    const found = await findings(directory);
    expect(found.map(({ level }) => level)).toEqual(['ok', 'ok']);
    expect(found[1]?.message).toContain(publicKeyIn(directory).trim());
    rmSync(folder, { recursive: true });
  });

  test.each([
    ['a key of another type', generateKeyPairSync('x25519').privateKey.export({ format: 'pem', type: 'pkcs8' }).toString()],
    ['a text that is not a key', 'not a key'],
  ])('refuses %s', async (_name, key) => {
    await expect(findings(join(tmpdir(), 'no-archive'), key)).rejects.toMatchObject({ code: 'sink_blocked' });
  });

  test('reports a file in place of the directory', async () => {
    const folder = temporary();
    writeFileSync(join(folder, 'archive'), 'a file');
    expect(await findings(join(folder, 'archive'))).toMatchObject([{ level: 'error', setting: 'sinks.under-test.directory' }]);
    rmSync(folder, { recursive: true });
  });

  test('reports an archive that another key signed', async () => {
    const folder = temporary();
    await (await openAt(folder, new ModelKept())).send(batchOf(messages(1, 2)), never);
    const other = keyFrom(2).export({ format: 'pem', type: 'pkcs8' }).toString();
    await expect(findings(folder, other)).rejects.toMatchObject({ code: 'archive_broken' });
    rmSync(folder, { recursive: true });
  });
});
