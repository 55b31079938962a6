import { expect, test } from 'vitest';
import { WaybillError } from '../../../src/errors/errors.ts';
import type { Journal } from '../../../src/journal/journal.ts';
import type { DeadLetter } from '../../../src/model/journal.ts';
import type { Position } from '../../../src/model/ledger.ts';
import { base, collected, second } from '../../support/records.ts';
import { beside, lastAge, opened, pageOf, proven, source, span, temporary } from '../../support/journal/opening.ts';
import { faultsOf, seenFaults } from '../../support/journal/recompute.ts';

const beginning: Position = { seq: 0, chain: new Uint8Array(32) };

/** `pages` pages of two records, each a segment. */
async function append(journal: Journal, pages: number, first = 1): Promise<void> {
  for (let i = 0; i < pages; i += 1) {
    const id = first + 2 * i;
    await journal.append(pageOf([collected(id, base + id), collected(id + 1, base + id + 1)], { received: base + i }));
  }
}

async function taken(journal: Journal, seq: number, note?: string): Promise<{ position: Position; resumeNote: string | undefined }> {
  const chain = await journal.chainAt(seq);
  if (!chain) throw new Error(`no position ${seq}`);
  return { position: { seq, chain }, resumeNote: note };
}

function plain({ seq, chain }: Position): { seq: number; chain: string } {
  return { seq, chain: Buffer.from(chain).toString('hex') };
}

async function deadLetter(journal: Journal, seq: number): Promise<DeadLetter> {
  const entry = (await journal.read(seq - 1, { records: 1, bytes: 1 }))[0];
  if (!entry) throw new Error(`no entry ${seq}`);
  return { entry, rejection: { seq, code: '400', message: 'mapper_parsing_exception' }, attempts: 2 };
}

test('an acknowledgement is committed with its position and note, and restored after a restart', async () => {
  const { journal, directory, close } = await opened();
  await append(journal, 3);
  journal.sinkPositions.register('siem', 'file', '/var/log/x', beginning, undefined);
  await journal.acknowledge('siem', { acknowledged: 4, delivered: await taken(journal, 3, 'note') }, []);
  // Nothing was sent: the delivered position stays.
  await journal.acknowledge('siem', { acknowledged: 5, delivered: undefined }, []);
  const expected = { acknowledged: 5, delivered: await taken(journal, 3).then(({ position }) => position), resumeNote: 'note' };
  expect(journal.sinkProgress('siem')).toMatchObject(expected);
  await close();
  const again = await opened({ directory });
  again.journal.sinkPositions.register('siem', 'file', '/var/log/x', again.journal.head(), undefined);
  expect(again.journal.sinkProgress('siem')).toMatchObject({ ...expected, delivered: { seq: 3 } });
  expect(() => again.journal.sinkPositions.register('siem', 'file', '/var/log/y', beginning, undefined)).toThrow(
    /siem.*"\/var\/log\/x".*"\/var\/log\/y"/,
  );
});

test('an acknowledgement never goes back, not even before a pending one', async () => {
  const { journal } = await opened();
  await append(journal, 3);
  journal.sinkPositions.register('siem', 'file', 'x', beginning, undefined);
  await journal.acknowledge('siem', { acknowledged: 3, delivered: undefined }, []);
  await expect(journal.acknowledge('siem', { acknowledged: 2, delivered: undefined }, [])).rejects.toMatchObject({
    code: 'internal_error',
  });
  journal.acknowledgeLater('siem', { acknowledged: 5, delivered: undefined });
  expect(() => journal.acknowledgeLater('siem', { acknowledged: 4, delivered: undefined })).toThrow(/goes back from 5 to 4/);
  await expect(journal.acknowledge('siem', { acknowledged: 4, delivered: undefined }, [])).rejects.toMatchObject({
    code: 'internal_error',
  });
  await journal.flush();
  expect(journal.sinkProgress('siem').acknowledged).toBe(5);
});

test('pending acknowledgements are merged, are not in the file, and are written with the next append', async () => {
  const { journal, beside } = await opened();
  await append(journal, 3);
  journal.sinkPositions.register('a', 'kafka', 'x', beginning, undefined);
  journal.sinkPositions.register('b', 'kafka', 'x', beginning, undefined);
  const { commits } = journal.usage();
  journal.acknowledgeLater('a', { acknowledged: 2, delivered: await taken(journal, 2, 'two') });
  journal.acknowledgeLater('a', { acknowledged: 4, delivered: undefined });
  journal.acknowledgeLater('b', { acknowledged: 3, delivered: await taken(journal, 3) });
  const rows = (): unknown => beside().prepare('SELECT id, acknowledged, delivered, resume_note FROM sinks ORDER BY id').all();
  expect(rows()).toEqual([
    { id: 'a', acknowledged: 0, delivered: 0, resume_note: null },
    { id: 'b', acknowledged: 0, delivered: 0, resume_note: null },
  ]);
  // The committed position limits the next batch, so memory reports that one.
  expect(journal.sinkProgress('a').acknowledged).toBe(0);
  await append(journal, 1, 100);
  expect(journal.usage().commits).toBe(commits + 1);
  const expected = [
    { id: 'a', acknowledged: 4, delivered: 2, resume_note: 'two' },
    { id: 'b', acknowledged: 3, delivered: 3, resume_note: null },
  ];
  expect(rows()).toEqual(expected);
  expect(journal.sinkProgress('a')).toMatchObject({ acknowledged: 4, delivered: { seq: 2 }, resumeNote: 'two' });
  journal.acknowledgeLater('a', { acknowledged: 5, delivered: undefined });
  await journal.flush();
  await journal.flush();
  expect(journal.usage().commits).toBe(commits + 2);
  expect(journal.sinkProgress('a').acknowledged).toBe(5);
});

test('pending acknowledgements are written when the journal is closed, and before a note', async () => {
  const { journal, directory, close } = await opened();
  await append(journal, 3);
  journal.sinkPositions.register('archive', 'archive', 'x', beginning, undefined);
  journal.acknowledgeLater('archive', { acknowledged: 3, delivered: await taken(journal, 3, 'old') });
  await journal.commitResumeNote('archive', 'new');
  expect(journal.sinkProgress('archive')).toMatchObject({ acknowledged: 3, delivered: { seq: 3 }, resumeNote: 'new' });
  journal.acknowledgeLater('archive', { acknowledged: 5, delivered: undefined });
  await close();
  expect(beside(directory).prepare('SELECT acknowledged, delivered, resume_note FROM sinks').get()).toEqual({
    acknowledged: 5,
    delivered: 3,
    resume_note: 'new',
  });
});

test('a dead letter has a copy of the record, in the transaction of its acknowledgement', async () => {
  const { journal, beside } = await opened();
  const record = collected(1, base, { payloadName: 'Überschrift' });
  await journal.append(pageOf([record, collected(2, undefined)]));
  journal.sinkPositions.register('siem', 'http', 'x', beginning, undefined);
  const deadLetters = [await deadLetter(journal, 1), await deadLetter(journal, 2)];
  await journal.acknowledge('siem', { acknowledged: 2, delivered: await taken(journal, 2) }, deadLetters);
  beside().exec('DELETE FROM segments');
  const rows = beside().prepare(
    'SELECT seq, source, hex(uid) AS uid, time_us, body, code, message, attempts, state FROM dead_letters ORDER BY seq',
  );
  const shared = { source: 1, code: '400', message: 'mapper_parsing_exception', attempts: 2, state: 'stored' };
  expect(rows.all()).toMatchObject([
    { ...shared, seq: 1, uid: Buffer.from(record.uid, 'base64url').toString('hex').toUpperCase(), time_us: base, body: record.bytes },
    { ...shared, seq: 2, time_us: null },
  ]);
  expect(journal.sinkProgress('siem').deadLetters).toBe(2);
  // Reported twice, stored once.
  await journal.acknowledge('siem', { acknowledged: 2, delivered: undefined }, deadLetters);
  expect(journal.sinkProgress('siem').deadLetters).toBe(2);
});

test('pruning goes as far as the slowest sink, also a blocked or unconfigured one, and never into a segment', async () => {
  const { journal, clock, directory } = await opened();
  await append(journal, 5);
  for (const id of ['fast', 'slow', 'gone']) journal.sinkPositions.register(id, 'file', id, beginning, undefined);
  await journal.acknowledge('fast', { acknowledged: 10, delivered: undefined }, []);
  await journal.acknowledge('slow', { acknowledged: 7, delivered: undefined }, []);
  journal.sinkPositions.markUnconfigured(new Set(['fast', 'slow']));
  clock.wall += 31 * 86_400_000;
  expect(journal.prune()).toBe(0);
  await journal.acknowledge('gone', { acknowledged: 5, delivered: undefined }, []);
  // Entry five is in the segment of 5 and 6.
  const chain = await journal.chainAt(4);
  expect(journal.prune()).toBe(4);
  expect(journal.prune()).toBe(0);
  expect(await journal.chainAt(4)).toEqual(chain);
  expect(await journal.chainAt(3)).toBeUndefined();
  expect(await journal.chainAt(11)).toBeUndefined();
  expect(await journal.chainAt(0)).toEqual(new Uint8Array(32));
  expect(await journal.chainAt(5)).toEqual(await journal.chainAt(6));
  expect(journal.positionFor('journal')).toEqual({ seq: 4, chain });
  await journal.acknowledge('gone', { acknowledged: 10, delivered: undefined }, []);
  expect(journal.prune()).toBe(2);
  expect(faultsOf(beside(directory))).toEqual([]);
  await append(journal, 1, 100);
  expect(journal.head().seq).toBe(12);
  expect(faultsOf(beside(directory))).toEqual([]);
});

test('entries within the retention stay; a journal that was pruned to its head opens again', async () => {
  const { journal, clock, directory, close } = await opened({ retention: 1_000 });
  await append(journal, 2);
  clock.wall += 500;
  expect(journal.prune()).toBe(0);
  clock.wall += 600;
  expect(journal.prune()).toBe(4);
  const head = journal.head();
  await close();
  const again = await opened({ directory });
  expect(again.journal.head()).toEqual(head);
  expect(await again.journal.chainAt(4)).toEqual(head.chain);
  expect(await again.journal.append(pageOf([collected(1, base + 1), collected(99, base)]))).toMatchObject({ known: 1, appended: 1 });
  expect(faultsOf(again.beside())).toEqual([]);
});

test('a retired sink that returns starts at its `start`, and never before its last position', async () => {
  const { journal, clock, directory, close } = await opened({ retention: 1_000 });
  const register = (id: string, from: 'journal' | 'now'): unknown =>
    journal.sinkPositions.register(id, 'file', 'there', journal.positionFor(from), undefined);
  for (const id of ['behind', 'ahead']) register(id, 'journal');
  await append(journal, 2);
  await journal.acknowledge('behind', { acknowledged: 2, delivered: await taken(journal, 2, 'length 40') }, [await deadLetter(journal, 1)]);
  await journal.acknowledge('ahead', { acknowledged: 4, delivered: await taken(journal, 4, 'length 80') }, [await deadLetter(journal, 3)]);
  journal.sinkPositions.markUnconfigured(new Set());
  for (const id of ['behind', 'ahead'])
    await journal.operate({ at: 1, actor: 'a', operation: 'sinks retire', detail: {} }, () =>
      journal.sinkPositions.retire(journal.sinkPositions.sink(id)),
    );
  await append(journal, 2, 5);
  clock.wall += 2_000;
  // No sink needs anything: every entry is pruned, except the last segment.
  expect(journal.prune()).toBeGreaterThan(4);
  await append(journal, 1, 9);
  const head = journal.head().seq;
  const { seq: pruned, chain } = journal.positionFor('journal');
  register('behind', 'journal');
  // The entries it lacks are gone: it continues at the start of the journal, and the skipped
  // entries are not reported.
  expect(journal.sinkProgress('behind')).toMatchObject({
    acknowledged: pruned,
    delivered: { seq: pruned, chain },
    resumeNote: undefined,
    deadLetters: 1,
  });
  expect((await journal.read(pruned, { records: 1, bytes: 1 }))[0]?.seq).toBe(pruned + 1);
  const begun = journal.db.prepare("SELECT begun_us FROM sinks WHERE id = 'behind'").get() as { begun_us: number };
  expect(begun.begun_us).toBeGreaterThan(0);
  register('ahead', 'now');
  expect(journal.sinkProgress('ahead')).toMatchObject({ acknowledged: head, resumeNote: undefined });
  // The self-check accepts that its dead letters precede its first start.
  for (let i = 0; i < 50; i += 1) await journal.examine(86_400_000);
  await journal.operate({ at: 1, actor: 'a', operation: 'sinks retire', detail: {} }, () =>
    journal.sinkPositions.retire(journal.sinkPositions.sink('ahead')),
  );
  // A sink that had received everything up to here is sent none of it again.
  register('ahead', 'journal');
  expect(journal.sinkProgress('ahead').acknowledged).toBe(head);
  await close();
  const again = await opened({ directory });
  expect(again.journal.sinkProgress('behind')).toMatchObject({ acknowledged: pruned, resumeNote: undefined });
  expect(again.journal.sinkProgress('ahead')).toMatchObject({ acknowledged: head });
});

test('positions: the start, now, and the first record of a time', async () => {
  const { journal } = await opened();
  const position = (from: Parameters<Journal['positionFor']>[0]): unknown => plain(journal.positionFor(from));
  expect(position('journal')).toEqual(plain(beginning));
  await append(journal, 3);
  expect(position('now')).toEqual(plain(journal.head()));
  expect(position(base + 4)).toEqual(plain((await taken(journal, 2)).position));
  expect(position(base)).toEqual(plain(beginning));
  expect(position(base + 1_000_000)).toEqual(plain(journal.head()));
});

/** Incompressible text of some kilobytes. */
function noise(salt: number): string {
  return Array.from({ length: 800 }, (_, at) => ((at * 7919 + salt * 104_729) ** 2).toString(36)).join('');
}

/**
 * Fills a journal of a quarter of a megabyte until its quota stops it; returns the page that did
 * not fit.
 */
async function fill(journal: Journal): Promise<ReturnType<typeof pageOf>> {
  for (let i = 1000; ; i += 1) {
    const page = pageOf([collected(i, base + i, { noise: noise(i) })]);
    try {
      await journal.append(page);
    } catch (thrown) {
      expect(thrown).toBeInstanceOf(WaybillError);
      expect(thrown).toMatchObject({ code: 'journal_full' });
      return page;
    }
  }
}

test('at the quota an append stores nothing and memory has nothing of it; acknowledging and pruning continue', async () => {
  const { journal, beside, clock } = await opened({ maxSize: 256 * 1024 });
  journal.sinkPositions.register('siem', 'kafka', 'x', beginning, undefined);
  await append(journal, 2);
  const page = await fill(journal);
  const head = journal.head();
  expect(await journal.paused()).toBe('journal_full');
  expect(faultsOf(beside())).toEqual([]);
  expect(seenFaults(beside())).toEqual([]);
  // The acknowledgement waits for the next append. The append fails, so the acknowledgement is written alone.
  journal.acknowledgeLater('siem', { acknowledged: 3, delivered: await taken(journal, 3) });
  await expect(journal.append(page)).rejects.toMatchObject({ code: 'journal_full' });
  expect(beside().prepare('SELECT acknowledged, delivered FROM sinks').get()).toEqual({ acknowledged: 3, delivered: 3 });
  // The entry of a window is small: the last pages hold a few.
  let windows = 0;
  await expect(
    (async () => {
      for (; ; windows += 1) await journal.close(source, span(windows, windows + 1), proven(), lastAge);
    })(),
  ).rejects.toMatchObject({ code: 'journal_full' });
  const stopped = journal.head();
  expect(stopped.seq).toBe(head.seq + windows);
  expect(journal.progress(source)).toMatchObject({ frontier: base + windows * second, live: { closedUntil: base + windows * second } });
  await journal.acknowledge('siem', { acknowledged: stopped.seq, delivered: undefined }, []);
  clock.wall = base / 1000 + 40 * 86_400_000;
  while (journal.prune() > 0);
  expect(await journal.paused()).toBeUndefined();
  expect(journal.db.pragma('freelist_count', { simple: true })).toBe(0);
  // The page that failed is still new, and so is the window.
  expect(await journal.append(page)).toMatchObject({ appended: 1, known: 0 });
  await journal.close(source, span(windows, windows + 1), proven(), lastAge);
  expect(journal.progress(source).live.closedUntil).toBe(base + (windows + 1) * second);
  expect(faultsOf(beside())).toEqual([]);
});

test('an append that fails in its very last statement leaves nothing behind in memory', async () => {
  const { journal, beside, directory } = await opened({ maxSize: 256 * 1024 });
  journal.sinkPositions.register('file', 'file', 'x', beginning, undefined);
  await append(journal, 2);
  const head = journal.head();
  // There is space for segment and uids, but not for the note of a pending acknowledgement, which
  // is written last.
  journal.acknowledgeLater('file', { acknowledged: 1, delivered: await taken(journal, 1, 'x'.repeat(600 * 1024)) });
  const page = pageOf([collected(50, base + 50), collected(51, undefined)], { polledUntil: base + 50 });
  await expect(journal.append(page)).rejects.toMatchObject({
    code: 'journal_full',
    message: `cannot write the state in "${directory}": journal.maxSize is used up`,
  });
  // The state is far from full, but this transaction was too large.
  expect([await journal.paused(), journal.refuses()]).toEqual([undefined, 'journal_full']);
  expect(journal.head()).toEqual(head);
  expect(journal.progress(source)).toMatchObject({ collected: 4, polledUntil: 0 });
  expect(journal.sinkProgress('file')).toMatchObject({ acknowledged: 0, resumeNote: undefined });
  expect((await journal.read(0, { records: 10, bytes: 1e6 })).at(-1)?.seq).toBe(4);
  journal.acknowledgeLater('file', { acknowledged: 2, delivered: await taken(journal, 2, 'short') });
  expect(await journal.append(page)).toMatchObject({ appended: 2, known: 0 });
  expect(journal.sinkProgress('file')).toMatchObject({ acknowledged: 2, resumeNote: 'short' });
  expect(faultsOf(beside())).toEqual([]);
  expect(seenFaults(beside())).toEqual([]);
});

test('an acknowledgement is not written without its dead letters if these do not fit', async () => {
  const { journal, beside } = await opened({ maxSize: 256 * 1024 });
  journal.sinkPositions.register('siem', 'kafka', 'x', beginning, undefined);
  await fill(journal);
  const deadLetters = await Promise.all(Array.from({ length: 15 }, (_, i) => deadLetter(journal, i + 1)));
  journal.acknowledgeLater('siem', { acknowledged: 0, delivered: undefined });
  await expect(journal.acknowledge('siem', { acknowledged: 15, delivered: undefined }, deadLetters)).rejects.toMatchObject({
    code: 'journal_full',
  });
  await journal.flush();
  expect(journal.sinkProgress('siem')).toMatchObject({ acknowledged: 0, deadLetters: 0 });
  expect(beside().prepare('SELECT acknowledged, (SELECT count(*) FROM dead_letters) AS deadLetters FROM sinks').get()).toEqual({
    acknowledged: 0,
    deadLetters: 0,
  });
});

test('the quota that pages leave is for dead letters, and the last part for the sink that is furthest behind', async () => {
  const { journal } = await opened({ maxSize: 1024 * 1024 });
  journal.sinkPositions.register('fast', 'kafka', 'x', beginning, undefined);
  journal.sinkPositions.register('slow', 'kafka', 'y', beginning, undefined);
  await fill(journal);
  const share = (): number => journal.usage().bytes / journal.usage().maxSize;
  expect(share()).toBeLessThanOrEqual(0.97);
  const refuse = async (sink: string, seq: number): Promise<void> =>
    journal.acknowledge(sink, { acknowledged: seq, delivered: undefined }, [await deadLetter(journal, seq)]);
  await journal.acknowledge('fast', { acknowledged: 1, delivered: undefined }, []);
  let fast = 2;
  await expect(
    (async () => {
      for (; ; fast += 1) await refuse('fast', fast);
    })(),
  ).rejects.toMatchObject({ code: 'journal_full' });
  expect(fast).toBeGreaterThan(2);
  expect(share()).toBeLessThanOrEqual(0.985);
  expect(journal.sinkProgress('fast').acknowledged).toBe(fast - 1);
  // Nothing can be pruned until this sink advances, and it can.
  expect(journal.prune()).toBe(0);
  await refuse('slow', 1);
  await journal.acknowledge('slow', { acknowledged: fast - 1, delivered: undefined }, []);
  expect(journal.prune()).toBe(fast - 1);
  await refuse('fast', fast);
});

test('collection pauses above 97 % of the quota and resumes below 90 %', async () => {
  const { journal, clock } = await opened({ maxSize: 256 * 1024, directory: temporary() });
  journal.sinkPositions.register('siem', 'kafka', 'x', beginning, undefined);
  const share = (): number => journal.usage().bytes / journal.usage().maxSize;
  await fill(journal);
  expect(await journal.paused()).toBe('journal_full');
  // The page that would have exceeded the mark was not stored: the rest of the quota is for
  // acknowledgements.
  expect(share()).toBeLessThanOrEqual(0.97);
  expect(share()).toBeGreaterThan(0.93);
  clock.wall += 1;
  for (let acked = 1; (await journal.paused()) !== undefined && acked < journal.head().seq; acked += 1) {
    expect(share()).toBeGreaterThan(0.9);
    await journal.acknowledge('siem', { acknowledged: acked, delivered: undefined }, []);
    journal.prune();
  }
  expect(share()).toBeLessThanOrEqual(0.9);
  expect(share()).toBeGreaterThan(0.85);
});

test('a journal that cannot write the last acknowledgement is closed; the next start reconciles it', async () => {
  const { journal, directory, close } = await opened({ maxSize: 256 * 1024 });
  journal.sinkPositions.register('file', 'file', 'x', beginning, undefined);
  await append(journal, 2);
  journal.acknowledgeLater('file', { acknowledged: 1, delivered: await taken(journal, 1, 'x'.repeat(600 * 1024)) });
  await close();
  const again = await opened({ directory, maxSize: 256 * 1024 });
  expect(again.journal.sinkProgress('file')).toMatchObject({ acknowledged: 0, resumeNote: undefined });
});

test('a sink that starts now is complete after the newest record that it lacks, even if the local clock was behind', async () => {
  const { journal, directory, close } = await opened();
  const [ahead, hour] = [base + 600 * second, 3_600 * second];
  await journal.append(pageOf([collected(1, ahead)], { received: base }));
  await journal.append(pageOf([collected(2, base)], { received: base }));
  journal.sinkPositions.register('late', 'file', 'x', journal.head(), undefined);
  expect(journal.sinkProgress('late').completeSince).toBe(ahead + 1);
  // A wrong date counts as at most a day ahead.
  await journal.append(pageOf([collected(3, base + 10_000 * hour)], { received: base }));
  journal.sinkPositions.register('later', 'file', 'y', journal.head(), undefined);
  expect(journal.sinkProgress('later').completeSince).toBe(base + 24 * hour);
  journal.sinkPositions.register('whole', 'file', 'z', beginning, undefined);
  // A source selected later counts from then on.
  journal.sinkPositions.select('whole', { sources: [] });
  expect(journal.sinkProgress('whole').completeSince).toBe(0);
  await journal.acknowledge('whole', { acknowledged: 2, delivered: undefined }, []);
  journal.sinkPositions.select('whole', { sources: undefined });
  const known = ['late', 'later', 'whole'].map((id) => journal.sinkProgress(id).completeSince);
  expect(known).toEqual([ahead + 1, base + 24 * hour, ahead + 1]);
  await close();
  const again = await opened({ directory });
  expect(['late', 'later', 'whole'].map((id) => again.journal.sinkProgress(id).completeSince)).toEqual(known);
});

const completeSinceOf = (journal: Journal): unknown => [
  journal.sinkProgress('siem').completeSince,
  journal.db.prepare<[], { at: number }>("SELECT begun_us AS at FROM sinks WHERE id = 'siem'").get()?.at,
];

test.each<[string, string | undefined, boolean]>([
  ['its own', 'siem', true],
  ['of another sink', 'old', false],
  ['of an unknown sink', undefined, false],
])('a sink that has a position %s, ahead of the state, is complete from the start: %s, %s', async (_, by, isComplete) => {
  const { journal, directory, close } = await opened();
  await append(journal, 3);
  journal.sinkPositions.register('siem', 'file', 'x', beginning, undefined);
  journal.sinkPositions.select('siem', {});
  expect(journal.sinkProgress('siem').completeSince).toBe(0);
  await journal.found('siem', { ...(await taken(journal, 4, 'note')), sink: by });
  expect(journal.sinkProgress('siem')).toMatchObject({ acknowledged: 4, delivered: { seq: 4 }, resumeNote: 'note' });
  // The fourth record is dated base + 4, the second page was received at base + 1.
  const since = isComplete ? 0 : base + 5;
  expect(completeSinceOf(journal)).toEqual([since, since]);
  await close();
  const again = await opened({ directory });
  expect(completeSinceOf(again.journal)).toEqual([since, since]);
});

test('records that a sink got before a filter was lifted, unknown to the state, are not claimed', async () => {
  const { journal } = await opened();
  await append(journal, 3);
  journal.sinkPositions.register('siem', 'file', 'x', beginning, undefined);
  journal.sinkPositions.select('siem', { filter: { result: ['AccessDenied'] } });
  await journal.acknowledge('siem', { acknowledged: 2, delivered: await taken(journal, 2) }, []);
  // The sink got entry 4 with its filter, and the daemon was killed.
  journal.sinkPositions.select('siem', {});
  expect(journal.sinkProgress('siem').completeSince).toBe(base + 3);
  await journal.found('siem', { ...(await taken(journal, 4)), sink: 'siem' });
  expect(journal.sinkProgress('siem').completeSince).toBe(base + 5);
  await journal.found('siem', { ...(await taken(journal, 6)), sink: 'siem' });
  expect(journal.sinkProgress('siem').completeSince).toBe(base + 7);
  await journal.acknowledge('siem', { acknowledged: 6, delivered: undefined }, []);
});

test('the ledger has one checkpoint of an archive a day, also after a restart', async () => {
  const { journal, directory, clock, close } = await opened();
  const entries = async (from: Journal): Promise<unknown[]> =>
    (await from.read(0, { records: 100, bytes: 1e6 })).map(({ text }) => (JSON.parse(text) as { checkpoint: unknown }).checkpoint);
  for (const checkpoint of ['first', 'same day']) await journal.archiveCheckpoint('evidence', checkpoint);
  await journal.archiveCheckpoint('another', 'of another archive');
  await close();
  const { journal: again } = await opened({ directory, clock });
  await again.archiveCheckpoint('evidence', 'same day after a restart');
  clock.wall += 86_400_000;
  await again.archiveCheckpoint('evidence', 'next day');
  clock.wall -= 86_400_000;
  await again.archiveCheckpoint('evidence', 'clock set back');
  expect(await entries(again)).toEqual(['first', 'of another archive', 'next day']);
});
