import { beforeAll, describe, expect, it } from 'vitest';
import { checkProof, formatProof, parseProof } from '../../../src/archive/proof-file.ts';
import type { InclusionProof } from '../../../src/archive/proof-file.ts';
import { ArchiveDamaged, proveRecord } from '../../../src/archive/prove.ts';
import { signerOf } from '../../../src/archive/signed-note.ts';
import { keyFrom, MemoryStore, windowLines, writeArchive } from '../../support/archive.ts';

const store = new MemoryStore();
const lines = windowLines(100, 9);
beforeAll(() => writeArchive(store, lines, 170));

const verifier = (seed = 1): ReturnType<typeof signerOf> =>
  signerOf(store.files.get('checkpoint')?.toString().split('\n')[0] ?? '', keyFrom(seed));
const records = lines.flatMap((line) => (line.kind === 'record' ? [line] : []));

async function proofOf(uid: string, from = store): Promise<InclusionProof> {
  const proof = await proveRecord(from, uid);
  if (!proof) throw new Error(`expected a proof of ${uid}`);
  return proof;
}

function parsed(text: string): InclusionProof {
  const proof = parseProof(text);
  if (!proof) throw new Error('expected a proof');
  return proof;
}

describe('a proof', () => {
  it('shows that a record is in the archive, and shows no other record', async () => {
    for (const [i, { uid, seq }] of records.entries()) {
      if (i % 97 !== 0) continue;
      const text = formatProof(await proofOf(uid));
      const proof = parsed(text);
      expect(checkProof(proof, [verifier()])).toEqual({ result: 'intact', message: undefined });
      expect(JSON.parse(proof.line.toString())).toMatchObject({ kind: 'record', seq, uid });
      expect(records.filter((other) => text.includes(other.uid))).toHaveLength(1);
    }
  });

  it('is refused with a bit of any byte changed', async () => {
    const bytes = Buffer.from(formatProof(await proofOf(records[400]?.uid ?? '')));
    const accepted: string[] = [];
    for (let bit = 0; bit < bytes.length * 8; bit += 5) {
      const changed = Buffer.from(bytes);
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      const proof = parseProof(changed.toString());
      if (proof && checkProof(proof, [verifier()]).result === 'intact')
        accepted.push(`${bit}: ${JSON.stringify(changed.subarray((bit >> 3) - 3, (bit >> 3) + 3).toString())}`);
    }
    // Between the tokens of JSON a blank may be a line break, and a letter of an escape upper case.
    expect(accepted).toEqual([]);
  });

  it('is refused with the checkpoint, the index or the hashes of another', async () => {
    const [proof, other] = [await proofOf(records[0]?.uid ?? ''), await proofOf(records[500]?.uid ?? '')];
    const earlier = store.files.get('checkpoints/0000000003') ?? Buffer.alloc(0);
    for (const change of [
      { checkpoint: earlier },
      { index: other.index },
      { hashes: other.hashes },
      { hashes: proof.hashes.slice(1) },
      { line: other.line },
      { entry: other.entry },
    ])
      expect(checkProof({ ...proof, ...change }, [verifier()]), Object.keys(change).join()).toMatchObject({ result: 'altered' });
    expect(checkProof({ ...proof, line: other.line, entry: other.entry }, [verifier()])).toMatchObject({ result: 'altered' });
  });

  it('proves nothing with the signature of an unknown key', async () => {
    const proof = await proofOf(records[0]?.uid ?? '');
    expect(checkProof(proof, [])).toMatchObject({ result: 'unproven' });
    expect(checkProof(proof, [verifier(2)])).toMatchObject({ result: 'unproven' });
  });

  it('is not given for a record that is not there', async () => {
    expect(await proveRecord(store, 'AAAAAAAAAAAAAAAAAAAAAA')).toMatchObject({ index: expect.any(Number) as number });
    expect(await proveRecord(store, 'BBBBBBBBBBBBBBBBBBBBBA')).toBeUndefined();
  });

  it('is not given from a damaged archive', async () => {
    const { uid } = records[0] ?? { uid: '' };
    for (const damaged of [/^tile\/0\/000$/, /^tile\/entries\/000$/, /^segments\/0{16}/, /^checkpoints\/0{9}6$/]) {
      const files = new MemoryStore([...store.files].filter(([path]) => !damaged.test(path)));
      expect(files.files.size).toBe(store.files.size - 1);
      const proof = await proveRecord(files, uid).catch((thrown: unknown) => thrown);
      // Without its newest checkpoint an archive is one of an earlier time.
      if (damaged.source.startsWith('^check')) expect(proof).toMatchObject({ checkpoint: store.files.get('checkpoints/0000000005') });
      else expect(proof).toBeInstanceOf(ArchiveDamaged);
    }
  });
});
