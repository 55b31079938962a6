/**
 * No record makes the daemon fail. Records that violate every specification arrive, too: once, in
 * three sinks and three formats, one line each, with the bytes that the service sent.
 */
import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ago, configure, Daemon, readLedgerOf, sourceOf } from '../support/e2e-daemon.ts';
import { compare, delivered, exactlyOnce, linesOf, originalOf } from '../support/e2e-oracle.ts';
import { inPlace, until, patience } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';

const stamp = new Date(Date.now() - 60_000).toISOString().slice(0, 19);
/** A complete record of section 2.7 of the specification. `logId` is added. */
const sound: Readonly<Record<string, unknown>> = {
  userId: 'u-17',
  payloadId: 'p-4711',
  payloadName: 'Budget 2026.xlsx',
  currentPayloadOwnerId: 'u-3',
  actionAttempted: 'Decrypt',
  result: 'AccessDenied',
  resultReason: 'UserPayloadNoAccess',
  logTimestamp: `${stamp}.1234567`,
  userNetwork: { ipAddress: '192.0.2.7', machineName: 'HOST-9', latLong: '52.5,13.4', mac: '0A-1B-2C-3D-4E-5F' },
  userLastNameFirstName: 'Doe, Jo',
  userEmailAddress: 'jo.doe@example.org',
  currentOwnerLastNameFirstName: 'Roe, Al',
  currentOwnerEmailAddress: 'al.roe@example.org',
};
const fields = Object.keys(sound);
const huge = 'x'.repeat(64 * 1024);
const bigIds = ['9007199254740993', '9007199254740992', '9223372036854775808', '123456789012345678901234567890', '-9007199254740995'];
const withoutTime = ['null', '""', '"yesterday"', '"2026-13-01T00:00:00.0"', '"2026-02-30T00:00:00"', '1795270000', '{}', 'true'];
const notObjects = [
  '7',
  '-1.5e300',
  'true',
  'false',
  'null',
  '"text"',
  '""',
  '[]',
  '[1,[2,{"a":null}]]',
  nested('[', ']', 500),
  '9007199254740993',
];

/** JSON texts, each of them one record. */
function odd(): string[] {
  let next = 1;
  const made = (changes: Readonly<Record<string, unknown>>): string => JSON.stringify({ logId: (next += 1), ...sound, ...changes });
  /** A field with a value that JSON.stringify would not write. */
  const written = (name: string, json: string): string =>
    made({ [name]: '\u0001here' }).replace(`"${name}":"\\u0001here"`, () => `"${name}":${json}`);
  return [
    made({}),
    // Combinations outside the table of the specification.
    made({ actionAttempted: 'Teleport', result: 'AccessGranted' }),
    made({ result: 'Perhaps' }),
    made({ resultReason: 'Because | = \\ ] "of" \'that\'' }),
    made({ actionAttempted: 'CEF:0|Forged|Line|1.0|x|y|9|' }),
    // Missing, null, blank, or of another type.
    ...fields.map((name) => made({ [name]: undefined })),
    ...fields.map((name) => made({ [name]: null })),
    ...fields.filter((name) => name !== 'logTimestamp').map((name) => made({ [name]: '   ' })),
    ...fields
      .filter((name) => name !== 'logTimestamp')
      .flatMap((name) => [7, true, ['a', 1], { a: { b: [] } }].map((value) => made({ [name]: value }))),
    ...['null', '"text"', '""', '1.5', '[1]', '{"a":1}', 'true'].map((json) => written('logId', json)),
    JSON.stringify(sound),
    ...withoutTime.map((json) => written('logTimestamp', json)),
    // Large, and hostile to code that prints or splits them.
    made({ payloadName: huge }),
    made({ payloadName: '\u0000\u0001\b\t\n\v\f\r\u001b[31m\u007f\u0085\u2028\u2029\ufeff end' }),
    made({ userEmailAddress: 'a\nb@example.org', userNetwork: { machineName: 'one\r\ntwo', ipAddress: '192.0.2.8\n' } }),
    written('payloadName', '"raw \u007f \u0085 \u2028 \u2029 \u202e gnp.exe"'),
    ...['\\ud83d', '\\ude00', '\\ude00\\ud83d', 'a\\ud800\\ud800b', '\\ud83d\\ude00 whole'].map((name) =>
      written('payloadName', `"${name}"`),
    ),
    written('payloadName', `"${huge}\\ud83d"`),
    made({ unknownField: { deep: [1, { deeper: null }] }, ключ: 'значение', '': 'no name' }),
    written('userId', '"u-1","userId":"u-2","__proto__":{"polluted":true},"constructor":7'),
    written('userNetwork', nested('[', ']', 200)),
    written('userNetwork', nested('{"a":', '}', 100, '1')),
    written('payloadId', '1.50'),
    written('payloadId', '1e400'),
    made({}).replaceAll(',"', ' ,\t"').replace('{', '{  '),
    // The same logId on two nodes: different records if any part of their identity differs.
    ...Object.entries({
      logTimestamp: `${stamp}.1234568`,
      actionAttempted: 'Encrypt',
      result: 'AccessGranted',
      resultReason: 'Success',
    }).map(([name, value]) => JSON.stringify({ logId: 2, ...sound, [name]: value })),
    ...bigIds.map((digits) => written('logId', digits)),
    ...notObjects,
  ];
}

// promise: Any record is delivered once to each sink, and the daemon continues.
test('any record is delivered once to each sink, and the daemon continues', { timeout: 300_000 }, async () => {
  await inPlace('records', async (place) => {
    const service = await Service.start(
      place,
      '--records',
      '200',
      '--span',
      '30s',
      '--odd-surrogate',
      '0.3',
      '--odd-control',
      '0.3',
      '--odd-type',
      '0.5',
      '--odd-no-fraction',
      '0.05',
    );
    const formats = ['ecs', 'cef', 'raw'];
    const sinks = formats.map((format) => ({ id: format, type: 'file', path: `./${format}.out`, format }));
    const source = sourceOf(service, ago(300_000), { closeDelay: '1s', recountAfter: ['1s'] });
    configure(place, [source], sinks);
    const texts = odd();
    await service.add(texts);
    const daemon = new Daemon(place);
    const files = formats.map((format) => place.path(`${format}.out`));
    await delivered(service, files.slice(0, 1));
    await until('as many lines in the others', patience, () =>
      files.every((file) => existsSync(file) && linesOf(file).length === linesOf(files[0] ?? '').length) ? true : undefined,
    );
    await daemon.ready(200);
    // Nothing arrives again after a reload, an operation and a restart.
    configure(place, [{ ...source, pollInterval: '2s' }], sinks);
    daemon.signal('SIGHUP');
    await daemon.logged('config.reloaded');
    expect(await place.waybill('sources', 'retry', '--source', 'production')).toMatchObject({ code: 0 });
    await daemon.logged('operation.performed');
    expect(daemon.log.filter(({ level }) => level === 'error')).toEqual([]);
    expect(await daemon.stop()).toMatchObject({ code: 0, signal: null });
    const restarted = new Daemon(place);
    await restarted.logged('state.opened');
    await restarted.ready(200);
    expect(await restarted.stop()).toMatchObject({ code: 0, signal: null });

    const truth = await service.truth();
    expect(truth).toEqual(expect.arrayContaining(texts));
    const ecs = linesOf(place.path('ecs.out'));
    const cef = linesOf(place.path('cef.out'));
    const raw = linesOf(place.path('raw.out'));
    expect(compare(ecs, truth, originalOf)).toEqual(exactlyOnce);
    expect(compare(raw, truth, (line) => line)).toEqual(exactlyOnce);
    expect([ecs.length, cef.length, raw.length]).toEqual([truth.length, truth.length, truth.length]);

    // CEF contains no record text: its uid identifies the record, by the uid in ECS.
    const uids = ecs.map((line) => (JSON.parse(line) as { dpas: { uid: string } }).dpas.uid);
    expect(new Set(uids).size).toBe(truth.length);
    expect(cef.map((line) => / WaybillDpasUid=([\w-]{22})( |$)/.exec(line)?.[1]).sort()).toEqual([...uids].sort());
    for (const line of cef) expect(line).toMatch(/^CEF:0\|[^\u0000-\u001f\u007f]*$/);
    for (const format of formats) {
      // Invalid UTF-8 would throw here.
      const text = new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(place.path(`${format}.out`)));
      expect(text.isWellFormed(), format).toBe(true);
    }

    // Digits beyond the precision of a JavaScript number stay unchanged.
    const ids = new Map(ecs.map((line) => [originalOf(line), (JSON.parse(line) as { event: { id?: string } }).event.id]));
    for (const digits of bigIds) expect(ids.get(texts.find((text) => text.startsWith(`{"logId":${digits},`)))).toBe(digits);

    const { code, ledger } = await readLedgerOf(place);
    expect({ code, complete: ledger.complete }).toEqual({ code: 0, complete: true });
    for (const { sinks: each } of ledger.sources[0]?.windows ?? [])
      expect(Object.values(each).map(({ deadLetters }) => deadLetters)).toEqual([0, 0, 0]);
  });
});

function nested(open: string, close: string, depth: number, inside = ''): string {
  return open.repeat(depth) + inside + close.repeat(depth);
}
