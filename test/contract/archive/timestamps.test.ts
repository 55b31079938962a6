/** Both verifiers agree about time stamps. Their tokens are signed by `openssl cms` at chosen times. */
import { spawnSync } from 'node:child_process';
import { createHash, X509Certificate } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { formatVerifier, parseVerifier, signerOf } from '../../../src/archive/signed-note.ts';
import { verifyArchive } from '../../../src/archive/verify/verify.ts';
import type { VerifyOptions, VerifyReport } from '../../../src/archive/verify/verify.ts';
import { keyFrom, MemoryStore, openWriter, start, through, windowLines } from '../../support/archive.ts';
import { Authority, hasOpenssl } from '../../support/time-stamp-authority.ts';
import { temporary } from '../../support/model-journal.ts';
import { hasPython, resultOf, secondVerifier, verifyProgram } from '../../support/second-verifier.ts';

const day = 86_400_000;
/** Noon of the first day, ms. */
const noon = start / 1000 + day / 2;

const path = (checkpoint: number): string => `timestamps/${String(checkpoint).padStart(10, '0')}.tsr`;

describe.skipIf(!hasOpenssl || !hasPython)('time stamps', () => {
  const validity = { validFrom: noon - 30 * day, validTo: noon + 100 * day };
  const made: Authority[] = [];
  const authority = (name: string, options: ConstructorParameters<typeof Authority>[1] = validity): Authority => {
    const one = new Authority(name, options);
    made.push(one);
    return one;
  };
  let first: Authority;
  let archive: MemoryStore;
  beforeAll(async () => {
    first = authority('First');
    archive = await stampedOn([0, 1, 2]);
  });
  afterAll(() => made.forEach((each) => each[Symbol.dispose]()));

  /** An archive of one segment a day. On these days its checkpoint is stamped, and the next segment names the time stamp. */
  async function stampedOn(
    days: readonly number[],
    by: (day: number) => Authority = () => first,
    segments = 4,
    status?: string,
  ): Promise<MemoryStore> {
    const store = new MemoryStore();
    const writer = await openWriter(store, 'stamped');
    const lines = windowLines(segments, 3);
    let timestamp: { checkpoint: number; sha256: string } | undefined;
    for (let i = 0; i < segments; i += 1) {
      const batch = lines.slice(i * 4, i * 4 + 4);
      await writer.append(batch, { ...through(batch.at(-1)?.seq ?? 0), at: (noon + i * day) * 1000, timestamp });
      if (!days.includes(i)) continue;
      const token = by(i).responseAt(noon + i * day + 60_000, checkpoint(store, i + 1), status);
      store.files.set(path(i + 1), token);
      timestamp = { checkpoint: i + 1, sha256: createHash('sha256').update(token).digest('hex') };
    }
    return store;
  }

  const checkpoint = (store: MemoryStore, number: number): Buffer =>
    store.files.get(`checkpoints/${String(number).padStart(10, '0')}`) ?? Buffer.alloc(0);

  type Given = Pick<VerifyOptions, 'keyUntil' | 'freshSince' | 'since' | 'within'>;

  async function judged(
    store: MemoryStore,
    roots: readonly Authority[] = [first],
    now = noon + 4 * day,
    given: Given = {},
  ): Promise<VerifyReport> {
    const origin = checkpoint(store, 1).toString().split('\n')[0] ?? '';
    const key = formatVerifier(signerOf(origin, keyFrom(1)));
    const verifier = parseVerifier(key);
    const timeStamps = { roots: roots.map(({ root }) => new X509Certificate(root)), now: now * 1000 };
    const report = await verifyArchive(store, verifier ? [verifier] : [], roots.length === 0 ? given : { ...given, timeStamps });
    const options = { ...given, key, roots: roots.map(({ root }) => root).join(''), now: Math.floor(now / 1000) };
    const [judgement = []] = await secondVerifier(store.files, options);
    expect(resultOf(judgement), JSON.stringify([judgement, report.findings])).toBe(report.result);
    const severe = (all: readonly (readonly [string, string])[]): unknown[] => all.filter(([severity]) => severity !== 'note');
    expect(severe(judgement)).toEqual(severe(report.findings.map(({ severity, object }) => [severity, object] as const)));
    return report;
  }

  const summaries = ({ findings }: VerifyReport): string[] => findings.map(({ severity, object }) => `${severity} ${object}`);

  it('show when the lines existed', async () => {
    expect(await judged(archive)).toMatchObject({
      ...{ result: 'intact', lines: 20, findings: [] },
      timeStamps: { count: 3, lines: 15, newest: (noon + 2 * day + 60_000) * 1000 },
    });
  });

  it('are dated by their signed part, not by the text of their status', async () => {
    expect(await judged(await stampedOn([0], undefined, 2, 'x\nTime stamp: garbage garbage 2020 GMT\n'))).toMatchObject({
      result: 'intact',
    });
    const ended = authority('Ended', { ...validity, validTo: noon + day });
    const early = new Date(noon + day / 2).toUTCString().replace(/^\w+, (\d+) (\w+) (\d+) (.*) GMT$/, 'Time stamp: $2 $1 $4 $3 GMT');
    const store = await stampedOn([0, 2], (at) => (at === 0 ? ended : first), 4, `x\n${early}\nTST info:\n${early}\n`);
    expect(summaries(await judged(store, [ended, first]))).toContain(`unproven ${path(1)}`);
  });

  it('are mentioned when no certificate is given to check them', async () => {
    const report = await judged(archive, []);
    expect(report).toMatchObject({ result: 'intact', findings: [{ severity: 'note', object: 'timestamps/' }], timeStamps: undefined });
  });

  it('show that an archive was written anew long after its lines, and stamped then', async () => {
    const store = await stampedOn([3]);
    expect(summaries(await judged(store)).filter((each) => !each.startsWith('note'))).toEqual(['unproven timestamps/']);
    expect(await judged(store, [first], noon + 4 * day, { within: 4 * day * 1000 })).toMatchObject({
      ...{ result: 'intact', timeStamps: { lines: 20 }, within: (3 * day + 60_000) * 1000 },
    });
    expect((await judged(store, [first], noon + 4 * day, { within: 3 * day * 1000 })).result).toBe('unproven');
  });

  it('must not be absent from the newest days', async () => {
    expect((await judged(await stampedOn([0], undefined, 3))).result).toBe('intact');
    expect((await judged(await stampedOn([0], undefined, 5))).result).toBe('unproven');
  });

  it('prove what a stolen key signed before the theft', async () => {
    const until = (days: number): Given => ({ keyUntil: (noon + days * day) * 1000 });
    const whole = await stampedOn([0, 1, 2, 3]);
    expect((await judged(whole, [first], noon + 4 * day, until(4))).result).toBe('intact');
    const report = await judged(whole, [first], noon + 4 * day, until(2));
    expect(report.findings.map(({ severity, object, message }) => `${severity} ${object}: ${message}`)).toEqual([
      'unproven --key-until: no time stamp, cosignature or --since dates the last 10 of 20 lines before 2026-07-03T12:00:00.000Z',
    ]);
    const since = checkpoint(whole, 4);
    expect((await judged(whole, [first], noon + 4 * day, { ...until(2), since })).result).toBe('intact');
  });

  it('must not be older than the auditor wants', async () => {
    const fresh = (hours: number): Given => ({ freshSince: (noon + 3 * day - hours * 3_600_000) * 1000 });
    expect((await judged(archive, [first], noon + 4 * day, fresh(24))).result).toBe('intact');
    expect(summaries(await judged(archive, [first], noon + 4 * day, fresh(23)))).toEqual(['unproven --fresh']);
    expect(summaries(await judged(archive, [first], noon + 4 * day, fresh(-1)))).toEqual(['unproven --fresh', 'unproven --fresh']);
  });

  const changes: readonly (readonly [string, string, (files: Map<string, Buffer>) => void, readonly string[]])[] = [
    ['a changed byte of a named one', 'altered', (files) => change(files, path(1)), [`altered ${path(1)}`]],
    [
      'two that are swapped',
      'altered',
      (files) => swap(files, path(1), path(2)),
      [`altered ${path(1)}`, `altered ${path(2)}`, 'unproven timestamps/'],
    ],
    [
      'another one of the same authority in its place',
      'altered',
      (files) => files.set(path(1), first.responseAt(noon - day, checkpoint(archive, 1))),
      [`altered ${path(1)}`],
    ],
    ['a changed byte of the newest', 'unproven', (files) => change(files, path(4)), [`unproven ${path(4)}`]],
    [
      'the newest over another checkpoint',
      'unproven',
      (files) => files.set(path(4), files.get(path(3)) ?? Buffer.alloc(0)),
      [`unproven ${path(4)}`],
    ],
    [
      'a newest one from before the one before',
      'altered',
      (files) => files.set(path(4), first.responseAt(noon, checkpoint(archive, 4))),
      // Three days before its lines were archived.
      [`altered ${path(4)}`, 'unproven timestamps/'],
    ],
    [
      'one of a checkpoint that the archive lacks',
      'intact',
      (files) => files.set(path(9), files.get(path(3)) ?? Buffer.alloc(0)),
      [`note ${path(9)}`],
    ],
    ['a file of another name', 'intact', (files) => files.set('timestamps/notes', Buffer.from('x')), ['note timestamps/notes']],
  ];
  it.each(changes)('with %s are %s', async (_name, result, apply, found) => {
    const files = new Map(archive.files);
    const newest = first.responseAt(noon + 3 * day, checkpoint(archive, 4));
    files.set(path(4), newest);
    apply(files);
    const report = await judged(new MemoryStore(files));
    expect(report.result).toBe(result);
    expect(summaries(report).filter((each) => each !== 'note timestamps/')).toEqual(found);
  });

  it('are reported from the oldest to the newest', async () => {
    const ends = authority('Ended', { validFrom: noon - day, validTo: noon + 1.5 * day });
    const foreign = authority('Elsewhere');
    const of: readonly Authority[] = [first, ends, foreign, foreign, first];
    const store = await stampedOn([0, 1, 2, 3, 4], (at) => of[at] ?? first, 6);
    change(store.files, path(1));
    store.files.set(path(6), first.responseAt(noon, checkpoint(store, 6)));
    expect(summaries(await judged(store, [first, ends], noon + 6 * day)).filter((each) => !each.startsWith('note'))).toEqual([
      `altered ${path(1)}`,
      ...[2, 3, 4].map((number) => `unproven ${path(number)}`),
      // It covers all lines, and with a time from days before they were archived.
      `altered ${path(6)}`,
      'unproven timestamps/',
    ]);
  });

  it('of checkpoints that the archive lacks cost verify.py no program', async () => {
    const folder = temporary();
    const log = join(folder, 'runs');
    const [real = ''] = (process.env['PATH'] ?? '').split(':').flatMap((each) => (existsSync(join(each, 'openssl')) ? [each] : []));
    mkdirSync(join(folder, 'bin'));
    writeFileSync(join(folder, 'bin/openssl'), `#!/bin/sh\necho run >> '${log}'\nexec '${real}/openssl' "$@"\n`, { mode: 0o755 });
    const origin = checkpoint(archive, 1).toString().split('\n')[0] ?? '';
    const [key, roots] = [join(folder, 'key'), join(folder, 'roots.pem')];
    writeFileSync(key, formatVerifier(signerOf(origin, keyFrom(1))));
    writeFileSync(roots, first.root);
    const runs = (files: ReadonlyMap<string, Buffer>): number => {
      const directory = join(folder, String(files.size));
      for (const [name, bytes] of files) {
        mkdirSync(dirname(join(directory, name)), { recursive: true });
        writeFileSync(join(directory, name), bytes);
      }
      writeFileSync(log, '');
      const env = { ...process.env, PATH: `${join(folder, 'bin')}:${process.env['PATH'] ?? ''}` };
      spawnSync('python3', [verifyProgram, '--directory', directory, '--key', key, '--timestamp-ca', roots], { env });
      return readFileSync(log, 'utf8').split('\n').length - 1;
    };
    const few = runs(archive.files);
    expect(few).toBeGreaterThan(3);
    const planted = Array.from({ length: 30 }, (_, i) => [path(100 + i), Buffer.from('x')] as const);
    expect(runs(new Map([...archive.files, ...planted]))).toBe(few);
  });

  const constraints: readonly (readonly [string, string, readonly string[]])[] = [
    ['no constraint', 'basicConstraints=critical,CA:TRUE', []],
    ['room for one more authority', 'basicConstraints=critical,CA:TRUE,pathlen:1', []],
    ['room for none', 'basicConstraints=critical,CA:TRUE,pathlen:0', [`unproven ${path(1)}`, 'unproven timestamps/']],
    [
      'other names only',
      'basicConstraints=critical,CA:TRUE\nnameConstraints=critical,permitted;dirName:elsewhere',
      [`unproven ${path(1)}`, 'unproven timestamps/'],
    ],
  ];
  it.each(constraints)('lead over another authority to a root with %s', async (_name, root, found) => {
    const above = authority('Above', { ...validity, root, hasMiddle: true });
    const report = await judged(await stampedOn([0], () => above, 1), [above], noon + day);
    expect(summaries(report)).toEqual(found);
  });

  it('must not come more than two days after the lines that they cover', async () => {
    const report = await judged(await stampedOn([0, 3], undefined, 7), [first], noon + 7 * day);
    expect(report.findings.map(({ message }) => message)).toEqual([
      // And one minute.
      'lines were first stamped or cosigned 48 h after they were archived: on 2026-07-04T12:01:00.000Z, and archived on 2026-07-02T12:00:00.000Z (--stamped-within)',
    ]);
    expect(report.result).toBe('unproven');
  });

  it('are due for renewal thirty days before the certificate ends, and too late after it', async () => {
    expect(summaries(await judged(archive, [first], noon + 69 * day))).toEqual([]);
    expect(summaries(await judged(archive, [first], noon + 71 * day))).toEqual([`note ${path(3)}`]);
    expect(summaries(await judged(archive, [first], noon + 101 * day))).toEqual([`unproven ${path(3)}`]);
  });

  it('of a certificate that has ended count if a later one covered them before', async () => {
    const ends = authority('Ends', { validFrom: noon - day, validTo: noon + 1.5 * day });
    const by = (i: number): Authority => (i < 2 ? ends : first);
    // The second time stamp ends on the next day: the third covers it too late.
    const report = await judged(await stampedOn([0, 1, 2], by), [ends, first]);
    expect(summaries(report)).toEqual([`unproven ${path(2)}`]);
    const longer = authority('Longer', { validFrom: noon - day, validTo: noon + 2.5 * day });
    expect(summaries(await judged(await stampedOn([0, 1, 2], (i) => (i < 2 ? longer : first)), [longer, first]))).toEqual([]);
    // No line names the second one: nothing covers it.
    const unnamed = await stampedOn([0, 2], (i) => (i < 2 ? longer : first));
    unnamed.files.set(path(2), longer.responseAt(noon + 1.2 * day, checkpoint(unnamed, 2)));
    expect(summaries(await judged(unnamed, [longer, first]))).toEqual([`unproven ${path(2)}`]);
  });
});

function change(files: Map<string, Buffer>, name: string): void {
  const bytes = Buffer.from(files.get(name) ?? Buffer.alloc(0));
  const at = bytes.length - 10;
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  files.set(name, bytes);
}

function swap(files: Map<string, Buffer>, one: string, other: string): void {
  const [a, b] = [files.get(one) ?? Buffer.alloc(0), files.get(other) ?? Buffer.alloc(0)];
  files.set(one, b).set(other, a);
}
