/** The working copy of a shard: what reaches the database, in which order, and when a promise of the journal resolves. */
import { randomBytes } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { codeOf, WaybillError } from '../../../src/errors/errors.ts';
import { Journal } from '../../../src/journal/journal.ts';
import type { Commit, ShardDatabase } from '../../../src/journal/replica/shard-database.ts';
import { contentOf, contentOfCopy, ModelDatabase } from '../../support/journal/model-database.ts';
import { pageOf, source, temporary } from '../../support/journal/opening.ts';
import { faultsOf } from '../../support/journal/recompute.ts';
import { base, collected, second } from '../../support/records.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const noSignal = new AbortController().signal;
const unreachable = (): WaybillError => new WaybillError('database_unreachable', 'the connection was reset');

/** A journal on the model. `commit` replaces how a commit reaches it. */
async function shard(
  model: ModelDatabase,
  commit?: (commit: Commit, send: (commit: Commit) => boolean) => Promise<boolean>,
  maxSize = 2 ** 30,
) {
  const clock = new VirtualClock(base / 1000);
  const taken = model.take();
  const send = (given: Commit): boolean => model.carryOut(given);
  const database: ShardDatabase = commit ? { ...taken, commit: (given) => commit(given, send) } : taken;
  const options = {
    directory: temporary(),
    maxSize,
    retention: 1e9,
    version: '0.1.0',
    expectState: false,
    lockWait: 0,
    localSize: 0,
    database,
  };
  const journal = await Journal.open(options, clock, noSignal);
  journal.registerSource(source, 'tenant', base);
  return { journal, clock };
}

const page = (i: number) => pageOf([collected(i, base + i * second)]);

test('the next owner continues with what the last one committed', async () => {
  const model = new ModelDatabase();
  const first = await shard(model);
  await first.journal.append(page(1));
  const before = contentOf(first.journal.db);
  await first.journal[Symbol.asyncDispose]();
  const second = await shard(model);
  expect(contentOfCopy(second.journal.db, model.rows)).toEqual(before);
  expect(second.journal.fresh).toBe(false);
  expect(second.journal.id).toBe(first.journal.id);
  expect(await second.journal.append(page(1))).toMatchObject({ appended: 0, known: 1 });
  await second.journal[Symbol.asyncDispose]();
});

test('a promise of the journal resolves after the commit, and so does a read of what is not committed yet', async () => {
  const model = new ModelDatabase();
  const held: (() => void)[] = [];
  let isHeld = false;
  const { journal } = await shard(model, async (commit, send) => {
    if (isHeld) await new Promise<void>((resolve) => held.push(resolve));
    return send(commit);
  });
  await journal.settled();
  isHeld = true;
  const events: string[] = [];
  const changed = journal.changed().then(() => events.push('changed'));
  const appended = journal.append(page(1)).then(() => events.push('appended'));
  while (journal.head().seq === 0) await setImmediate();
  const read = journal.read(0, { records: 10, bytes: 1e6 }).then((entries) => events.push(`read ${entries.length}`));
  while (held.length === 0) await setImmediate();
  await setImmediate();
  expect(events).toEqual([]);
  expect(model.rows.prepare('SELECT count(*) AS n FROM segments').get()).toEqual({ n: 0 });
  isHeld = false;
  held.forEach((release) => release());
  await Promise.all([changed, appended, read]);
  expect(events.toSorted()).toEqual(['appended', 'changed', 'read 1']);
  expect(model.rows.prepare('SELECT count(*) AS n FROM segments').get()).toEqual({ n: 1 });
  await journal[Symbol.asyncDispose]();
});

test('a commit whose answer is lost is sent again with the same content, and counts once', async () => {
  const model = new ModelDatabase();
  const sent: Commit[] = [];
  const { journal } = await shard(model, async (commit, send) => {
    sent.push(structuredClone(commit));
    const result = send(commit);
    if (sent.filter(({ number }) => number === commit.number).length < 3) throw unreachable();
    return result;
  });
  const appended = journal.append(page(1));
  while (!sent.some(({ number }) => number === 1)) await setImmediate();
  // Stored while the first commit is under way: it waits for the next one.
  const after = journal.setProfile(source, '{}');
  await Promise.all([appended, after]);
  for (const { number } of sent)
    expect(sent.filter((each) => each.number === number)).toEqual(Array(3).fill(sent.find((each) => each.number === number)));
  expect(contentOf(model.rows)).toEqual(contentOf(journal.db));
  await journal[Symbol.asyncDispose]();
});

test('a copy can fetch more than a full journal', async () => {
  const model = new ModelDatabase();
  const texts: string[] = [];
  for (let owner = 0; owner < 3; owner += 1) {
    const { journal } = await shard(model, undefined, 2 ** 18);
    for (let isFull = false; !isFull;) {
      const record = collected(texts.length, base + texts.length * second, { noise: randomBytes(3_000).toString('hex') });
      isFull = await journal.append(pageOf([record])).then(
        () => texts.push(record.text) < 0,
        (thrown: unknown) => codeOf(thrown) === 'journal_full',
      );
    }
    const found: unknown[] = [];
    for (let after = 0; after < texts.length; after = found.length)
      found.push(...(await journal.read(after, { records: 5, bytes: 1e6 })).map(({ text }) => text));
    expect(found).toEqual(texts);
    await journal[Symbol.asyncDispose]();
  }
});

test('a commit that arrives after later ones changes nothing', async () => {
  const model = new ModelDatabase();
  const late: Commit[] = [];
  const { journal } = await shard(model, async (commit, send) => {
    if (!late.some(({ number }) => number === commit.number)) {
      late.push(structuredClone(commit));
      throw unreachable();
    }
    return send(commit);
  });
  for (let i = 1; i <= 3; i += 1) await journal.append(page(i));
  for (const commit of late) expect(model.carryOut(commit)).toBe(false);
  expect(contentOf(model.rows)).toEqual(contentOf(journal.db));
  await journal[Symbol.asyncDispose]();
});

test('another member took the shard: nothing counts any more', async () => {
  const model = new ModelDatabase();
  const { journal } = await shard(model);
  await journal.append(page(1));
  const before = contentOf(model.rows);
  model.take();
  await expect(journal.append(page(2))).rejects.toMatchObject({ code: 'lease_lost' });
  await expect(journal.read(0, { records: 10, bytes: 1e6 })).rejects.toMatchObject({ code: 'lease_lost' });
  expect(contentOf(model.rows)).toEqual(before);
  await journal[Symbol.asyncDispose]();
});

// promise: A fail-over of the database of a fleet to a standby that lacks the last commits: their owner writes them again.
test('the database lost commits: the next one writes their rows again, and late attempts of the lost ones change nothing', async () => {
  const model = new ModelDatabase();
  const sent: Commit[] = [];
  let isAnswerLost = false;
  const { journal } = await shard(model, async (commit, send) => {
    sent.push(structuredClone(commit));
    const isDone = send(commit);
    // A repair has no half transaction, whatever waits while it is sent.
    expect(faultsOf(model.rows)).toEqual([]);
    if (!isAnswerLost) return isDone;
    isAnswerLost = false;
    throw unreachable();
  });
  for (let i = 1; i <= 6; i += 1) await journal.append(page(i));
  const lost = model.fence.commits - 3;
  model.rollBack(4);
  expect(model.rows.prepare('SELECT count(*) AS n FROM segments').get()).toEqual({ n: 2 });
  const early = sent.slice();
  isAnswerLost = true;
  // The copy keeps what a repair needs.
  while (journal.shrinkCopy() > 0);
  const refused = journal.append(page(7));
  while (sent.length === early.length) await setImmediate();
  journal.registerSource('second', 'tenant', base);
  await Promise.all([refused, journal.append({ ...page(1), source: 'second' })]);
  expect(model.repairs).toEqual([[lost, lost + 3]]);
  expect(contentOf(model.rows)).toEqual(contentOf(journal.db));
  for (const commit of early) expect(model.carryOut(commit)).toBe(false);
  // Another loss, after which an earlier attempt of a lost commit arrives first: the repair begins where it ended.
  await journal.append(page(8));
  model.rollBack(2);
  const again = sent.find(({ fence }) => fence.commits === model.fence.commits);
  expect(again && model.carryOut(again)).toBe(true);
  await journal.append(page(9));
  expect(contentOf(model.rows)).toEqual(contentOf(journal.db));
  expect((await journal.read(0, { records: 20, bytes: 1e6 })).map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  // Another owner has the shard, and the database loses commits: the repair is refused.
  model.take();
  model.rollBack(1);
  const before = contentOf(model.rows);
  await expect(journal.append(page(11))).rejects.toMatchObject({ code: 'lease_lost' });
  const [late] = sent.filter(({ number, fence }) => number > fence.commits + 1);
  expect(late && model.carryOut({ ...late, fence: { ...late.fence, commits: model.fence.commits } })).toBe(false);
  expect(contentOf(model.rows)).toEqual(before);
  await journal[Symbol.asyncDispose]();
});

test('the database lost commits whose rows the copy has forgotten: nothing counts any more', async () => {
  const model = new ModelDatabase();
  const { journal, clock } = await shard(model);
  await journal.append(page(1));
  await journal.append(page(2));
  await clock.sleep(121_000, noSignal);
  await journal.append(page(3));
  model.rollBack(3);
  const before = contentOf(model.rows);
  await expect(journal.append(page(4))).rejects.toMatchObject({ code: 'database_rolled_back' });
  await expect(journal.read(0, { records: 10, bytes: 1e6 })).rejects.toMatchObject({ code: 'database_rolled_back' });
  expect(contentOf(model.rows)).toEqual(before);
  await journal[Symbol.asyncDispose]();
});
