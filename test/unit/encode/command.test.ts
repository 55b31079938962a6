import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable, Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { afterAll, describe, expect, test, vi } from 'vitest';
import { command, encodeCommand } from '../../../src/cli/commands/encode.ts';
import { codeOf } from '../../../src/errors/errors.ts';
import type { Clock } from '../../../src/model/time.ts';
import { identify } from '../../../src/record/identity.ts';
import { readText } from '../../../src/record/read.ts';
import { fullest, rows } from '../../support/normalize/records.ts';
import { readStrictly } from '../../support/encode/cef-strict.ts';

const at = Date.parse('2024-05-01T12:35:10.000Z');
const clock: Clock = {
  now: () => at,
  monotonic: () => 0,
  sleep: () => Promise.reject(new Error('encode never sleeps')),
};

class Collector extends Writable {
  text = '';
  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString();
    setImmediate(done);
  }
}

async function encode(args: string[], input: Iterable<string | Buffer> = [], env: NodeJS.ProcessEnv = {}) {
  const stdout = new Collector({ highWaterMark: 16 });
  const stderr = new Collector();
  const code = await encodeCommand(clock).run(args, {
    stdin: Readable.from(input),
    stdout,
    stderr,
    env,
    signal: new AbortController().signal,
  });
  await Promise.all([stdout, stderr].map((stream) => finished(stream.end())));
  return { code, lines: stdout.text.split('\n').slice(0, -1), out: stdout.text, err: stderr.text };
}

const text = JSON.stringify(fullest);

describe('records on standard input', () => {
  test('give one message per line', async () => {
    const { code, lines, err } = await encode(['--format', 'ecs', '--source', 'production'], [`${text}\n{"logId":2}\n\n  \n[]`]);
    expect([code, err, lines.length]).toEqual([0, '', 3]);
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({
      '@timestamp': '2024-05-01T12:34:56.1234567Z',
      event: { created: '2024-05-01T12:35:10.000Z', original: text },
      dpas: { uid: identify('production')(readText(text)) },
    });
  });

  test('belong to the source "default" unless another is named', async () => {
    const { lines } = await encode(['--format', 'cef'], [`${text}\r\n`]);
    expect(readStrictly(lines[0] ?? '').values.get('WaybillDpasUid')).toBe(identify('default')(readText(text)));
  });

  test('may come in pieces, and contain line separators that do not end an NDJSON line', async () => {
    const record = JSON.stringify({ ...fullest, payloadName: 'é😀\u2028x' });
    const bytes = Array.from(Buffer.from(`${record}\n${record}\n`), (byte) => Buffer.from([byte]));
    const { code, lines } = await encode(['--format=raw'], bytes);
    expect([code, lines]).toEqual([0, [record, record]]);
  });

  test.each([text, '"a text"', '7'])('%s may stand between blanks, which are no part of it', async (record) => {
    const { lines } = await encode(['--format', 'ecs'], [`${record}\n \t${record}\t \r\n`]);
    expect(lines).toHaveLength(2);
    expect(lines[1]).toBe(lines[0]);
  });

  test('that are not JSON are reported with their line, and the others encoded', async () => {
    const { code, lines, err } = await encode(['--format', 'raw'], [`${text}\n{"a":\n\nnot\u001b[31m\n${text}\n{`]);
    expect(code).toBe(1);
    expect(lines).toEqual([text, text]);
    expect(err.split('\n').map((line) => line.slice(0, 36))).toEqual([
      'cannot encode line 2: it is not JSON',
      'cannot encode line 4: it is not JSON',
      'cannot encode line 6: it is not JSON',
      '',
    ]);
    expect(err).not.toContain('\u001b');
  });

  test('are awaited until the command is stopped', async () => {
    const stop = new AbortController();
    const stdin = new PassThrough();
    stdin.write(`${text}\n`);
    const stdout = new Collector();
    const io = { stdin, stdout, stderr: new Collector(), env: {}, signal: stop.signal };
    const running = encodeCommand(clock).run(['--format', 'raw'], io);
    await vi.waitFor(() => expect(stdout.text).toBe(`${text}\n`));
    stop.abort(new Error('stopped'));
    await expect(running).rejects.toThrow('stopped');
    expect(stdin.destroyed).toBe(true);
  });
});

describe('examples', () => {
  test('all: one for each outcome', async () => {
    const { code, lines } = await encode(['--format', 'cef', '--example', 'all']);
    expect(code).toBe(0);
    expect(lines.map((line) => readStrictly(line).classId)).toEqual(rows.map((row) => row.triple.join(':')));
  });

  test.each(rows.map((row) => row.triple.join(':')))('%s has no unexpected property', async (outcome) => {
    const { lines } = await encode(['--format', 'ecs', '--example', outcome]);
    expect(lines.length).toBe(1);
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ event: { code: outcome }, tags: ['forwarded'] });
  });
});

describe('as a sink of the configuration', () => {
  const directory = mkdtempSync(join(tmpdir(), 'waybill-encode-'));
  afterAll(() => rmSync(directory, { recursive: true }));
  const auth = '{ authUrl: https://login.example, tenantId: tenant-7, clientId: c, clientSecret: "${env:SECRET}", scopeAddress: a }';
  const start = 'start: 2026-01-01T00:00:00Z';
  const file = join(directory, 'waybill.yaml');
  writeFileSync(
    file,
    `dataDir: ${directory}/state
mapping: { severity: { "Decrypt:AccessGranted:Success": 9 }, names: { "Decrypt:AccessGranted:Success": File opened } }
privacy:
  key: \${env:KEY}
  rules: [{ fields: [userId, payloadName], action: pseudonymize }]
sources:
  - { id: alpha, baseUrl: https://alpha.example, ${start}, auth: ${auth} }
  - { id: beta, baseUrl: https://beta.example, ${start}, auth: ${auth}, observer: { product: Vault } }
sinks:
  - { id: siem, type: syslog, address: 'tcp://siem.example:601', sources: [beta], filter: { result: [AccessGranted] } }
  - { id: tiny, type: syslog, address: 'udp://siem.example:514', format: ocsf, maxBytes: 480, sources: [beta] }
  - { id: lake, type: stdout, format: ecs, includeOriginal: false, privacy: { rules: [{ fields: [userEmailAddress], action: drop }] } }
`,
  );
  const asSink = (sink: string, input: string, ...more: string[]) =>
    encode(['--config', file, '--sink', sink, ...more], [input], { KEY: 'a key of 16 characters or more' });

  test('uses its filter, format and mapping, and the only source that it receives', async () => {
    const denied = JSON.stringify({ ...fullest, result: 'AccessDenied', resultReason: 'TimeEmbargoFailed' });
    const { code, lines, err } = await asSink('siem', `${text}\n${denied}\n`);
    expect([code, err, lines.length]).toEqual([0, '1 record is excluded by the filter of the sink\n', 1]);
    const { product, severity, name, values } = readStrictly(lines[0] ?? '');
    expect([product, severity, name]).toEqual(['Vault', '9', 'File opened']);
    expect(values.get('deviceExternalId')).toBe('tenant-7');
    expect(values.get('WaybillDpasUid')).toBe(identify('beta')(readText(text)));
  });

  test('applies the privacy rules: no removed value is left in any field', async () => {
    const { lines, out } = await asSink('siem', text);
    expect(readStrictly(lines[0] ?? '').values.get('suid')).toMatch(/^pn_[\w-]{22}$/);
    for (const hidden of [fullest.userId, fullest.payloadName]) expect(out).not.toContain(hidden);
    const lake = await asSink('lake', text, '--source', 'alpha');
    expect(lake.out).not.toContain(fullest.userEmailAddress);
    expect(JSON.parse(lake.out)).toMatchObject({ user: { id: fullest.userId }, observer: { hostname: 'alpha.example' } });
    expect(lake.out).not.toContain('"original"');
  });

  test('needs no credentials except the key of pseudonyms', async () => {
    await expect(encode(['--config', file, '--sink', 'siem'], [text])).rejects.toMatchObject({ code: 'secret_missing' });
    const { code, out } = await encode(['--config', file, '--sink', 'lake', '--source', 'alpha'], [text]);
    expect(code, out).toBe(0);
  });

  test('reports a record that exceeds the limit of the sink even when shortened', async () => {
    const { code, lines, err } = await asSink('tiny', text);
    expect([code, lines]).toEqual([1, []]);
    expect(err).toMatch(/^cannot encode line 1: cannot shorten a message of \d+ bytes to the \d+ that the sink accepts\n$/);
  });

  test.each([
    ['lake', [], 'missing --source: the sink "lake" receives several sources: alpha, beta'],
    ['siem', ['--source', 'alpha'], 'cannot find the source of sink "siem" "alpha"'],
    ['seim', [], 'cannot find the sink "seim": the nearest is "siem"'],
  ])('%s %j is rejected', async (sink, more, message) => {
    const thrown: unknown = await asSink(sink, text, ...more).catch((error: unknown) => error);
    expect(codeOf(thrown)).toBe('usage');
    expect((thrown as Error).message.slice(0, message.length)).toBe(message);
  });

  test('encodes examples', async () => {
    const { code, lines, err } = await asSink('siem', '', '--example', 'all');
    expect([code, lines.length, err]).toEqual([0, 2, '15 records are excluded by the filter of the sink\n']);
  });
});

describe('invalid use', () => {
  test.each([[['--formt', 'ecs']], [['--format', 'ecs', 'file']], [['--format']]])('%j does not fit the options', async (args) => {
    await expect(encode(args)).rejects.toMatchObject({ code: 'usage' });
  });

  test.each([
    [[], 'cannot run "encode": missing --format or --sink; see waybill help encode'],
    [['--format', 'ecs', '--config', 'waybill.yaml'], 'cannot use --config without --sink'],
    [['--format', 'ecs', '--sink', 'siem'], 'cannot use --format with --sink: the configuration has the format of the sink'],
    [['--format', 'xml'], 'cannot use --format "xml": expected one of ecs, cef, leef, ocsf, raw'],
    [['--format', 'toString'], 'cannot use --format "toString": expected one of ecs, cef, leef, ocsf, raw'],
    [['--format', 'ecs', '--source', 'A B'], 'cannot use --source "A B": not 1 to 32 of a-z, 0-9 and hyphen, no hyphen first'],
    [['--format', 'ecs', '--example', 'x'], 'cannot use --example "x": expected one of all, Encrypt:AccessGranted:Success, '],
  ])('%j', async (args, words) => {
    const thrown: unknown = await encode(args).then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(codeOf(thrown)).toBe('usage');
    expect((thrown as Error).message.slice(0, words.length)).toBe(words);
  });
});

test('the help names every format and both options', () => {
  expect(command.summary).not.toMatch(/\.$/);
  for (const word of ['ecs, cef, leef, ocsf, raw', '--source', '--example', '17 outcomes']) expect(command.usage).toContain(word);
});
