import { PassThrough, Readable, Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { describe, expect, test, vi } from 'vitest';
import { command, encodeCommand } from '../../../src/cli/commands/encode.ts';
import { codeOf } from '../../../src/errors.ts';
import type { Clock } from '../../../src/model/time.ts';
import { identify } from '../../../src/record/identity.ts';
import { readText } from '../../../src/record/read.ts';
import { fullest, rows } from '../normalize/records.ts';
import { readStrictly } from './cef-strict.ts';

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

async function encode(args: string[], input: Iterable<string | Buffer> = []) {
  const stdout = new Collector({ highWaterMark: 16 });
  const stderr = new Collector();
  const code = await encodeCommand(clock).run(args, {
    stdin: Readable.from(input),
    stdout,
    stderr,
    env: {},
    signal: new AbortController().signal,
  });
  await Promise.all([stdout, stderr].map((stream) => finished(stream.end())));
  return { code, lines: stdout.text.split('\n').slice(0, -1), out: stdout.text, err: stderr.text };
}

const text = JSON.stringify(fullest);

describe('records on standard input', () => {
  test('give one message a line', async () => {
    const { code, lines, err } = await encode(['--format', 'ecs', '--source', 'production'], [`${text}\n{"logId":2}\n\n  \n[]`]);
    expect([code, err, lines.length]).toEqual([0, '', 3]);
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({
      '@timestamp': '2024-05-01T12:34:56.1234567Z',
      event: { created: '2024-05-01T12:35:10.000Z', original: text },
      dpas: { uid: identify('production')(readText(text)) },
    });
  });

  test('are of the source "default" unless another is named', async () => {
    const { lines } = await encode(['--format', 'cef'], [`${text}\r\n`]);
    expect(readStrictly(lines[0] ?? '').values.get('WaybillDpasUid')).toBe(identify('default')(readText(text)));
  });

  test('may come in pieces of bytes, and hold line separators that are none to NDJSON', async () => {
    const record = JSON.stringify({ ...fullest, payloadName: 'é😀\u2028x' });
    const bytes = Array.from(Buffer.from(`${record}\n${record}\n`), (byte) => Buffer.from([byte]));
    const { code, lines } = await encode(['--format=raw'], bytes);
    expect([code, lines]).toEqual([0, [record, record]]);
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

  test('are waited for until somebody stops the command', async () => {
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

  test.each(rows.map((row) => row.triple.join(':')))('%s is regular', async (outcome) => {
    const { lines } = await encode(['--format', 'ecs', '--example', outcome]);
    expect(lines.length).toBe(1);
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ event: { code: outcome }, tags: ['forwarded'] });
  });
});

describe('wrong use', () => {
  test.each([[['--formt', 'ecs']], [['--format', 'ecs', 'file']], [['--format']]])('%j does not fit the options', async (args) => {
    await expect(encode(args)).rejects.toMatchObject({ code: 'usage' });
  });

  test.each([
    [[], 'cannot run "encode": missing --format; see waybill help encode'],
    [['--format', 'xml'], 'cannot use --format "xml": there are ecs, cef, leef, ocsf, raw'],
    [['--format', 'toString'], 'cannot use --format "toString": there are ecs, cef, leef, ocsf, raw'],
    [['--format', 'ecs', '--source', 'A B'], 'cannot use --source "A B": not 1 to 32 of a-z, 0-9 and hyphen, no hyphen first'],
    [['--format', 'ecs', '--example', 'x'], 'cannot use --example "x": there are all, Encrypt:AccessGranted:Success, '],
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
