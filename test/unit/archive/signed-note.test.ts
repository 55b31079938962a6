/** Notes that golang.org/x/mod signed, and the examples of C2SP. */
import { createPrivateKey, generateKeyPairSync, hash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { checkpointNumber, checkpointPath, formatCheckpoint, parseCheckpoint } from '../../../src/archive/checkpoint.ts';
import { cosignatureLine, formatVerifier, keyName, openNote, parseVerifier, signerOf, signNote } from '../../../src/archive/signed-note.ts';
import type { Verifier } from '../../../src/archive/signed-note.ts';
import { keyFrom } from '../../support/archive.ts';
import { hex, tlogVectors } from '../../support/tlog-vectors.ts';

const vector = tlogVectors.note;
/** RFC 8410: an Ed25519 private key in DER is these bytes and the seed. */
const privateKey = createPrivateKey({
  key: Buffer.from(`302e020100300506032b657004220420${vector.seed}`, 'hex'),
  format: 'der',
  type: 'pkcs8',
});
const [name = ''] = vector.verifierKey.split('+');

function verifierFrom(text: string): Verifier {
  const verifier = parseVerifier(text);
  if (!verifier) throw new Error(`expected a verifier key: ${text}`);
  return verifier;
}

const known = verifierFrom(vector.verifierKey);
const open = (note: string, ...keys: Verifier[]): ReturnType<typeof openNote> => openNote(Buffer.from(note), keys);

describe('a signed note', () => {
  it('equals the note that Go signs with the same key', () => {
    const signer = signerOf(name, privateKey);
    expect(formatVerifier(signer)).toBe(vector.verifierKey);
    expect(signNote(vector.text, [signer])).toBe(vector.signed);
  });

  it('of Go opens with its key', () => {
    expect(open(vector.signed, known)).toMatchObject({ text: vector.text, signedBy: [{ name }], unknown: [] });
  });

  // C2SP signed-note, section "Verifier keys", example.
  it('of the specification opens with its key', () => {
    const key = verifierFrom('example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k');
    const note =
      'This is an example message.\n\n— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n';
    expect(open(note, key)).toMatchObject({ text: 'This is an example message.\n', signedBy: [key] });
  });

  it('has no valid signature if its key is unknown', () => {
    const { privateKey: other } = generateKeyPairSync('ed25519');
    const stranger = signerOf(name, other);
    expect(open(vector.signed)).toMatchObject({ signedBy: [], unknown: [keyName(known)] });
    expect(open(vector.signed, stranger)).toMatchObject({ signedBy: [], unknown: [keyName(known)] });
    expect(open(signNote(vector.text, [stranger, signerOf(name, privateKey)]), known)).toMatchObject({
      signedBy: [known],
      unknown: [keyName(stranger)],
    });
  });

  it('with any changed bit does not open as signed by the key', () => {
    const bytes = Buffer.from(vector.signed);
    const accepted: number[] = [];
    for (let bit = 0; bit < bytes.length * 8; bit += 1) {
      const changed = Buffer.from(bytes);
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      const opened = openNote(changed, [known]);
      if (typeof opened === 'object' && opened.signedBy.length > 0) accepted.push(bit);
    }
    expect(accepted).toEqual([]);
  });

  it.each([
    ['no signature', 'text\n'],
    ['no line break at its end', vector.signed.trimEnd()],
    ['a carriage return', vector.signed.replace('\n', '\r\n')],
    ['a signature that is not base64', 'text\n\n— name +++\n'],
    ['a signature without bytes after the id', 'text\n\n— name AAAAAA==\n'],
    ['65 signatures', `text\n\n${'— name AAAAAAA=\n'.repeat(65)}`],
  ])('with %s is refused', (_, note) => {
    expect(open(note, known)).toBeTypeOf('string');
  });

  it('accepts only Ed25519 keys', () => {
    const { privateKey: rsa } = generateKeyPairSync('rsa', { modulusLength: 1024 });
    expect(() => signerOf(name, rsa)).toThrow(expect.objectContaining({ code: 'config_invalid' }) as Error);
    expect(parseVerifier(vector.verifierKey.replace(/\+[0-9a-f]{8}\+/, '+00000000+'))).toBeUndefined();
    // Type 4 is a cosignature of a witness; the id matches the key.
    const cosigner = Buffer.concat([Buffer.of(4), Buffer.from(vector.verifierKey.split('+').slice(2).join('+'), 'base64').subarray(1)]);
    const id = hash('sha256', Buffer.concat([Buffer.from(`${name}\n`), cosigner]), 'hex').slice(0, 8);
    expect(parseVerifier(`${name}+${id}+${cosigner.toString('base64')}`)).toBeUndefined();
  });
});

describe('a checkpoint', () => {
  it('is the text that Go signed', () => {
    const checkpoint = parseCheckpoint(vector.text);
    expect(checkpoint).toMatchObject({ origin: name, size: 70_000 });
    expect(hex(checkpoint?.root ?? Buffer.alloc(0))).toBe(tlogVectors.roots.at(-1)?.root);
    expect(checkpoint && formatCheckpoint(checkpoint)).toBe(vector.text);
  });

  // C2SP tlog-checkpoint, the example at its beginning.
  it('of the specification is read', () => {
    const text = 'example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n';
    expect(parseCheckpoint(text)).toMatchObject({ origin: 'example.com/behind-the-sofa', size: 20_852_163 });
  });

  const root = 'CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=';
  it.each([
    ['a leading zero', `log\n01\n${root}\n`],
    ['a sign', `log\n+1\n${root}\n`],
    ['no root', 'log\n1\n\n'],
    ['a short root', 'log\n1\nAAAA\n'],
    ['an extension line', `log\n1\n${root}\nmore\n`],
    ['a size that no integer holds', `log\n9007199254740993\n${root}\n`],
    ['unused bits in its root', `log\n1\n${root.replace('I=', 'J=')}\n`],
  ])('with %s is refused', (_, text) => {
    expect(parseCheckpoint(text)).toBeUndefined();
  });

  it('has a number of ten digits', () => {
    expect(checkpointPath(1)).toBe('checkpoints/0000000001');
    expect(['checkpoints/0000000012', 'checkpoints/0000000000', 'checkpoints/12', 'checkpoint'].map(checkpointNumber)).toEqual([
      12,
      undefined,
      undefined,
      undefined,
    ]);
  });
});

/**
 * Signed by filippo.io/torchwood v0.6.1 (`NewCosignatureSigner`) with the seed 32 times 7: the checkpoint of C2SP
 * tlog-cosignature, section "Ed25519 signed message".
 */
describe('a cosignature', () => {
  const text = 'example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n';
  const line =
    '— witness.example/w1 qkoJ0QAAAABrCzkg5WHK/K6lueDdDYD1VYikiXVb51P5Lz5fXAKseNTP6BJU+HOje7lvm6tQ+uFqEyZcltAD/Mdi4SP0qCqRoskICw==\n';
  const key = 'witness.example/w1+aa4a09d1+BOpKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIs';
  const seconds = 1_795_897_632;
  const witness = parseVerifier(key, 4);
  if (!witness) throw new Error('expected the key of a witness');
  const signer = signerOf('witness.example/w1', keyFrom(7), 4);

  it('of Go opens with the key of the witness, and has a time', () => {
    expect(formatVerifier(witness)).toBe(key);
    expect(open(`${text}\n${line}`, witness)).toEqual({
      ...{ text, signedBy: [], unknown: [] },
      cosignedBy: [{ witness, time: seconds * 1_000_000 }],
    });
  });

  it('equals the one that Go signs with the same key at the same time', () => {
    expect(formatVerifier(signer)).toBe(key);
    expect(cosignatureLine(text, signer, seconds)).toBe(line);
  });

  it('with any changed bit does not open as signed by the witness', () => {
    const bytes = Buffer.from(`${text}\n${line}`);
    const accepted: number[] = [];
    for (let bit = 0; bit < bytes.length * 8; bit += 1) {
      const changed = Buffer.from(bytes);
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      const opened = openNote(changed, [witness]);
      if (typeof opened === 'object' && opened.cosignedBy.length > 0) accepted.push(bit);
    }
    expect(accepted).toEqual([]);
  });

  it.each([
    ['without a time', 0],
    ['of the year 2255', Date.parse('2255-01-01T00:00:00Z') / 1000],
  ])('%s is invalid', (_, time) => {
    expect(open(`${text}\n${cosignatureLine(text, signer, time)}`, witness)).toMatch(/^a signature of a known key is invalid: /);
  });

  it('is no signature of the log, and the key of a witness is no key of a log', () => {
    expect(open(signNote(text, [signer]), witness)).toMatch(/^a signature of a known key is invalid: /);
    expect(parseVerifier(key)).toBeUndefined();
    expect(parseVerifier(vector.verifierKey, 4)).toBeUndefined();
  });
});
