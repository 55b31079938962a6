import { beforeAll, describe, expect, it } from 'vitest';
import type { EntryLine } from '../../../src/archive/line.ts';
import { formatVerifier, openNote, parseVerifier, signerOf, signNote } from '../../../src/archive/signed-note.ts';
import type { Verifier } from '../../../src/archive/signed-note.ts';
import { Findings } from '../../../src/archive/verify/findings.ts';
import type { Finding } from '../../../src/archive/verify/findings.ts';
import { verifyArchive } from '../../../src/archive/verify/verify.ts';
import type { VerifyOptions, VerifyReport } from '../../../src/archive/verify/verify.ts';
import {
  keyFrom,
  MemoryStore,
  minute,
  openWriter,
  provenLine,
  recordLine,
  start,
  through,
  windowLines,
  writeArchive,
} from '../../support/archive.ts';
import { hasPython, resultOf, secondVerifier } from '../../support/second-verifier.ts';

const originOf = (store: MemoryStore): string => store.files.get('checkpoints/0000000001')?.toString().split('\n')[0] ?? '';

function verifierOf(store: MemoryStore, seed = 1): Verifier {
  const verifier = parseVerifier(formatVerifier(signerOf(originOf(store), keyFrom(seed))));
  if (!verifier) throw new Error('expected a verifier key');
  return verifier;
}

/** Verifies an archive with both verifiers, which must agree. */
async function verify(store: MemoryStore, options: VerifyOptions = {}): Promise<VerifyReport> {
  const verifier = verifierOf(store);
  const report = await verifyArchive(store, [verifier], options);
  if (hasPython) {
    const { since, from, to, removedBefore } = options;
    const [judgement = []] = await secondVerifier(store.files, { key: formatVerifier(verifier), since, from, to, removedBefore });
    expect(resultOf(judgement), JSON.stringify([judgement, report.findings])).toBe(report.result);
  }
  return report;
}

async function archiveOf(lines: readonly EntryLine[], perSegment = lines.length): Promise<MemoryStore> {
  const store = new MemoryStore();
  await writeArchive(store, lines, perSegment);
  return store;
}

const summaries = ({ findings }: VerifyReport): string[] => findings.map(({ severity, object }: Finding) => `${severity} ${object}`);

describe('an archive', () => {
  const lines = windowLines(60, 9);
  let store: MemoryStore;
  beforeAll(async () => {
    store = await archiveOf(lines, 170);
  });

  it('without changes is intact', async () => {
    expect(await verify(store)).toEqual({
      result: 'intact',
      origin: originOf(store),
      checkpoints: 4,
      missing: 0,
      lines: 604,
      records: 540,
      // 170 lines and a position in each of the first segments.
      keys: [{ key: expect.stringMatching(`^${originOf(store).replace('+', '.')}\\+[0-9a-f]{8}$`) as string, first: 171, last: 604 }],
      archivedAt: start + 600 * 1_000_000,
      // The third line of a checkpoint (C2SP tlog-checkpoint).
      root: store.files.get('checkpoint')?.toString().split('\n')[2],
      sources: [
        {
          ...{ source: 'production', windows: 60, proven: 60, notChecked: 0, from: start, to: start + 60 * minute },
          ...{ records: 540, digest: expect.stringMatching(/^[0-9a-f]{64}$/) as string },
        },
      ],
      findings: [],
      confirmed: 0,
    });
  });

  it('whose superseded partial tiles were removed is intact', async () => {
    const pruned = new MemoryStore([...store.files].filter(([path]) => !path.includes('.p/') || /\.p\/(92|2)$/.test(path)));
    expect(pruned.files.size).toBeLessThan(store.files.size);
    expect(await verify(pruned)).toMatchObject({ result: 'intact', findings: [] });
  });

  it('is not altered by files of unfinished attempts', async () => {
    const files = new MemoryStore(store.files);
    const [segment] = [...files.files].find(([path]) => path.startsWith('segments/')) ?? [''];
    const attempt = segment.replace(/-.*/, `-${'0'.repeat(64)}.ndjson.gz`);
    files.files.set(attempt, Buffer.from('unfinished'));
    files.files.set('segments/.1234.part', Buffer.from(''));
    files.files.set('checkpoints/.1234.part', Buffer.from(''));
    const report = await verify(files);
    expect(report.result).toBe('intact');
    expect(summaries(report).sort()).toEqual(['note checkpoints/.1234.part', 'note segments/.1234.part', `note ${attempt}`]);
  });

  it('proves nothing without the key that signed it', async () => {
    const report = await verifyArchive(store, [verifierOf(store, 2)]);
    expect(report).toMatchObject({ result: 'unproven', lines: 0, checkpoints: 0 });
    expect(await verifyArchive(new MemoryStore(), [verifierOf(store)])).toMatchObject({ result: 'altered' });
  });
});

describe('planted files', () => {
  it('are named up to 10,000 of a kind, and counted beyond', async () => {
    const store = await archiveOf([recordLine(1, start)]);
    const planted = 10_002;
    for (let i = 0; i < planted; i += 1) {
      for (const path of [`keys/planted${i}`, `planted${i}`, `timestamps/${String(i + 100).padStart(10, '0')}.tsr`])
        store.files.set(path, Buffer.alloc(0));
    }
    const { findings } = await verifyArchive(store, [verifierOf(store)], { timeStamps: { roots: [], now: start } });
    const notes = findings.filter(({ severity }) => severity === 'note');
    for (const kind of ['keys/planted', 'planted', 'timestamps/0'])
      expect(notes.filter(({ object }) => object.startsWith(kind))).toHaveLength(10_000);
    expect(notes.slice(-3)).toEqual(
      [
        'it is not one of the keys of --key, and no evidence',
        'it was not checked, and is no evidence',
        'no key of --key signed its checkpoint: it is no evidence',
      ].map((reason) => ({ severity: 'note', object: 'other files', message: `2 more: ${reason}` })),
    );
  });
});

describe('a stop', () => {
  const records = Array.from({ length: 3_000 }, (_, i) => recordLine(i + 1, start));
  // Each line counts every record: minutes of work.
  const windows = Array.from({ length: 6_000 }, (_, i) =>
    provenLine(records.length + i + 1, start - i - 1, start + minute, [], { digest: '0'.repeat(64) }),
  );

  it('ends the verification while it counts the windows of one segment', { timeout: 60_000 }, async () => {
    const store = await archiveOf([...records, ...windows.map((line) => ({ ...line, records: 1, total: 1 }))]);
    const [stop, findings, reason] = [new AbortController(), new Findings(), new Error('stopped')];
    const read = store.read.bind(store);
    store.read = (path) => {
      if (path.startsWith('segments/')) setTimeout(() => stop.abort(reason), 0);
      return read(path);
    };
    await expect(verifyArchive(store, [verifierOf(store)], { signal: stop.signal }, findings)).rejects.toBe(reason);
    expect(findings.all.length).toBeLessThan(windows.length / 2);
  });
});

describe('retention', () => {
  const lines = windowLines(60, 9);
  // Segments of 170 lines: the last line of the second one is the line of entry 340.
  const secondEnds = start + 340 * 1_000_000;

  async function without(...removed: readonly number[]): Promise<MemoryStore> {
    const store = await archiveOf(lines, 170);
    const paths = [...store.files.keys()].filter((each) => each.startsWith('segments/')).sort();
    for (const i of removed) store.files.delete(paths[i] ?? '');
    return store;
  }
  const judged = async (store: MemoryStore, removedBefore: number): Promise<VerifyReport> => verify(store, { removedBefore });

  it('may remove the oldest segments: the windows after the first remaining one are proven', async () => {
    const report = await judged(await without(0), secondEnds + 1);
    expect(report).toMatchObject({ result: 'intact', lines: 604, sources: [{ from: start + 34 * minute }] });
    expect(summaries(report)).toEqual(['note segments/0000000000000000-…', 'note ledger']);
    // 17 windows are in the first remaining segment. They may lack records of the removed one.
    expect(report.findings[1]?.message).toContain(': 17, ');
    expect(report.sources[0]?.proven).toBe(26);
  });

  it('may remove a segment after it was listed', async () => {
    const store = await archiveOf(lines, 170);
    const [first = ''] = [...store.files.keys()].filter((each) => each.startsWith('segments/')).sort();
    const shrinking = new MemoryStore(store.files);
    shrinking.read = async (path) => (path === first ? undefined : store.read(path));
    const report = await judged(shrinking, secondEnds + 1);
    expect(report).toMatchObject({ result: 'intact', lines: 604 });
    expect(summaries(report)).toEqual([`note ${first}`, 'note ledger']);
  });

  it('excuses no later window because of a record with a date in the future', async () => {
    const at = start + 10 * minute;
    const later = [recordLine(24, at), recordLine(25, at + 1_000_000)];
    const store = new MemoryStore();
    await writeArchive(store, windowLines(1, 9), 10);
    const writer = await openWriter(store, 'continued');
    await writer.append([recordLine(12, start + 73 * 365 * 1_440 * minute)], through(23));
    await writer.append([...later.slice(1), provenLine(26, at, at + minute, later)], through(26));
    store.files.delete([...store.files.keys()].filter((each) => each.startsWith('segments/')).sort()[0] ?? '');
    const report = await judged(store, Infinity);
    expect(report.result).toBe('altered');
    expect(summaries(report)).toContain('altered production 2026-07-01T00:10:00.000Z/2026-07-01T00:11:00.000Z');
  });

  it.each<[string, readonly number[], number]>([
    ['a segment between others that is not old enough', [0, 2], secondEnds + 1],
    ['all segments', [0, 1, 2, 3], Infinity],
  ])('does not excuse %s', async (_, removed, before) => {
    expect(await judged(await without(...removed), before)).toMatchObject({ result: 'altered' });
  });

  it('excuses windows of the removed segments if the clock of the collector was behind', async () => {
    const store = new MemoryStore();
    const writer = await openWriter(store, 'behind');
    for (const batch of [lines.slice(0, 12), lines.slice(12, 30)])
      await writer.append(batch, { ...through(batch.at(-1)?.seq ?? 0), at: start - minute });
    store.files.delete([...store.files.keys()].filter((each) => each.startsWith('segments/')).sort()[0] ?? '');
    expect(await judged(store, Infinity)).toMatchObject({ result: 'intact' });
  });

  it('excuses windows of the removed segments if the clock of the collector was set back between them', async () => {
    const store = new MemoryStore();
    const writer = await openWriter(store, 'set back');
    const [later, earlier] = [start + 10 * minute, start - minute];
    // The third window: the records 21 to 29, and its proof.
    for (const [from, to, at] of [
      [0, 24, later],
      [24, 25, later],
      [25, 27, earlier],
      [27, 27, earlier],
      [27, 30, earlier],
    ] as const)
      // prettier-ignore
      await writer.append(lines.slice(from, to), { ...through(to), at });
    const paths = [...store.files.keys()].filter((each) => each.startsWith('segments/')).sort();
    for (const i of [0, 2]) store.files.delete(paths[i] ?? '');
    expect(await judged(store, Infinity)).toMatchObject({ result: 'intact' });
  });

  it('does not excuse a segment that is damaged', async () => {
    const store = await archiveOf(lines, 170);
    const [path] = [...store.files.keys()].filter((each) => each.startsWith('segments/')).sort();
    store.files.set(path ?? '', Buffer.from('changed'));
    expect(await judged(store, Infinity)).toMatchObject({ result: 'altered' });
  });
});

describe('another signing key', () => {
  const lines = windowLines(6, 3);
  const verifiers = (store: MemoryStore, ...seeds: readonly number[]): Verifier[] => seeds.map((seed) => verifierOf(store, seed));

  /** Signs parts of the lines with these keys, each after the key before. */
  async function signedBy(...seeds: readonly number[]): Promise<MemoryStore> {
    const store = new MemoryStore();
    for (const [i, seed] of seeds.entries()) {
      const previousKey = i === 0 ? undefined : keyFrom(seeds[i - 1] ?? 0);
      const writer = await openWriter(store, `part ${i}`, { key: keyFrom(seed), previousKey });
      const part = lines.slice(i * 8, i * 8 + 8);
      for (const half of [part.slice(0, 4), part.slice(4)]) await writer.append(half, through(half.at(-1)?.seq ?? 0));
    }
    return store;
  }

  /** Runs both verifiers with these keys. */
  async function judged(store: MemoryStore, ...seeds: readonly number[]): Promise<VerifyReport> {
    const report = await verifyArchive(store, verifiers(store, ...seeds));
    const key = verifiers(store, ...seeds)
      .map(formatVerifier)
      .join('\n');
    if (hasPython) expect(resultOf((await secondVerifier(store.files, { key }))[0] ?? [])).toBe(report.result);
    return report;
  }

  const signers = (store: MemoryStore, number: number): number =>
    store.files
      .get(`checkpoints/000000000${number}`)
      ?.toString()
      .match(/^\u2014 /gm)?.length ?? 0;

  it('starts with one checkpoint that both keys sign', async () => {
    const store = await signedBy(1, 2, 3);
    expect([1, 2, 3, 4, 5, 6].map((number) => signers(store, number))).toEqual([1, 1, 2, 1, 2, 1]);
    // The files of the first keys are no evidence, whichever keys the auditor trusts.
    expect((await judged(store, 1, 2, 3)).findings).toEqual([]);
  });

  it('without a checkpoint that both keys signed leaves the archive unproven', async () => {
    const store = await signedBy(1, 2);
    const { text } = openNote(store.files.get('checkpoints/0000000003') ?? Buffer.alloc(0), []) as { text: string };
    store.files.set('checkpoints/0000000003', Buffer.from(signNote(text, [signerOf(originOf(store), keyFrom(2))])));
    expect(summaries(await judged(store, 1, 2))).toEqual(['unproven checkpoints/0000000003']);
  });

  it('does not continue an archive of a third key', async () => {
    const store = await signedBy(1);
    const writer = openWriter(store, 'foreign', { key: keyFrom(3), previousKey: keyFrom(2) });
    await expect(writer).rejects.toMatchObject({ code: 'archive_broken' });
  });
});

describe('the ledger of an archive', () => {
  const records = [1, 2, 3].map((seq) => recordLine(seq, start + seq));
  const [first, second, third] = records as [(typeof records)[0], (typeof records)[0], (typeof records)[0]];
  const window = [start, start + minute] as const;
  const name = 'production 2026-07-01T00:00:00.000Z/2026-07-01T00:01:00.000Z';

  it.each([
    ['lacks a record that was proven', [first, second, provenLine(4, ...window, records)], 'altered'],
    ['has another record than was proven', [first, second, { ...third, uid: first.uid }, provenLine(4, ...window, records)], 'altered'],
    ['has a record before its window', [first, second, recordLine(3, start - 1), provenLine(4, ...window, records)], 'altered'],
    ['has the record of another source', [first, second, recordLine(3, start, 'test'), provenLine(4, ...window, records)], 'altered'],
    ['has the last record after its proof', [first, second, provenLine(3, ...window, records), { ...third, seq: 4 }], 'altered'],
    ['has more records than the service counted', [...records, provenLine(4, ...window, [first, second])], 'unproven'],
    ['has an open gap', [...records, provenLine(4, ...window, records, { state: 'gap', reason: 'total' })], 'unproven'],
    ['has an open gap without a reason', [...records, provenLine(4, ...window, records, { state: 'gap' })], 'unproven'],
    ['has an accepted gap', [...records, provenLine(4, ...window, records, { state: 'accepted' })], 'unproven'],
    ['has a proof that a later count did not confirm', [...records, provenLine(4, ...window, records, { reason: 'reread' })], 'unproven'],
    [
      'has a gap that a later line proves',
      [first, second, provenLine(3, ...window, [first], { state: 'gap' }), { ...third, seq: 4 }, provenLine(5, ...window, records)],
      'intact',
    ],
    [
      'has a late record, and a recount that proves it',
      [first, second, provenLine(3, ...window, [first, second]), { ...third, seq: 4, late: true }, provenLine(5, ...window, records)],
      'intact',
    ],
    [
      'has a suspension and an operation',
      [...records, provenLine(4, ...window, records), provenLine(5, start, start, [], { state: 'suspended' })],
      'intact',
    ],
  ] as const)('that %s', async (_, lines, result) => {
    const report = await verify(await archiveOf(lines));
    expect(report.result).toBe(result);
    const severe = summaries(report).filter((each) => !/^note|^altered segments/.test(each));
    if (result !== 'intact') expect(severe).toEqual([`${result} ${name}`]);
  });

  it.each<[string, Pick<VerifyOptions, 'from' | 'to'>]>([
    ['before its first window', { from: start - 2 * minute, to: start - minute }],
    ['up to its first window', { to: start }],
    ['after its last window', { from: start + 2 * minute, to: start + 3 * minute }],
    ['since its last window', { from: start + 2 * minute }],
  ])('proves nothing about a period %s', async (_, period) => {
    const report = await verify(await archiveOf([...records, provenLine(4, ...window, records)]), period);
    expect(report.result).toBe('unproven');
    expect(summaries(report)).toEqual(['unproven production']);
  });

  it('names each source without a window in the period', async () => {
    const later = recordLine(5, start + 2 * minute, 'other');
    const lines = [...records, provenLine(4, ...window, records), later];
    const proof = provenLine(6, start + 2 * minute, start + 3 * minute, [later], { source: 'other' });
    const report = await verify(await archiveOf([...lines, proof]), { from: start + 2 * minute, to: start + 3 * minute });
    expect(summaries(report)).toEqual(['unproven production']);
    expect(report.sources.map(({ source, proven }) => [source, proven])).toEqual([['other', 1]]);
    expect(
      summaries(
        await verify(await archiveOf([{ kind: 'operation', seq: 1, at: start, actor: null, operation: 'reload', detail: {} }]), {
          to: start,
        }),
      ),
    ).toEqual(['unproven ledger']);
  });

  // Only the holder of the key can sign such lines.
  const ledgerLine = provenLine(4, ...window, records);
  it.each<[string, object]>([
    ...[
      { records: 'three' },
      { records: -1 },
      { records: 1.5 },
      { state: 'closed' },
      { state: undefined },
      { source: 7 },
      { source: ['a'] },
    ].map((change) => [`ledger entry with ${JSON.stringify(change)}`, { ...ledgerLine, ...change }] as [string, object]),
    ['ledger entry with a digest that is none', { ...ledgerLine, digest: 'abc' }],
    ['line of an unknown kind', { kind: 'remark', seq: 4, at: start }],
  ])('that has a %s is altered', async (_, line) => {
    const report = await verify(await archiveOf([...records, line as EntryLine]));
    expect(report.result).toBe('altered');
    expect(report.findings[0]?.object).toMatch(/^segments\//);
  });

  it.each<[string, object]>([
    ...[{ filtered: 'no' }, { sources: 7 }, { sources: [7] }, { journal: 7 }, { timestamp: { checkpoint: 1 } }].map(
      (change) => [JSON.stringify(change), change] as [string, object],
    ),
  ])('whose position line has %s is altered', async (_, change) => {
    const store = new MemoryStore();
    const writer = await openWriter(store, 'position');
    await writer.append([...records, ledgerLine], { ...through(4), ...change });
    expect(await verify(store)).toMatchObject({ result: 'altered' });
  });

  it('proves only the entries since its start', async () => {
    const store = new MemoryStore();
    const writer = await openWriter(store, 'late', { beginsAfter: 2 });
    // The daemon sent entries before the sink existed: the first segment follows entry 2.
    const later = [recordLine(5, start + 2 * minute), recordLine(6, start + 2 * minute + 1)];
    await writer.append(
      [third, provenLine(4, ...window, records), ...later, provenLine(7, start + 2 * minute, start + 3 * minute, later)],
      // The clock of the collector is an hour behind the clock of the service.
      { ...through(7), at: start - 60 * minute, completeSince: start + minute },
    );
    const report = await verify(store);
    expect(report).toMatchObject({ result: 'unproven', sources: [{ windows: 2, proven: 1 }] });
    expect(summaries(report)).toContain(`unproven ${name}`);
  });

  it('proves a source from the time at which the sink received it', async () => {
    const store = new MemoryStore();
    const writer = await openWriter(store, 'widened');
    await writer.append([recordLine(1, start, 'other')], { ...through(2), sources: ['other'] });
    // Entry 2 is a record of the source from before the sink received it.
    const at = start + 90_000_000;
    await writer.append([third, provenLine(4, ...window, records)], { ...through(4), sources: ['other', 'production'], completeSince: at });
    const later = [recordLine(5, start + 2 * minute), recordLine(6, start + 2 * minute + 1)];
    const proof = provenLine(7, start + 2 * minute, start + 3 * minute, later);
    await writer.append([...later, proof], { ...through(7), sources: null });
    const report = await verify(store);
    expect(summaries(report).filter((each) => !each.startsWith('note'))).toEqual([`unproven ${name}`]);
    const shorter = new MemoryStore();
    const second = await openWriter(shorter, 'shortened');
    await second.append([recordLine(1, start, 'other')], { ...through(2), sources: ['other'] });
    await second.append([...later.slice(1), proof], { ...through(7), sources: ['other', 'production'], completeSince: at });
    expect(await verify(shorter)).toMatchObject({ result: 'altered' });
  });

  it('names the journal that follows another, and proves the contents of the new one', async () => {
    const store = new MemoryStore();
    const writer = await openWriter(store, 'continued');
    await writer.append([first, second], through(2));
    const next = await openWriter(store, 'adopted', { beginsAfter: 0 });
    await next.append([...records, provenLine(4, ...window, records)], { ...through(4), journal: 'journal-2' });
    const report = await verify(store);
    expect(report).toMatchObject({ result: 'unproven', sources: [{ windows: 1, proven: 1 }] });
    // The records that the first journal archived too.
    const repeated = expect.objectContaining({
      severity: 'note',
      message: expect.stringMatching(/^2 records .* count once$/) as string,
    }) as unknown;
    expect(report.findings).toEqual([expect.objectContaining({ severity: 'unproven' }), repeated]);
  });

  it('leaves windows open that overlap entries missing from the archive, and proves the others', async () => {
    const store = new MemoryStore();
    const writer = await openWriter(store, 'retired');
    const later = [recordLine(9, start + 2 * minute), recordLine(10, start + 2 * minute + 1)];
    const completeSince = start + 2 * minute;
    await writer.append([first], through(1));
    // Entries 2 to 7 were pruned while the sink was retired.
    await writer.append([], { ...through(7), after: 7, completeSince });
    const lines = [provenLine(8, ...window, records), ...later, provenLine(11, start + 2 * minute, start + 3 * minute, later)];
    await writer.append(lines, { ...through(11), completeSince });
    const report = await verify(store);
    expect(report).toMatchObject({ result: 'unproven', sources: [{ windows: 2, proven: 1 }] });
    expect(summaries(report).filter((each) => each.startsWith('unproven'))).toEqual([
      expect.stringContaining('unproven segments/'),
      `unproven ${name}`,
    ]);
    await writer.append([provenLine(12, start + 4 * minute, start + 5 * minute, [recordLine(5, start + 4 * minute)])], through(12));
    expect(await verify(store)).toMatchObject({ result: 'altered' });
  });

  it('is excused by the filter of the sink', async () => {
    const store = new MemoryStore();
    const writer = await openWriter(store, 'filtered');
    await writer.append([first, provenLine(4, ...window, records)], { ...through(4), filtered: true });
    expect(await verify(store)).toMatchObject({ result: 'unproven' });
  });

  it('leaves time open that no window covers', async () => {
    const store = await archiveOf([provenLine(1, start, start + minute, []), provenLine(2, start + 2 * minute, start + 3 * minute, [])]);
    expect(await verify(store)).toMatchObject({ result: 'intact', findings: [{ severity: 'note' }] });
    expect(await verify(store, { from: start, to: start + 3 * minute })).toMatchObject({ result: 'unproven' });
    expect(await verify(store, { from: start, to: start + minute })).toMatchObject({ result: 'intact', findings: [] });
    expect(await verify(store, { from: start - 1, to: start + minute })).toMatchObject({ result: 'unproven' });
    expect(await verify(store, { from: start + 2 * minute, to: start + 4 * minute })).toMatchObject({
      ...{ result: 'unproven', sources: [{ from: start + 2 * minute, to: start + 3 * minute }] },
    });
  });
});
