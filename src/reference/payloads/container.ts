/**
 * The `.IKD` container: a header, then the content, encrypted with a data key. The header contains
 * the data key, encrypted with the key of the payload, which never leaves the service. Pure. The
 * layout, numbers big-endian:
 *
 * | offset   | bytes | what                                                                                  |
 * |----------|-------|---------------------------------------------------------------------------------------|
 * | 0        | 4     | 89 49 4B 44: no text file begins so                                                   |
 * | 4        | 1     | version of the form: 1                                                                |
 * | 5        | 1     | suite: 1 is AES-256-GCM with nonces of 12 and tags of 16 bytes (NIST SP 800-38D)      |
 * | 6        | 2     | R, the length of the rules                                                            |
 * | 8        | 16    | payloadId, the UUID's bytes                                                           |
 * | 24       | 12    | nonce of the content                                                                  |
 * | 36       | R     | the rules in force when the file was protected: JSON, UTF-8                           |
 * | 36 + R   | 12    | nonce of the data key                                                                 |
 * | 48 + R   | 32    | the data key under the payload's key; authenticated with it: bytes 0 to 36 + R        |
 * | 80 + R   | 16    | its tag                                                                               |
 * | 96 + R   | n     | the content under the data key; authenticated with it: the header, bytes 0 to 96 + R  |
 * | 96 + R+n | 16    | its tag                                                                               |
 */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

const magic = Buffer.from([0x89, 0x49, 0x4b, 0x44]);
const version = 1;
const suite = 1;
const cipher = 'aes-256-gcm';
export const keyBytes = 32;
const nonceBytes = 12;
const tagBytes = 16;
const fixedBytes = 36;
const wrappedBytes = nonceBytes + keyBytes + tagBytes;
const rulesBytesMax = 0xffff;

/** The maximum overhead of a container. */
export const overheadBytesMax = fixedBytes + rulesBytesMax + wrappedBytes + tagBytes;

/** A parsed header. Only `dataKeyOf` authenticates it. */
export interface Header {
  readonly bytes: Buffer;
  readonly payloadId: string;
}

/** The bytes are not a container, or were changed. */
export class NotAuthentic extends Error {
  override readonly name = 'NotAuthentic';
}

/**
 * A new header with a new data key. The data key must encrypt one content only: the header holds
 * the one nonce for it.
 */
export function newHeader(payloadId: string, payloadKey: Buffer, rules: unknown): { header: Buffer; dataKey: Buffer } {
  const rulesBytes = Buffer.from(JSON.stringify(rules));
  if (rulesBytes.length > rulesBytesMax) throw new RangeError(`rules of ${rulesBytes.length} bytes do not fit into a header`);
  const front = Buffer.concat([
    magic,
    Buffer.from([version, suite, rulesBytes.length >> 8, rulesBytes.length & 0xff]),
    Buffer.from(payloadId.replaceAll('-', ''), 'hex'),
    randomBytes(nonceBytes),
    rulesBytes,
  ]);
  const dataKey = randomBytes(keyBytes);
  const nonce = randomBytes(nonceBytes);
  return { header: Buffer.concat([front, nonce, encrypted(payloadKey, nonce, front, dataKey)]), dataKey };
}

export function sealed(header: Buffer, dataKey: Buffer, content: Buffer): Buffer {
  return Buffer.concat([header, encrypted(dataKey, contentNonceOf(header), header, content)]);
}

/**
 * Parses the header of a container.
 * @throws NotAuthentic if there is none
 */
export function headerOf(container: Buffer): Header {
  if (container.length < fixedBytes + wrappedBytes) throw new NotAuthentic('it is too short');
  if (!container.subarray(0, 4).equals(magic)) throw new NotAuthentic('it does not begin like a protected file');
  if (container[4] !== version || container[5] !== suite) throw new NotAuthentic('its version or suite is not known');
  const length = fixedBytes + container.readUInt16BE(6) + wrappedBytes;
  if (container.length < length) throw new NotAuthentic('it is too short');
  const hex = container.toString('hex', 8, 24);
  const payloadId = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
  return { bytes: container.subarray(0, length), payloadId };
}

/**
 * Decrypts the data key, which authenticates every byte of the header.
 * @throws NotAuthentic when it is not
 */
export function dataKeyOf(header: Header, payloadKey: Buffer): Buffer {
  const front = header.bytes.subarray(0, header.bytes.length - wrappedBytes);
  const wrapped = header.bytes.subarray(front.length);
  return decrypted(payloadKey, wrapped.subarray(0, nonceBytes), front, wrapped.subarray(nonceBytes));
}

/**
 * Decrypts and authenticates the content.
 * @throws NotAuthentic when it is not
 */
export function openedWith(dataKey: Buffer, header: Header, container: Buffer): Buffer {
  return decrypted(dataKey, contentNonceOf(header.bytes), header.bytes, container.subarray(header.bytes.length));
}

function contentNonceOf(header: Buffer): Buffer {
  return header.subarray(24, 24 + nonceBytes);
}

/** Ciphertext and tag. */
function encrypted(key: Buffer, nonce: Buffer, bound: Buffer, plain: Buffer): Buffer {
  const aes = createCipheriv(cipher, key, nonce, { authTagLength: tagBytes }).setAAD(bound);
  return Buffer.concat([aes.update(plain), aes.final(), aes.getAuthTag()]);
}

function decrypted(key: Buffer, nonce: Buffer, bound: Buffer, given: Buffer): Buffer {
  if (given.length < tagBytes) throw new NotAuthentic('it is too short');
  const aes = createDecipheriv(cipher, key, nonce, { authTagLength: tagBytes })
    .setAAD(bound)
    .setAuthTag(given.subarray(given.length - tagBytes));
  const plain = aes.update(given.subarray(0, given.length - tagBytes));
  try {
    return Buffer.concat([plain, aes.final()]);
  } catch (error) {
    throw new NotAuthentic('it was changed', { cause: error });
  }
}
