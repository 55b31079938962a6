/**
 * The container without the network: its bytes compared with a second implementation of
 * docs/reference-service.md, and every change of one.
 */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import {
  dataKeyOf,
  headerOf,
  newHeader,
  NotAuthentic,
  openedWith,
  overheadBytesMax,
  sealed,
} from '../../src/reference/payloads/container.ts';
import { sized } from '../support/long-run.ts';

const payloadId = '0f4d4b5d-4bf1-4ec4-bb50-25a1681a420d';
const payloadKey = randomBytes(32);
const rules = { ownerId: 'somebody', fileName: 'Übersicht' };

function containerOf(content: Buffer): { container: Buffer; dataKey: Buffer } {
  const { header, dataKey } = newHeader(payloadId, payloadKey, rules);
  return { container: sealed(header, dataKey, content), dataKey };
}

function open(container: Buffer, key = payloadKey): Buffer {
  const header = headerOf(container);
  return openedWith(dataKeyOf(header, key), header, container);
}

function refuses(container: Buffer): boolean {
  try {
    open(container);
    return false;
  } catch (error) {
    if (error instanceof NotAuthentic) return true;
    throw error;
  }
}

describe('the container', () => {
  test.each([0, 1, 15, 16, 17, 100_000])('contains %i bytes and returns them', (size) => {
    const content = randomBytes(size);
    const { container } = containerOf(content);
    expect(open(container).equals(content)).toBe(true);
    expect(headerOf(container).payloadId).toBe(payloadId);
    expect(container.length - size).toBe(112 + Buffer.byteLength(JSON.stringify(rules)));
    expect(container.length - size).toBeLessThan(overheadBytesMax);
    if (size > 15) expect(container.includes(content.subarray(0, 16))).toBe(false);
  });

  test('equals the document, byte by byte', () => {
    const content = Buffer.from('the content');
    const { container, dataKey } = containerOf(content);
    const rulesText = JSON.stringify(rules);
    const size = Buffer.byteLength(rulesText);
    expect(container.toString('hex', 0, 6)).toBe('89494b440101');
    expect(container.readUInt16BE(6)).toBe(size);
    expect(container.toString('hex', 8, 24)).toBe(payloadId.replaceAll('-', ''));
    expect(container.toString('utf8', 36, 36 + size)).toBe(rulesText);
    const key = createDecipheriv('aes-256-gcm', payloadKey, container.subarray(36 + size, 48 + size))
      .setAAD(container.subarray(0, 36 + size))
      .setAuthTag(container.subarray(80 + size, 96 + size));
    expect(Buffer.concat([key.update(container.subarray(48 + size, 80 + size)), key.final()]).equals(dataKey)).toBe(true);
    const again = createCipheriv('aes-256-gcm', dataKey, container.subarray(24, 36)).setAAD(container.subarray(0, 96 + size));
    const body = Buffer.concat([again.update(content), again.final(), again.getAuthTag()]);
    expect(container.subarray(96 + size).equals(body)).toBe(true);
  });

  test('of the same content is never the same twice', () => {
    const content = Buffer.alloc(64);
    const [one, other] = [containerOf(content), containerOf(content)];
    expect(one.dataKey.equals(other.dataKey)).toBe(false);
    expect(one.container.subarray(24, 36).equals(other.container.subarray(24, 36))).toBe(false);
  });

  // In `npm test` the content has 200 bytes.
  test('is refused with one bit changed at every position, and in the header with each bit changed', () => {
    const empty = containerOf(Buffer.alloc(0)).container.length;
    const length = sized(empty + 200, 4096);
    const { container } = containerOf(randomBytes(length - empty));
    expect(container).toHaveLength(length);
    const header = headerOf(container).bytes.length;
    let tried = 0;
    for (let at = 0; at < container.length; at += 1) {
      for (const bit of at < header ? [0, 1, 2, 3, 4, 5, 6, 7] : [at % 8]) {
        const changed = Buffer.from(container);
        changed[at] = (container[at] ?? 0) ^ (1 << bit);
        if (!refuses(changed)) expect.fail(`bit ${bit} of byte ${at} was changed, and it opens`);
        tried += 1;
      }
    }
    expect(tried).toBe(length + 7 * header);
  });

  test('is refused if truncated anywhere, or with bytes after it', () => {
    const { container } = containerOf(randomBytes(200));
    for (let length = 0; length < container.length; length += 1) expect(() => open(container.subarray(0, length))).toThrow(NotAuthentic);
    expect(() => open(Buffer.concat([container, Buffer.alloc(1)]))).toThrow(NotAuthentic);
  });

  test('is refused under the key of another payload, and so is a content after the header of another', () => {
    const [one, other] = [containerOf(Buffer.alloc(100, 1)), containerOf(Buffer.alloc(100, 2))];
    expect(() => open(one.container, randomBytes(32))).toThrow(NotAuthentic);
    const { bytes } = headerOf(one.container);
    expect(() => open(Buffer.concat([bytes, other.container.subarray(bytes.length)]))).toThrow(NotAuthentic);
  });

  test('has no space for rules of more than 65,535 bytes, and reports it', () => {
    expect(() => newHeader(payloadId, payloadKey, 'x'.repeat(65_533))).not.toThrow();
    expect(() => newHeader(payloadId, payloadKey, 'x'.repeat(65_534))).toThrow(RangeError);
  });
});
