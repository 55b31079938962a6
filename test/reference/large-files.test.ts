/** Large files: decoded and encoded in slices without a change, and within the memory budget. */
import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { decodedInSlices, encodedSlices } from '../../src/reference/http/base64.ts';
import { BodyBudget } from '../../src/reference/http/body-budget.ts';
import { fileOf, networkAt } from '../support/reference/files.ts';
import { Service, type Caller } from '../support/reference/service.ts';

/** Bytes of one slice. */
const slice = 786_432;
const contentOf = (length: number): Buffer =>
  Buffer.from(Uint32Array.from({ length: length / 4 + 1 }, (_, at) => at * 2_654_435_761).buffer).subarray(0, length);

describe('over HTTPS', () => {
  let service: Service;
  let author: Caller;
  beforeAll(async () => {
    service = await Service.start();
    author = await service.as('Author');
  });
  afterAll(() => service.stop());
  const protect = (body: unknown): ReturnType<Service['call']> => service.call(author, 'POST', '/payloads/protect-remote', body);

  test.each([slice - 1, slice, slice + 1, 3 * slice + 2])('a file of %d bytes comes back unchanged', async (length) => {
    const content = contentOf(length);
    const made = await protect(fileOf(content));
    expect(made.status).toBe(201);
    const body = { base64FileData: made.json['base64FileData'], userNetwork: networkAt() };
    const opened = await service.call(author, 'POST', '/payloads/open-remote', body);
    expect(opened.status).toBe(200);
    expect(Buffer.from(String(opened.json['base64FileData']), 'base64').equals(content)).toBe(true);
  });

  test.each([
    ['a blank', ' '],
    ['padding', '='],
    ['a letter of base64url', '-'],
  ])('%s anywhere in a long text is 400 that names the field', async (_, wrong) => {
    const text = contentOf(2 * slice).toString('base64');
    for (const at of [0, 70_000, (slice / 3) * 4 - 1, (slice / 3) * 4, text.length - 2]) {
      const { status, json } = await protect({ ...fileOf(''), base64FileData: text.slice(0, at) + wrong + text.slice(at + 1) });
      expect([status, json['parameter']], String(at)).toEqual([400, 'base64FileData']);
    }
  });

  test('a long text with escapes, given twice, or of another field has the value that JSON defines', async () => {
    const content = contentOf(100_000);
    const { fileType, fileName, userNetwork } = fileOf('');
    const text = content.toString('base64');
    const json = JSON.stringify({ fileType, fileName, userNetwork }).slice(0, -1);
    const owner = async (body: string): Promise<Buffer> => {
      const made = await protect(body);
      expect(made.status).toBe(201);
      const opened = await service.call(author, 'POST', '/payloads/open-remote', {
        base64FileData: made.json['base64FileData'],
        userNetwork: networkAt(),
      });
      return Buffer.from(String(opened.json['base64FileData']), 'base64');
    };
    const escaped = `\\u00${text.charCodeAt(0).toString(16)}${text.slice(1)}`;
    expect((await owner(`${json},"base64FileData":"${escaped}"}`)).equals(content)).toBe(true);
    expect((await owner(`${json},"base64FileData" : \n "${text}"}`)).equals(content)).toBe(true);
    expect(await owner(`${json},"base64FileData":"${text}","base64FileData":"YQ=="}`)).toEqual(Buffer.from('a'));
    expect((await owner(`${json},"base64FileData":"YQ==","base64FileData":"${text}"}`)).equals(content)).toBe(true);
    const other = await protect({ ...fileOf('x'), fileName: text });
    expect([other.status, other.json['parameter']]).toEqual([400, 'fileName']);
    const inside = await protect({ ...fileOf('x'), userNetwork: { ...networkAt(), base64FileData: text } });
    expect([inside.status, inside.json['parameter']]).toEqual([400, 'userNetwork.base64FileData']);
  });
});

test('other work runs between two slices of a text, and the slices together equal the whole', async () => {
  const content = contentOf(16 * slice);
  const text = Buffer.from(content.toString('base64'));
  let turns = 0;
  const end = new AbortController();
  const others = (async () => {
    for (; !end.signal.aborted; turns += 1) await setImmediate();
  })();
  expect((await decodedInSlices(text))?.equals(content)).toBe(true);
  end.abort();
  await others;
  expect(turns).toBeGreaterThanOrEqual(16);
  const slices = [...encodedSlices(content)];
  expect(slices).toHaveLength(16);
  expect(Buffer.concat(slices).equals(text)).toBe(true);
});

describe('the budget for bodies in memory', () => {
  const never = new AbortController().signal;

  test('admits bodies in the order of arrival while there is space, and a body above the limit alone', async () => {
    const budget = new BodyBudget(10);
    const inside: string[] = [];
    const enter = (name: string, bytes: number): Promise<Disposable> =>
      budget.reserve(bytes, never).then((room) => {
        inside.push(name);
        return room;
      });
    const first = await enter('first', 6);
    const [large, small, last] = [enter('large', 50), enter('small', 3), enter('last', 3)];
    await setImmediate();
    // The small one would fit, but the large one came first.
    expect(inside).toEqual(['first']);
    first[Symbol.dispose]();
    first[Symbol.dispose]();
    (await large)[Symbol.dispose]();
    await Promise.all([small, last]);
    expect(inside).toEqual(['first', 'large', 'small', 'last']);
  });

  test('drops a waiting body whose request is aborted', async () => {
    const budget = new BodyBudget(10);
    const room = await budget.reserve(10, never);
    const gone = new AbortController();
    const waiting = budget.reserve(10, gone.signal);
    const next = budget.reserve(4, never);
    gone.abort(new Error('gone'));
    await expect(waiting).rejects.toThrow('gone');
    room[Symbol.dispose]();
    expect(await next).toBeDefined();
  });
});
