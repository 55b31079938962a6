/** Cosignatures of witnesses, judged by both verifiers: what a set back, forked or cut archive is with them. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { checkpointPath, cosignaturePath } from '../../../src/archive/checkpoint.ts';
import { cosignatureLine, formatVerifier, parseVerifier, signerOf } from '../../../src/archive/signed-note.ts';
import type { Verifier } from '../../../src/archive/signed-note.ts';
import { verifyArchive } from '../../../src/archive/verify/verify.ts';
import type { VerifyOptions } from '../../../src/archive/verify/verify.ts';
import { codeOf } from '../../../src/errors/errors.ts';
import { command } from '../../../src/cli/commands/archive/index.ts';
import { keyFrom, MemoryStore, openWriter, start, through, windowLines, writeArchive } from '../../support/archive.ts';
import { outputOf, type Output } from '../../support/command-io.ts';
import { hasPython, resultOf, secondVerifier, secondVerify, verifyWithPython } from '../../support/second-verifier.ts';

const witnessOf = (seed: number) => signerOf(`witness.example/w${seed}`, keyFrom(seed), 4);
const [one, two, three] = [witnessOf(11), witnessOf(12), witnessOf(13)];
/** 2026-07-01T01:00:00Z, an hour after the first line, then an hour later for each checkpoint. */
const timeOf = (number: number): number => start / 1_000_000 + number * 3_600;

/** Checkpoint `number` of an archive, cosigned. */
function cosigned(files: ReadonlyMap<string, Buffer>, number: number, witness: typeof one, time = timeOf(number)): Buffer {
  const note = files.get(checkpointPath(number))?.toString() ?? expect.unreachable();
  return Buffer.from(`${note}${cosignatureLine(note.slice(0, note.indexOf('\n\n') + 1), witness, time)}`);
}

/** Four checkpoints. Witness one cosigned each, and witness two the first two. */
const whole = new MemoryStore();
let key = '';
beforeAll(async () => {
  const lines = windowLines(4, 3);
  await writeArchive(whole, lines, 4);
  for (const number of [1, 2, 3, 4]) whole.files.set(cosignaturePath(number, one), cosigned(whole.files, number, one));
  for (const number of [1, 2]) whole.files.set(cosignaturePath(number, two), cosigned(whole.files, number, two));
  key = formatVerifier(signerOf((whole.files.get('checkpoint') ?? '').toString().split('\n')[0] ?? '', keyFrom(1)));
});

/** True for the checkpoint, the segment and the cosignatures after checkpoint `number`, each of which has 5 lines. */
function isAfter(path: string, number: number): boolean {
  const [, folder, digits] = /^(checkpoints|cosignatures|segments)\/(\d+)/.exec(path) ?? [];
  if (folder === undefined) return path.startsWith('tile/') && !path.startsWith('tile/entries/000.p/') && !path.startsWith('tile/0/000.p/');
  return folder === 'segments' ? Number(digits) >= number * 5 : Number(digits) > number;
}

interface Case extends Pick<VerifyOptions, 'within' | 'keyUntil' | 'freshSince'> {
  readonly files: ReadonlyMap<string, Buffer>;
  readonly witnesses?: readonly Verifier[];
  readonly quorum?: number;
  readonly since?: Buffer;
  readonly keys?: string;
}

const verified = (args: readonly string[]): Promise<Output> => outputOf((given, io) => command.run(given, io), ['verify', ...args]);

/** The verdict and the findings of both verifiers, without notes. */
async function judged({ files, witnesses = [one, two], quorum = witnesses.length, since, keys = key, ...given }: Case): Promise<unknown> {
  const verifiers = keys.split('\n').map((each) => parseVerifier(each) ?? expect.unreachable());
  const { result, findings, cosignatures, within } = await verifyArchive(new MemoryStore(files), verifiers, {
    ...{ ...given, since, cosignatures: { witnesses, quorum } },
  });
  const [theirs = []] = await secondVerifier(files, { ...given, key: keys, since, witnesses: witnesses.map(formatVerifier), quorum });
  const ours = findings.flatMap(({ severity, object }) => (severity === 'note' ? [] : [`${severity} ${object}`]));
  expect(theirs.flatMap(([severity, object]) => (severity === 'note' ? [] : [`${severity} ${object}`])).sort()).toEqual(ours.toSorted());
  expect(resultOf(theirs)).toBe(result);
  return { result, ours, cosignatures, within };
}

/** A copy of the archive that was set back to checkpoint `number`; its cosignatures too, or not. */
function setBack(number: number, keepsCosignatures: boolean): Map<string, Buffer> {
  const files = new Map(
    [...whole.files].filter(([path]) => (keepsCosignatures && path.startsWith('cosignatures/')) || !isAfter(path, number)),
  );
  return files.set('checkpoint', files.get(checkpointPath(number)) ?? Buffer.alloc(0));
}

const changed = (path: string, bytes: Buffer): Map<string, Buffer> => new Map(whole.files).set(path, bytes);
const last = (): Buffer => cosigned(whole.files, 4, one);

describe.skipIf(!hasPython)('both verifiers say of an archive with cosignatures', () => {
  const hour = 3_600_000_000;
  const first = timeOf(1) * 1_000_000;

  it('that all witnesses confirm the lines which each of them cosigned, and since when', async () => {
    expect(await judged({ files: whole.files })).toEqual({
      result: 'intact',
      ours: [],
      cosignatures: { witnesses: 2, lines: 10, newest: first + hour },
      // Segment 2 was archived after 8 s, and its quorum was complete at 02:00.
      within: 2 * hour - 8_000_000,
    });
    expect(await judged({ files: whole.files, quorum: 1 })).toMatchObject({
      ...{ result: 'intact', cosignatures: { witnesses: 2, lines: 20, newest: first + 3 * hour } },
    });
  });

  // The archive has a segment every 4 s, from July 1st 00:00:04 to 00:00:16.
  it('that lines which the quorum cosigned late, or not at all, are unproven', async () => {
    const late = new Map(whole.files);
    const cosign = (number: number, witness: typeof one, time: number): unknown =>
      late.set(cosignaturePath(number, witness), cosigned(whole.files, number, witness, time));
    for (const number of [1, 2, 3, 4]) cosign(number, one, timeOf(60));
    const unproven = { result: 'unproven', ours: ['unproven cosignatures/'] };
    expect(await judged({ files: late, witnesses: [one] })).toMatchObject({ ...unproven, within: 60 * hour - 4_000_000 });
    expect(await judged({ files: late, witnesses: [one], within: 60 * hour })).toMatchObject({ result: 'intact' });
    expect(await judged({ files: late, witnesses: [one], within: 60 * hour - 4_000_001 })).toMatchObject(unproven);
    // Witness two cosigned segments 1 and 2 in time: that counts if one of the two is enough, and segments 3 and 4 were late.
    expect(await judged({ files: late })).toMatchObject({ ...unproven, within: 60 * hour - 4_000_000 });
    expect(await judged({ files: late, quorum: 1 })).toMatchObject({ ...unproven, within: 60 * hour - 12_000_000 });
    // Both cosigned nothing after segment 2, which is 8 s older than segment 4.
    expect(await judged({ files: whole.files, within: 2 * hour })).toMatchObject({ result: 'intact' });
    // A later cosignature with an earlier time covers the earlier lines too.
    cosign(4, one, timeOf(2));
    expect(await judged({ files: late, witnesses: [one] })).toMatchObject({ result: 'intact', within: 2 * hour - 4_000_000 });
  });

  it('that lines after the last cosignature are unproven if they were archived more than 48 h later', async () => {
    const store = new MemoryStore();
    const writer = await openWriter(store, 'late');
    const lines = windowLines(3, 3);
    for (const i of [0, 1, 2]) await writer.append(lines.slice(4 * i, 4 * i + 4), { ...through(4 * i + 4), at: start + i * 49 * hour });
    const files = new Map(store.files).set(cosignaturePath(1, one), cosigned(store.files, 1, one));
    const keys = formatVerifier(signerOf((store.files.get('checkpoint') ?? '').toString().split('\n')[0] ?? '', keyFrom(1)));
    const parts = { files, keys, witnesses: [one] };
    expect(await judged(parts)).toMatchObject({ result: 'unproven', ours: ['unproven cosignatures/'] });
    expect(await judged({ ...parts, within: 49 * hour })).toMatchObject({ result: 'intact' });
  });

  // The former key signs all that is there. So without a witness nothing shows that a change of the key was cut.
  it('that it is altered if it was cut before a change of its key, also for who knows the former key only', async () => {
    const store = new MemoryStore();
    const lines = windowLines(4, 3);
    await writeArchive(store, lines.slice(0, 8), 4);
    const writer = await openWriter(store, 'new key', { key: keyFrom(2), previousKey: keyFrom(1) });
    const before = new Map(store.files);
    await writer.append(lines.slice(8, 12), through(12));
    await writer.append(lines.slice(12, 16), through(16));
    const [origin = ''] = (before.get('checkpoint') ?? '').toString().split('\n');
    const former = formatVerifier(signerOf(origin, keyFrom(1)));
    const since = cosigned(store.files, 4, one);
    const parts = { witnesses: [one], keys: former };
    expect(await judged({ ...parts, files: new Map(before).set(cosignaturePath(2, one), cosigned(before, 2, one)) })).toMatchObject({
      result: 'intact',
    });
    expect(await judged({ ...parts, files: new Map(before).set(cosignaturePath(4, one), since) })).toMatchObject({ result: 'altered' });
    expect(await judged({ ...parts, files: new Map(before).set(cosignaturePath(2, one), cosigned(before, 2, one)), since })).toMatchObject({
      result: 'altered',
    });
  });

  it.each([
    ['an empty file', () => Buffer.alloc(0), 'unproven'],
    ['a cosigned text that is no checkpoint', () => Buffer.from(`text\n\n${cosignatureLine('text\n', one, timeOf(1))}`), 'unproven'],
    ['the cosignature of a witness that --witness does not name', () => cosigned(whole.files, 4, three), 'intact'],
    ['a checkpoint without a cosignature', () => whole.files.get(checkpointPath(4)) ?? Buffer.alloc(0), 'intact'],
    ['a cosigned checkpoint of another archive', () => otherArchive(), 'intact'],
    ['the cosignature of another checkpoint of the archive', () => cosigned(whole.files, 3, one), 'intact'],
  ])('with %s in place of one cosignature', async (_, bytes, result) => {
    expect(await judged({ files: changed(cosignaturePath(4, one), bytes()), quorum: 1 })).toMatchObject({ result });
  });

  function otherArchive(): Buffer {
    const text = `waybill/other\n7\n${Buffer.alloc(32).toString('base64')}\n`;
    return Buffer.from(`${text}\n${cosignatureLine(text, one, timeOf(1))}`);
  }

  it('the same as commands: lines cosigned, the time of the last, and exit codes', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'waybill-cosigned-'));
    try {
      const file = (name: string, text: string | Buffer): string => {
        mkdirSync(dirname(join(folder, name)), { recursive: true });
        writeFileSync(join(folder, name), text);
        return join(folder, name);
      };
      for (const [path, bytes] of setBack(2, false)) file(`archive/${path}`, bytes);
      const place = ['--directory', join(folder, 'archive'), '--key', file('key', `${key}\n`)];
      const witnesses = file('witnesses', `${formatVerifier(one)}\n${formatVerifier(two)}\n`);
      const since = file('since', last());
      const renamed = file('renamed', `${formatVerifier(signerOf('witness.example/other-name', keyFrom(11), 4))}\n`);
      const ways: readonly (readonly [number, ...string[]])[] = [
        [0, '--witness', witnesses],
        [1, '--witness', witnesses, '--since', since],
        // Without the witness, the checkpoint counts by the key of the archive.
        [1, '--since', since],
        [2, '--witness', witnesses, '--quorum', '0'],
        [2, '--quorum', '1'],
        [2, '--witness', witnesses, '--witness', renamed],
        [2, '--witness', join(folder, 'missing')],
      ];
      for (const [code, ...args] of ways) {
        expect((await secondVerify(...place, ...args)).code, args.join(' ')).toBe(code);
        const ours = verified([...place, ...args]).then(
          (output) => output.code,
          (thrown: unknown) => codeOf(thrown),
        );
        expect(await ours, args.join(' ')).toBe(code === 2 ? 'usage' : code);
      }
      const { stdout } = await verified([...place, '--witness', witnesses]);
      expect(stdout).toContain('\n2 witnesses: 10 of 10 lines cosigned, last on 2026-07-01T02:00:00Z\n');
      expect(verifyWithPython(...place, '--witness', witnesses).text).toContain(
        '2 witnesses: 10 of 10 lines cosigned, last on 2026-07-01T02:00:00Z\n',
      );
      const { stdout: json } = await verified([...place, '--witness', witnesses, '--json']);
      expect(JSON.parse(json)).toMatchObject({ cosignatures: { witnesses: 2, lines: 10, newest: '2026-07-01T02:00:00Z' } });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
