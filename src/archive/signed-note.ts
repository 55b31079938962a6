/**
 * Signed notes of C2SP signed-note, with Ed25519 keys: a text, an empty line, and a line for each
 * signature. A witness signs the time with the text (C2SP tlog-cosignature). Pure.
 */
import { createPublicKey, sign, verify, type KeyObject } from 'node:crypto';
import { WaybillError } from '../errors/errors.ts';
import type { Micros } from '../model/time.ts';
import { equal, sha256 } from './merkle.ts';

/** The public half of a key: `name+id+base64` as text. */
export interface Verifier {
  readonly name: string;
  /** The first four bytes of a SHA-256 over name and key. */
  readonly id: Buffer;
  readonly key: KeyObject;
  readonly type: SignatureType;
}

export interface Signer extends Verifier {
  readonly privateKey: KeyObject;
}

export interface OpenedNote {
  readonly text: string;
  /** The known keys whose signatures are valid, in the order of the signatures. */
  readonly signedBy: readonly Verifier[];
  /** The known witnesses whose cosignatures are valid, in the order of the signatures. */
  readonly cosignedBy: readonly Cosignature[];
  /** Keys of signatures that no verifier knows, as `name+id`. */
  readonly unknown: readonly string[];
}

interface Cosignature {
  readonly witness: Verifier;
  /** By the clock of the witness, in whole seconds. */
  readonly time: Micros;
}

/** In C2SP signed-note: 1 of the writer of a note, 4 of a witness. */
type SignatureType = 1 | 4;
/** A cosignature is the time in seconds (8 bytes, big-endian) and the signature. */
const cosignatureBytes = 8 + 64;
/** 2255-01-01: no time of an archive is later. */
const lastSecond = 8_993_721_600n;

/** The DER prefix of the 32 bytes of a key (RFC 8410). */
const derPrefix = Buffer.from('302a300506032b6570032100', 'hex');
/** A key name has none of them. */
const notInName = /[\p{White_Space}\x1c-\x1f+]/u;
/** A verifier limits the signatures of a note, and accepts at least 16. */
const maxSignatures = 64;

/** @throws WaybillError `config_invalid` for a key that is not Ed25519 */
export function signerOf(name: string, privateKey: KeyObject, type: SignatureType = 1): Signer {
  if (privateKey.asymmetricKeyType !== 'ed25519')
    throw new WaybillError(
      'config_invalid',
      `cannot sign with a key of type "${privateKey.asymmetricKeyType ?? 'secret'}": use an Ed25519 key`,
    );
  return { ...verifierOf(name, createPublicKey(privateKey), type), privateKey };
}

function verifierOf(name: string, key: KeyObject, type: SignatureType): Verifier {
  const id = sha256(Buffer.concat([Buffer.from(`${name}\n`), Buffer.of(type), rawKey(key)])).subarray(0, 4);
  return { name, id, key, type };
}

/** The text of a verifier key, without a line break. */
export function formatVerifier({ name, id, key, type }: Verifier): string {
  return `${keyName({ name, id })}+${Buffer.concat([Buffer.of(type), rawKey(key)]).toString('base64')}`;
}

/** @returns undefined for a text that is not an Ed25519 verifier key of this type */
export function parseVerifier(text: string, type: SignatureType = 1): Verifier | undefined {
  const [, name = '', id = '', encoded = ''] = /^([^+]*)\+([0-9a-f]{8})\+([^\s]*)\n?$/.exec(text) ?? [];
  const bytes = decodeBase64(encoded);
  if (name === '' || notInName.test(name) || bytes?.length !== 33 || bytes[0] !== type) return undefined;
  const der = Buffer.concat([derPrefix, bytes.subarray(1)]);
  const verifier = verifierOf(name, createPublicKey({ key: der, format: 'der', type: 'spki' }), type);
  return verifier.id.toString('hex') === id ? verifier : undefined;
}

/** `name+id`, which identifies a key. */
export function keyName({ name, id }: Pick<Verifier, 'name' | 'id'>): string {
  return `${name}+${id.toString('hex')}`;
}

/** @param text  ends with a line break */
export function signNote(text: string, signers: readonly Signer[]): string {
  const lines = signers.map(({ name, id, privateKey }) => {
    const signature = Buffer.concat([id, sign(undefined, Buffer.from(text), privateKey)]);
    return `\u2014 ${name} ${signature.toString('base64')}\n`;
  });
  return `${text}\n${lines.join('')}`;
}

/**
 * The line of a signature by a witness.
 * @param text  a checkpoint, without signatures
 * @param seconds  since 1970
 */
export function cosignatureLine(text: string, { name, id, privateKey }: Signer, seconds: number): string {
  const time = Buffer.alloc(8);
  time.writeBigUInt64BE(BigInt(seconds));
  const signature = Buffer.concat([id, time, sign(undefined, cosignedMessage(text, time), privateKey)]);
  return `\u2014 ${name} ${signature.toString('base64')}\n`;
}

function cosignedMessage(text: string, time: Buffer): Buffer {
  return Buffer.from(`cosignature/v1\ntime ${time.readBigUInt64BE()}\n${text}`);
}

/**
 * Checks the signatures of known keys. The caller trusts the text only if `signedBy` has a key.
 * @returns the reason as text for bytes that are not a signed note, or whose signature by a known key is invalid
 */
export function openNote(bytes: Uint8Array, verifiers: readonly Verifier[]): OpenedNote | string {
  const note = decodeText(bytes);
  if (note === undefined) return 'it is not a signed note: it is not UTF-8 text without control characters';
  const end = note.lastIndexOf('\n\n');
  if (end < 0 || !note.endsWith('\n')) return 'it is not a signed note: it has no signature after an empty line';
  const text = note.slice(0, end + 1);
  const lines = note.slice(end + 2, -1).split('\n');
  if (lines.length > maxSignatures) return `it is not a signed note: it has more than ${maxSignatures} signatures`;
  const [signedBy, cosignedBy, unknown]: [Verifier[], Cosignature[], string[]] = [[], [], []];
  for (const line of lines) {
    // Not one pattern: V8 has no stack for a name or a signature of millions of characters.
    const [dash, name = '', encoded = '', ...more] = line.split(' ');
    const signature = decodeBase64(encoded);
    const isSignature = dash === '\u2014' && name !== '' && !notInName.test(name) && more.length === 0;
    if (!isSignature || signature === undefined || signature.length < 5)
      return 'it is not a signed note: a line after the empty line is not a signature';
    const id = signature.subarray(0, 4);
    const verifier = verifiers.find((each) => each.name === name && equal(each.id, id));
    const time = verifier?.type === 4 ? timeOf(text, signature.subarray(4), verifier.key) : undefined;
    if (!verifier) unknown.push(keyName({ name, id }));
    else if (time !== undefined) cosignedBy.push({ witness: verifier, time });
    else if (verifier.type === 1 && verify(undefined, Buffer.from(text), verifier.key, signature.subarray(4))) signedBy.push(verifier);
    else return `a signature of a known key is invalid: "${keyName(verifier)}"`;
  }
  return { text, signedBy, cosignedBy, unknown };
}

/** @returns undefined unless the cosignature is valid and has a time */
function timeOf(text: string, cosignature: Buffer, key: KeyObject): Micros | undefined {
  if (cosignature.length !== cosignatureBytes) return undefined;
  const time = cosignature.subarray(0, 8);
  const seconds = time.readBigUInt64BE();
  const isTime = seconds > 0n && seconds < lastSecond;
  return isTime && verify(undefined, cosignedMessage(text, time), key, cosignature.subarray(8)) ? Number(seconds) * 1_000_000 : undefined;
}

/** Decodes standard base64 in its only canonical form; undefined for anything else. */
export function decodeBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64');
  return text !== '' && bytes.toString('base64') === text ? bytes : undefined;
}

function rawKey(key: KeyObject): Buffer {
  return key.export({ format: 'der', type: 'spki' }).subarray(derPrefix.length);
}

function decodeText(bytes: Uint8Array): string | undefined {
  const text = Buffer.from(bytes).toString('utf8');
  return Buffer.from(text).equals(bytes) && !/[\u0000-\u0009\u000b-\u001f]/.test(text) ? text : undefined;
}
