/**
 * Every switch with active users: it takes effect, and they continue. `npm test` runs a quarter of
 * them. Separate tests cover each value in full.
 */
import { Readable } from 'node:stream';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { isLong } from '../support/long-run.ts';
import { Service, type TruthRecord } from '../support/reference/service.ts';

interface Stats {
  requests: Record<string, Record<string, number>>;
  faults: Record<string, number>;
  records: { visible: number; total: number };
}

interface Row {
  /** The switches tested by this row, with a value. */
  of: Record<string, unknown>;
  /** Other switches that it requires. */
  with?: Record<string, unknown>;
  /** The observable effect; polled until it is true. `before`: the figures from just before. */
  seen: (before: Stats) => Promise<boolean>;
  /** Timeout of a response without data. */
  patienceMs?: number;
  /** Users cannot act while it is set, and continue afterwards. */
  stops?: boolean;
}

let service: Service;
let defaults: Record<string, unknown>;
beforeAll(async () => {
  service = await Service.start('--activity', '60');
  defaults = (await service.control('GET', '/switches')).json;
  delete defaults['revokeTokens'];
  delete defaults['rotateKeys'];
});
afterEach(async () => {
  await service.set(defaults);
  service.patienceMs = 10_000;
});
afterAll(() => service.stop());

const stats = async (): Promise<Stats> => (await service.control('GET', '/stats')).json as unknown as Stats;
const newest = async (): Promise<TruthRecord[]> => (await service.page('sort=-logTimestamp&pageSize=20')).data;
/** True if some of the newest records match. */
const some = (is: (record: TruthRecord) => boolean) => async (): Promise<boolean> => (await newest()).some(is);
const statusSeen = (status: number) => async (): Promise<boolean> => (await service.api('/logs/payload?pageSize=1')).status === status;
/** The error of a request, if it fails. */
const failure = (): Promise<unknown> =>
  service.api('/logs/payload').then(
    () => undefined,
    (error: unknown) => (error as { code?: string }).code,
  );
const auditor = 'Security Administrator';
async function signIn(): Promise<{ status: number; json: Record<string, unknown> }> {
  const { status, text } = await service.form(service.clientForm(auditor));
  return { status, json: JSON.parse(text) as Record<string, unknown> };
}
const kidOf = (token: string): unknown =>
  (JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()) as { kid: string }).kid;
/** The responses with this status, over all endpoints. */
const answered = ({ requests }: Stats, status: number): number =>
  Object.values(requests).reduce((sum, counts) => sum + (counts[String(status)] ?? 0), 0);
/** The number of granted calls so far. */
const granted = ({ requests }: Stats): number =>
  Object.entries(requests)
    .filter(([endpoint]) => endpoint.startsWith('POST /payloads/'))
    .reduce((sum, [, counts]) => sum + (counts['200'] ?? 0) + (counts['201'] ?? 0), 0);
const fieldsOf = (record: TruthRecord): number => Object.keys(record).length;
const hasNull = (value: unknown): boolean =>
  value === null || (typeof value === 'object' && Object.values(value).some((each) => hasNull(each)));
/** A field of the record or of its network does not have the type of section 2.7. */
const hasOddType = ({ logId, userNetwork, ...texts }: TruthRecord): boolean =>
  typeof logId !== 'number' ||
  typeof userNetwork !== 'object' ||
  [...Object.values(texts), ...Object.values(userNetwork)].some((value) => typeof value !== 'string');

/** True if a record of a user is on the page of a window whose bound is its time. */
async function onPage(bounds: (time: string) => Record<string, string>): Promise<boolean> {
  const [, record] = await newest();
  if (!record) return false;
  const { data } = await service.page(new URLSearchParams({ ...bounds(record.logTimestamp), pageSize: '1000' }).toString());
  return data.some(({ logId }) => logId === record.logId);
}

/** True if some record became visible more than `ms` after its creation. */
function laterThan(ms: number): Row['seen'] {
  const made: { at: number; total: number }[] = [];
  return async (before) => {
    const at = performance.now();
    const { total, visible } = (await stats()).records;
    const earlier = made.findLast((each) => each.at < at - ms);
    made.push({ at: performance.now(), total });
    return earlier !== undefined && visible - before.records.visible < earlier.total - before.records.total;
  };
}

const rows: Row[] = [
  { of: { startBound: 'exclusive' }, seen: async () => !(await onPage((time) => ({ startTime: time }))) },
  { of: { endBound: 'exclusive' }, seen: async () => !(await onPage((time) => ({ endTime: time, sort: '-logTimestamp' }))) },
  {
    of: { timePrecision: '1s' },
    seen: () => onPage((time) => ({ startTime: time.slice(0, 19), endTime: time.slice(0, 19) })),
  },

  { of: { pageSizeMax: 3 }, seen: async () => (await service.page('pageSize=50')).data.length === 3 },
  { of: { pageSizeAbove: 'refused' }, seen: async () => (await service.api('/logs/payload?pageSize=1001')).status === 400 },
  { of: { pageSizeMaxThen: '2@0' }, seen: async () => (await service.page('pageSize=50')).data.length === 2 },
  { of: { pagePast: 'last' }, seen: async () => (await service.page('page=9999')).data.length > 0 },
  { of: { firstPage: 0 }, seen: async () => (await service.page()).pagination.page === 0 },
  {
    of: { sort: 'ignored' },
    seen: async () => {
      const records = await newest();
      return String(records[0]?.logTimestamp) < String(records.at(-1)?.logTimestamp);
    },
  },
  { of: { barePlus: 'refused' }, seen: async () => (await service.api('/logs/payload?sort=+result')).status === 400 },
  { of: { total: 'missing' }, seen: async () => !('totalRecords' in (await service.page()).pagination) },
  { of: { totalCap: 5 }, with: { total: 'capped' }, seen: async () => (await service.page()).pagination.totalRecords === 5 },
  { of: { totalLag: '1h' }, with: { total: 'lagging' }, seen: async () => (await service.page()).pagination.totalRecords === 0 },

  // Times of user actions have seven digits; other records may have fewer.
  { of: { rate: 200 }, seen: some(({ logTimestamp }) => !/\.\d{7}$/.test(logTimestamp)) },
  {
    of: { activity: 0 },
    stops: true,
    seen: async () => {
      const { requests } = await stats();
      await service.page();
      const { requests: later } = await stats();
      delete requests['GET /logs/full-payload'];
      delete later['GET /logs/full-payload'];
      return JSON.stringify(requests) === JSON.stringify(later);
    },
  },
  {
    // Nobody else is denied so many files.
    of: { attack: 'search' },
    seen: async () => {
      const denials = (await service.truth()).filter(({ resultReason }) => resultReason === 'UserPayloadNoAccess');
      const files = [...Map.groupBy(denials, ({ userId }) => userId).values()].map(
        (own) => new Set(own.map(({ payloadId }) => payloadId)).size,
      );
      return Math.max(...files) >= 8;
    },
  },
  {
    of: { lateDelay: '0s' },
    with: { lateShare: 1 },
    seen: async (before) => {
      const { records } = await stats();
      return records.total > before.records.total + 3 && records.visible - before.records.visible === records.total - before.records.total;
    },
  },
  {
    // The second of two nodes shows its records after an hour.
    of: { nodes: 2, lateShare: [0, 1] },
    with: { lateDelay: '1h' },
    seen: async (before) => {
      const { records } = await stats();
      const shown = records.visible - before.records.visible;
      return shown > 0 && records.total - before.records.total > shown;
    },
  },
  {
    // With a uniform delay up to 400 ms none would be later than that.
    of: { lateTail: 'long' },
    with: { lateShare: 1, lateDelay: '400ms' },
    seen: laterThan(400),
  },

  { of: { rateLimit: '5/250ms' }, seen: async (before) => answered(await stats(), 429) > answered(before, 429) },
  { of: { quota: '5/250ms' }, seen: statusSeen(403) },
  {
    of: { retryAfter: 'date' },
    with: { rateLimit: '5/250ms' },
    seen: async () => String((await service.api('/logs/payload')).headers['retry-after']).endsWith(' GMT'),
  },
  { of: { fileMax: 1 }, seen: async (before) => answered(await stats(), 413) > answered(before, 413) },
  {
    of: { bodyPatience: '300ms' },
    seen: async () => {
      const half = new Readable({ read: () => undefined });
      half.push('{"fileType":');
      return (await service.call(await service.as('Author'), 'POST', '/payloads/protect-local', half)).status === 408;
    },
  },

  { of: { tokenLifetime: '2s' }, seen: async () => (await signIn()).json['expires_in'] === 2 },
  { of: { rotateKeys: 'now' }, seen: async () => kidOf(await service.token()) !== kidOf(await service.token(auditor, true)) },
  { of: { revokeTokens: 'now' }, seen: async () => (await statusSeen(401)()) && (await service.token(auditor, true)) !== '' },
  { of: { identityProvider: 'unavailable' }, seen: async () => (await signIn()).status === 503 },

  ...[500, 502, 503, 504].map((status) => ({ of: { [`fault${status}`]: 0.3 }, seen: statusSeen(status) })),
  { of: { faultHtml200: 0.3 }, seen: async () => (await service.api('/logs/payload')).text.startsWith('<!DOCTYPE html>') },
  { of: { faultHtml502: 0.3 }, seen: statusSeen(502) },
  { of: { faultReset: 0.3 }, seen: async () => (await failure()) === 'ECONNRESET' },
  { of: { faultTruncated: 0.3 }, seen: async () => (await failure()) === 'UND_ERR_SOCKET' },
  { of: { faultCut: 0.3 }, seen: async () => !(await service.api('/logs/payload?pageSize=1')).text.endsWith('}') },
  // Eight users act concurrently, and each waits for a response as long as any client.
  { of: { faultStalled: 0.05 }, patienceMs: 500, seen: async () => (await failure()) === 'UND_ERR_BODY_TIMEOUT' },
  {
    of: { faultSlow: 1, slowFor: '200ms' },
    seen: async () => {
      const from = performance.now();
      await service.page('pageSize=1');
      return performance.now() - from > 150;
    },
  },

  { of: { oddNoFraction: 0.5 }, seen: some(({ logTimestamp }) => !logTimestamp.includes('.')) },
  { of: { oddMissing: 0.5 }, seen: some((record) => fieldsOf(record) < 14) },
  { of: { oddNull: 0.5 }, seen: some(hasNull) },
  { of: { oddUnknown: 0.5 }, seen: some((record) => fieldsOf(record) > 14) },
  { of: { oddType: 0.5 }, seen: some(hasOddType) },
  { of: { oddHuge: 0.2 }, seen: some((record) => String(record['payloadName']).length === 64 * 1024) },
  { of: { oddControl: 0.5 }, seen: some((record) => String(record['payloadName']).includes('\u0000')) },
  { of: { oddSurrogate: 0.5 }, seen: some((record) => !String(record['payloadName']).isWellFormed()) },
  { of: { oddValue: 0.5 }, seen: some((record) => Object.values(record).some((value) => String(value).startsWith('Unheard'))) },
  { of: { oddBigId: 0.5 }, seen: some(({ logId }) => logId > Number.MAX_SAFE_INTEGER) },
  {
    of: { oddRepeatedId: 0.5 },
    with: { nodes: 2 },
    seen: async () => {
      const ids = (await newest()).map(({ logId }) => logId);
      return new Set(ids).size < ids.length;
    },
  },

  { of: { permissions: 'fields' }, seen: some((record) => !('userNetwork' in record)) },
  { of: { retention: '300ms' }, seen: async (before) => (await stats()).records.visible < before.records.visible },
];

test('users act, and there is a row for each switch', { timeout: 300_000 }, async () => {
  await expect.poll(async () => (await stats()).records.visible, { timeout: 60_000 }).toBeGreaterThan(60);
  expect(rows.flatMap(({ of }) => Object.keys(of)).sort()).toEqual([...Object.keys(defaults), 'revokeTokens', 'rotateKeys'].sort());
});

// `npm test` runs every eighth row: rows are in the order of their subjects, so it runs some of each.
const chosen = isLong ? rows : rows.filter((_, at) => at % 8 === 2);
test.each(chosen.map((row) => [JSON.stringify(row.of), row] as const))(
  '%s takes effect, and users continue',
  { timeout: 300_000 },
  async (_, row) => {
    const before = await stats();
    service.patienceMs = row.patienceMs ?? service.patienceMs;
    await service.set({ ...row.with, ...row.of });
    await expect.poll(() => row.seen(before), { timeout: 60_000, interval: 30 }).toBe(true);
    if (row.stops === true) await service.set(defaults);
    const done = granted(await stats());
    await expect.poll(async () => granted(await stats()), { timeout: 60_000, interval: 30 }).toBeGreaterThan(done + 1);
  },
);
