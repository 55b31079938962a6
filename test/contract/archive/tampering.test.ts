/**
 * Changed copies of a small archive, checked by both verifiers: `verifyArchive`, and
 * content/archive/verify.py, which shares no code with it. `npm run test:tampering` flips every bit,
 * makes 100,000 random changes, a tenth of them in a larger archive, and 10,000 other archives.
 * WAYBILL_ARCHIVE_TAMPERINGS sets another number of random changes.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, it } from 'vitest';
import { checkpointPath, cosignaturePath } from '../../../src/archive/checkpoint.ts';
import { cosignatureLine, formatVerifier, parseVerifier, signerOf } from '../../../src/archive/signed-note.ts';
import { verifyArchive } from '../../../src/archive/verify/verify.ts';
import { keyFrom, MemoryStore, start, windowLines, writeArchive } from '../../support/archive.ts';
import { sized } from '../../support/long-run.ts';
import { hasPython, resultOf, secondVerifier, secondVerify, verifyProgram, verifyWithPython } from '../../support/second-verifier.ts';
import type { Changes, Judgement } from '../../support/second-verifier.ts';

const setting = process.env['WAYBILL_ARCHIVE_TAMPERINGS'] ?? String(sized(60, 300));
const everyBit = setting === 'all';
const randomChanges = everyBit ? 100_000 : Number(setting);
const untouched = Math.ceil(randomChanges / 10);
const timeout = randomChanges > 1_000 ? 7_200_000 : undefined;
/** Cases for one call of each verifier. */
const atOnce = 500;

/** A run of minutes shows how far it is. */
function progress(what: string, done: number, of: number): void {
  if (everyBit && (done === of || done % (10 * atOnce) === 0)) console.log(`${what}: ${done} of ${of}`);
}

/** Witness one cosigned all of its three checkpoints, and witness two the last one; an operation holds its first lines. */
const store = new MemoryStore();
const witnesses = [11, 12].map((seed) => signerOf(`witness.example/w${seed}`, keyFrom(seed), 4));
/** More than 256 lines: complete tiles, and tiles of two levels. */
const larger = new MemoryStore();
let verifierKey = '';
let since: Buffer = Buffer.alloc(0);
beforeAll(async () => {
  await writeArchive(larger, windowLines(26, 9), 40);
  const [archive = ''] = larger.files.get('checkpoint')?.toString().split('\n') ?? [];
  const detail = { archive, sink: 'archive', case: 'A-7', lines: [{ first: 1, last: 5 }], from: null, to: null, reason: 'claim' };
  const held = { kind: 'operation', seq: 10, at: start, actor: 'm.weber', operation: 'archive hold', detail } as const;
  await writeArchive(store, [...windowLines(3, 2), held], 4);
  since = store.files.get('checkpoint') ?? since;
  expect(since.toString().split('\n')[0]).toBe(archive);
  for (const [number, witness] of [1, 2, 3, 3].map((each, i) => [each, witnesses[i < 3 ? 0 : 1]] as const)) {
    const note = store.files.get(checkpointPath(number))?.toString() ?? '';
    if (!witness) throw new Error('expected two witnesses');
    const line = cosignatureLine(note.slice(0, note.indexOf('\n\n') + 1), witness, start / 1_000_000 + number * 3_600);
    store.files.set(cosignaturePath(number, witness), Buffer.from(note + line));
  }
  verifierKey = formatVerifier(signerOf(since.toString().split('\n')[0] ?? '', keyFrom(1)));
});

async function byWaybill(cases: readonly Changes[], archive = store): Promise<Judgement[]> {
  const verifier = parseVerifier(verifierKey);
  if (!verifier) throw new Error('expected a verifier key');
  const judgements: Judgement[] = [];
  for (const changes of cases) {
    const files = new Map(archive.files);
    for (const [path, bytes] of Object.entries(changes)) {
      if (bytes === null) files.delete(path);
      else files.set(path, bytes);
    }
    const { findings } = await verifyArchive(new MemoryStore(files), [verifier], {
      since: archive.files.get('checkpoint'),
      cosignatures: archive === store ? { witnesses, quorum: 1 } : undefined,
    });
    judgements.push(findings.map(({ severity, object }) => [severity, object] as const));
  }
  return judgements;
}

const byPython = (cases: readonly Changes[], archive = store): Promise<readonly Judgement[]> =>
  secondVerifier(
    archive.files,
    {
      key: verifierKey,
      since: archive.files.get('checkpoint'),
      ...(archive === store && { witnesses: witnesses.map(formatVerifier), quorum: 1 }),
    },
    cases,
  );

const isCosignature = (path: string): boolean => path.startsWith('cosignatures/');
/** Files that may be missing. */
const isNoEvidence = (path: string): boolean => path === 'checkpoint' || path.startsWith('keys/') || isCosignature(path);

/**
 * A changed byte of a cosignature file cannot prove anything against the archive. In the text and the signature of the witness it must leave
 * the file unproven. Elsewhere it may name an unknown witness or key, or no longer be a note: there both verifiers only have to agree.
 */
function isHarmlessAt(path: string, bytes: Buffer, at: number): boolean | undefined {
  if (!isCosignature(path)) return isNoEvidence(path);
  const isText = at < bytes.indexOf('\n\n') + 2;
  // Of the base64, six characters have the id of the key, and the first bits of the time.
  return isText || at >= bytes.lastIndexOf(' ') + 7 ? false : undefined;
}
/** A partial tile or bundle that may be deleted: a wider one has its hashes. */
function isSuperseded(path: string, archive = store): boolean {
  const [, tile = '', width] = /^(.*)\.p\/(\d+)$/.exec(path) ?? [];
  if (width === undefined) return false;
  const widths = [...archive.files.keys()]
    .filter((each) => each.startsWith(`${tile}.p/`))
    .map((each) => Number(each.slice(tile.length + 3)));
  return archive.files.has(tile) || Math.max(...widths) > Number(width);
}

interface Case {
  readonly name: string;
  readonly changes: Changes;
  /** Undefined: both verifiers agree on intact or unproven. */
  readonly isHarmless: boolean | undefined;
  /** Both verifiers name one of these first. Default: a changed file, unless it is harmless. */
  readonly objects?: readonly string[];
}

/** A segment that is missing is named by its first leaf. */
const isOf = (object: string, path: string): boolean =>
  object === path || (path.startsWith('segments/') && object.startsWith(path.slice(0, 26)));

/** @returns the cases with a wrong result of a verifier */
async function misjudged(cases: readonly Case[], archive = store): Promise<string[]> {
  const changes = cases.map((each) => each.changes);
  const [ours, theirs] = await Promise.all([byWaybill(changes, archive), byPython(changes, archive)]);
  return cases.flatMap(({ name, isHarmless, changes, objects }, i) => {
    const both = [ours[i] ?? [], theirs[i] ?? []];
    const [one = '', other = ''] = both.map(resultOf);
    if (one !== other) return [`${name}: ${one} by Waybill, ${other} by Python`];
    if (isHarmless === undefined ? one === 'altered' : (one === 'intact') !== isHarmless) return [`${name}: ${one}`];
    const isSevere = one !== 'intact';
    const firsts = both.map((judgement) => judgement.find(([severity]) => !isSevere || severity !== 'note')?.[1] ?? '');
    const permitted = isHarmless === undefined && !isSevere ? undefined : (objects ?? (isHarmless ? undefined : Object.keys(changes)));
    const isNamed = permitted === undefined || firsts.every((first) => permitted.some((path) => isOf(first, path)));
    return isNamed ? [] : [`${name}: the verifiers name "${firsts.join('" and "')}" first`];
  });
}

/** @returns a function that returns integers below its argument, the same in every run */
function randomNumbers(seed: string): (below: number) => number {
  let calls = 0;
  return (below) =>
    createHash('sha256')
      .update(`${seed} ${(calls += 1)}`)
      .digest()
      .readUInt32BE() % below;
}

/** A change that no verifier may miss. */
function randomChange(number: number, archive: MemoryStore, below: (below: number) => number): Case {
  const files = [...archive.files].filter(([path]) => !isNoEvidence(path) && !isSuperseded(path, archive));
  const [segments, checkpoints] = ['segments/', 'checkpoints/'].map((folder) => files.filter(([path]) => path.startsWith(folder)));
  const any = (of = files): [string, Buffer] => of[below(of.length)] ?? ['', Buffer.alloc(0)];
  const [[path, bytes], [other, content]] = [any(), any()];
  const at = below(bytes.length);
  /** The content of each in place of the other; of the same file twice: it is deleted. */
  const swapped = ([one, first]: [string, Buffer], [two, second]: [string, Buffer]): Changes =>
    one === two || first.equals(second) ? { [one]: null } : { [one]: second, [two]: first };
  const isCheckpoint = (changes: Changes): boolean =>
    Object.entries(changes).every(([name, now]) => name.startsWith('checkpoints/') && now);
  const changes: readonly Changes[] = [
    { [path]: null, [other]: null },
    { [path]: bytes.subarray(0, at) },
    { [path]: Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1 + below(40))]) },
    { [path]: Buffer.concat([bytes.subarray(0, at + 1), bytes.subarray(at)]) },
    swapped([path, bytes], [other, content]),
    content.equals(bytes) ? { [path]: null } : { [path]: content },
    otherLines(any(segments), below),
    swapped(any(segments), any(segments)),
    swapped(any(checkpoints), any(checkpoints)),
  ];
  const kind = below(changes.length);
  const chosen = changes[kind] ?? {};
  // Signatures do not tell which of several signed checkpoints is at a wrong number.
  const objects = isCheckpoint(chosen) ? checkpoints?.map(([name]) => name) : undefined;
  return { name: `change ${number} of kind ${kind}`, changes: chosen, isHarmless: false, ...(objects && { objects }) };
}

/** Lines of a segment removed, repeated or swapped, under the name that the new file has. */
function otherLines([path, bytes]: [string, Buffer], below: (below: number) => number): Changes {
  const lines = gunzipSync(bytes).toString().trimEnd().split('\n');
  const [one, two] = [below(lines.length), below(lines.length)];
  const changed = [
    lines.toSpliced(one, 1),
    lines.toSpliced(two, 0, lines[one] ?? ''),
    lines.with(one, lines[two] ?? '').with(two, lines[one] ?? ''),
  ];
  return renamed(path, changed[one === two ? below(2) : below(3)] ?? []);
}

/** A segment with other lines, under the name that its file has. */
function renamed(path: string, lines: readonly string[]): Changes {
  const file = gzipSync(`${lines.join('\n')}\n`);
  return { [path]: null, [path.replace(/-.*/, `-${createHash('sha256').update(file).digest('hex')}.ndjson.gz`)]: file };
}

describe.skipIf(!hasPython)('both verifiers', () => {
  it('report nothing about an unchanged archive', async () => {
    expect([await byWaybill([{}]), await byPython([{}])]).toEqual([[[]], [[]]]);
  });

  it('report no alteration if the writer ended between its checkpoint and the tiles', async () => {
    const absent = [...store.files.keys()].filter((path) => path === 'checkpoint' || path.includes('.p/'));
    const changes = Object.fromEntries(absent.map((path) => [path, null]));
    expect(absent.length).toBeGreaterThan(2);
    expect([await byWaybill([changes]), await byPython([changes])]).toEqual([[[['note', 'checkpoint']]], [[['note', 'checkpoint']]]]);
  });

  it('share no code: verify.py has at most 550 lines, and imports the standard library only', () => {
    const text = readFileSync(verifyProgram, 'utf8');
    expect(text.split('\n').filter((line) => line.trim() !== '').length).toBeLessThanOrEqual(550);
    expect(text.match(/^\s*(import|from) .*/gm)).toHaveLength(1);
  });

  it('agree when verify.py runs as a program on a directory', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'waybill-verify-'));
    try {
      for (const [path, bytes] of store.files) {
        mkdirSync(join(folder, 'archive', dirname(path)), { recursive: true });
        writeFileSync(join(folder, 'archive', path), bytes);
      }
      writeFileSync(join(folder, 'key'), `${verifierKey}\n`);
      const place = ['--directory', join(folder, 'archive'), '--key', join(folder, 'key')];
      expect(verifyWithPython(...place, '--since', join(folder, 'archive/checkpoint')).code).toBe(0);
      const run = async (...args: string[]): Promise<number | null> => (await secondVerify(...place, ...args)).code;
      const since = (text: string | Buffer): Promise<number | null> => {
        writeFileSync(join(folder, 'since'), text);
        return run('--since', join(folder, 'since'));
      };
      // As an editor, `jq -r` and mail store it.
      const note = readFileSync(join(folder, 'archive/checkpoint'), 'utf8');
      for (const text of [note.trimEnd(), `${note}\n`, note.replaceAll('\n', '\r\n'), `\ufeff\r\n${note}\t \r\n`])
        expect(await since(text), JSON.stringify(text)).toBe(0);
      const other = Buffer.concat([Buffer.from(`${note}\u2014 other`), Buffer.of(0xff), Buffer.from(' AAAAAAAA\n')]);
      for (const text of [`${note}\u00a0`, other]) expect(await since(text)).toBe(1);
      expect(await since(note.replace(/=/, 'A'))).toBe(1);
      for (const text of ['', 'text\n', note.slice(0, note.indexOf('\u2014'))]) expect(await since(text), JSON.stringify(text)).toBe(2);
      expect(await run('--since', join(folder, 'key'))).toBe(2);
      expect(await run('--timestamp-ca', join(folder, 'key'))).toBe(2);
      expect(await run('--key', join(folder, 'missing'))).toBe(2);
      writeFileSync(join(folder, 'key'), `${formatVerifier(signerOf('waybill/other', keyFrom(1)))}\n`);
      expect(await run()).toBe(3);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  // promise: Two independent verifiers report each flipped bit of an archive.
  it(
    'report every flipped bit, and name a file that is no evidence',
    async () => {
      const cases = [...store.files].flatMap(([path, bytes]) =>
        Array.from({ length: bytes.length * 8 }, (_, bit) => bit)
          .filter((bit) => everyBit || bit % sized(205, 41) === 0)
          .map((bit) => {
            const changed = Buffer.from(bytes);
            changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
            const isHarmless = isHarmlessAt(path, bytes, bit >> 3);
            return { name: `bit ${bit} of ${path}`, changes: { [path]: changed }, objects: [path], isHarmless };
          }),
      );
      const faults: string[] = [];
      for (let first = 0; first < cases.length; first += atOnce) {
        faults.push(...(await misjudged(cases.slice(first, first + atOnce))));
        progress('flipped bits', Math.min(first + atOnce, cases.length), cases.length);
      }
      expect(faults).toEqual([]);
    },
    timeout,
  );

  it('report missing objects', async () => {
    const cases = [...store.files.keys()].map((path) => ({
      name: `without ${path}`,
      changes: { [path]: null },
      isHarmless: isNoEvidence(path) || isSuperseded(path),
    }));
    // Three checkpoints, three segments, and the newest tile and bundle.
    expect(cases.filter(({ isHarmless }) => !isHarmless)).toHaveLength(8);
    expect(await misjudged(cases)).toEqual([]);
  });

  it('report lines that were removed, reordered, repeated or changed under a new name', async () => {
    const segments = [...store.files].filter(([path]) => path.startsWith('segments/'));
    const cases = segments.flatMap(([path, bytes]) => {
      const lines = gunzipSync(bytes).toString().trimEnd().split('\n');
      const altered = lines.flatMap((line, i) => [
        lines.toSpliced(i, 1),
        lines.toSpliced(i, 1, line, line),
        lines.toSpliced(i, 1, line.replace('production', 'test')),
        lines.toSpliced(i, 1, `${line} `),
        lines.toSpliced(i, 2, ...lines.slice(i, i + 2).toReversed()).concat(i === lines.length - 1 ? [line] : []),
      ]);
      return altered
        .filter((each) => each.join('\n') !== lines.join('\n'))
        .map((each, i) => ({ name: `change ${i} of ${path}`, changes: renamed(path, each), isHarmless: false }));
    });
    expect(cases.length).toBeGreaterThan(40);
    expect(await misjudged(cases)).toEqual([]);
  });

  it('report an archive that another key signed again, and an archive that ends earlier', async () => {
    const foreign = new MemoryStore();
    await writeArchive(foreign, windowLines(3, 2).slice(0, 8), 4, keyFrom(2));
    const replaced = Object.fromEntries([...[...store.files.keys()].map((path) => [path, null] as const), ...foreign.files]);
    const newest = [...store.files.keys()].filter((path) => /checkpoints\/0+3$|segments\/0+10-|^checkpoint$/.test(path));
    expect(newest).toHaveLength(3);
    const cut = Object.fromEntries(newest.map((path) => [path, null] as const));
    const shown = [...store.files.keys()].filter((path) => path.startsWith('cosignatures/0000000003-'));
    expect(shown).toHaveLength(2);
    expect(
      await misjudged([
        { name: 'another key', changes: replaced, isHarmless: false },
        { name: 'cut', changes: cut, objects: ['--since', ...shown], isHarmless: false },
      ]),
    ).toEqual([]);
  });

  it(
    `report nothing about ${untouched} other unchanged archives`,
    async () => {
      const faults: string[] = [];
      const verifier = parseVerifier(verifierKey);
      let byPython: Promise<void> = Promise.resolve();
      for (let first = 0; first < untouched; first += atOnce) {
        const archives: Changes[] = [];
        const names: string[] = [];
        for (let i = first; i < Math.min(first + atOnce, untouched); i += 1) {
          const below = randomNumbers(`archive ${i}`);
          const [windows, perWindow, perSegment] = [1 + below(40), below(12), 1 + below(150)];
          names.push(`${windows} windows of ${perWindow} records, ${perSegment} a segment`);
          const other = new MemoryStore();
          await writeArchive(other, windowLines(windows, perWindow), perSegment);
          const since = other.files.get('checkpoints/0000000001') ?? Buffer.alloc(0);
          archives.push({ ...Object.fromEntries(other.files), '--since': since });
          const { findings } = await verifyArchive(other, verifier ? [verifier] : [], { since });
          if (findings.length > 0) faults.push(`${names.at(-1)}: ${findings[0]?.object}`);
        }
        progress('unchanged archives', first, untouched);
        // Python judges these archives while the next ones are written.
        await byPython;
        byPython = secondVerifier(new Map(), { key: verifierKey }, archives).then((judgements) => {
          faults.push(
            ...judgements.flatMap((judgement, i) => (judgement.length > 0 ? [`${names[i]}: verify.py, ${judgement[0]?.[1]}`] : [])),
          );
        });
      }
      await byPython;
      expect(faults).toEqual([]);
    },
    timeout,
  );

  // promise: Two independent verifiers report random deletions, cuts, repetitions and reorders of an archive.
  it(
    `report ${randomChanges} random deletions, cuts, repetitions and reorders of files, bytes and lines, and swapped segments and checkpoints`,
    async () => {
      const below = randomNumbers('tampering');
      const faults: string[] = [];
      for (let first = 0; first < randomChanges; first += atOnce) {
        const archive = (first / atOnce) % 10 === 9 ? larger : store;
        const cases = Array.from({ length: Math.min(atOnce, randomChanges - first) }, (_, i) => randomChange(first + i, archive, below));
        faults.push(...(await misjudged(cases, archive)));
        progress('random changes', first + cases.length, randomChanges);
      }
      expect(faults).toEqual([]);
    },
    timeout,
  );
});
