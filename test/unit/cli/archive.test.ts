/** `waybill archive`: exit codes and output of verify, prove and export, on archives in a directory. */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { DirectoryStore } from '../../../src/archive/directory-store.ts';
import { WaybillError } from '../../../src/errors/errors.ts';
import { command } from '../../../src/cli/commands/archive/index.ts';
import { publicKeyPath } from '../../support/archive-files.ts';
import { keyFrom, minute, provenLine, recordLine, start, windowLines, writeArchive, uidOf as uidIn } from '../../support/archive.ts';
import { outputOf, type Output } from '../../support/command-io.ts';
import { valid } from '../../support/config/loading.ts';

let folder: string;
let directory: string;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'waybill-archive-command-'));
  directory = join(folder, 'archive');
  await writeArchive(new DirectoryStore(directory), lines, 30);
});
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true });
});

function archive(...args: string[]): Promise<Output> {
  return outputOf((given, io) => command.run(given, io), args);
}

const place = (): string[] => ['--directory', directory];
const key = (): string[] => ['--key', publicKeyPath(directory)];
const verified = async (...args: string[]): Promise<{ code: number; report: Record<string, unknown> }> => {
  const { code, stdout } = await archive('verify', ...place(), ...key(), '--json', ...args);
  return { code, report: JSON.parse(stdout) as Record<string, unknown> };
};
const lines = windowLines(20, 4);
/** Of a record of the archive, or of one that it has not. */
const uidOf = (seq: number): string => (lines[seq - 1]?.kind === 'record' ? uidIn(seq, lines) : recordLine(seq, 0).uid);

test('verify exits with 0 for an unchanged archive, and states which part no checkpoint confirms', async () => {
  expect(await verified()).toMatchObject({
    code: 0,
    report: {
      result: 'intact',
      records: 80,
      lines: 104,
      confirmed: 0,
      findings: [],
      sources: [{ windows: 20, proven: 20, from: '2026-07-01T00:00:00Z' }],
    },
  });
  const { stdout } = await archive('verify', ...place(), ...key());
  expect(stdout).toMatch(/^production +20 +20 /m);
  expect(stdout).toContain('INTACT');
  expect(stdout).toContain('--since FILE');
});

test('verify takes location and key from a sink in the configuration', async () => {
  const [pem, config] = [join(folder, 'key.pem'), join(folder, 'waybill.yaml')];
  writeFileSync(pem, keyFrom(1).export({ format: 'pem', type: 'pkcs8' }));
  const sink = `directory: ${directory}\nsigningKey: \${file:${pem}}`;
  writeFileSync(config, valid({ sink }).replace('type: stdout', 'type: archive'));
  expect(await archive('verify', '--config', config, '--sink', 'out')).toMatchObject({ code: 0 });
  writeFileSync(pem, keyFrom(2).export({ format: 'pem', type: 'pkcs8' }));
  expect(await archive('verify', '--config', config, '--sink', 'out')).toMatchObject({ code: 3 });
  writeFileSync(config, valid());
  await expect(archive('verify', '--config', config, '--sink', 'out')).rejects.toMatchObject({ code: 'usage' });
});

test('verify compares a checkpoint from another place', async () => {
  const since = join(folder, 'since');
  writeFileSync(since, readFileSync(join(directory, 'checkpoints/0000000002')));
  expect(await verified('--since', since)).toMatchObject({ code: 0, report: { confirmed: 62 } });
  // As editors and mail store it. Other bytes are not a part of a checkpoint.
  const note = readFileSync(since, 'latin1');
  for (const [text, code] of [
    [`\xef\xbb\xbf\r\n${note.replaceAll('\n', '\r\n')}\t \r\n`, 0],
    [`${note}\xc2\xa0`, 1],
    [`${note}\xe2\x80\x94 other\xff AAAAAAAA\n`, 1],
  ] as const) {
    writeFileSync(since, text, 'latin1');
    expect((await verified('--since', since)).code, JSON.stringify(text)).toBe(code);
  }
  writeFileSync(since, note, 'latin1');
  rmSync(directory, { recursive: true });
  await writeArchive(new DirectoryStore(directory), windowLines(2, 4), 30);
  expect(await verified('--since', since)).toMatchObject({ code: 1, report: { confirmed: 0 } });
});

test('verify exits with 3 if a segment cannot be read', async () => {
  const failure = Object.assign(new Error('EIO: i/o error, read'), { code: 'EIO', syscall: 'read' });
  const readAny = (path: string): Promise<Buffer> => readFile(join(directory, path));
  vi.spyOn(DirectoryStore.prototype, 'read').mockImplementation((path) =>
    path.startsWith('segments/') ? Promise.reject(failure) : readAny(path).catch(() => undefined),
  );
  const { code, report } = await verified();
  expect(code).toBe(3);
  expect(report).toMatchObject({ findings: [{ severity: 'unproven', message: expect.stringContaining('EIO') as string }] });
});

test('verify ignores a folder in the place of the copy of the newest checkpoint, which is no evidence', async () => {
  rmSync(join(directory, 'checkpoint'));
  mkdirSync(join(directory, 'checkpoint'));
  expect(await verified()).toMatchObject({ code: 0, report: { result: 'intact' } });
});

test('a proof has one record, and verify checks it without the archive', async () => {
  const proof = join(folder, 'proof.json');
  const { code, stdout } = await archive('prove', ...place(), `--uid=${uidOf(7)}`);
  expect(code).toBe(0);
  for (let seq = 1; seq < 80; seq += 1) expect(stdout.includes(uidOf(seq)), String(seq)).toBe(seq === 7);
  writeFileSync(proof, stdout);
  const keyFile = join(folder, 'archive.pub');
  writeFileSync(keyFile, readFileSync(publicKeyPath(directory)));
  rmSync(directory, { recursive: true });
  const checked = await archive('verify', '--proof', proof, '--key', keyFile);
  expect(checked.code).toBe(0);
  expect(checked.stdout).toContain('INTACT: 1 line ');
  expect(checked.stdout).toMatch(new RegExp(`^proof 1: line \\d+ of \\d+: record, ${uidOf(7)}, 2026-07-01T`));
  const printed = await archive('verify', '--proof', proof, '--key', keyFile, '--print');
  expect(printed).toMatchObject({ code: 0, stderr: expect.stringContaining('INTACT: 1 line ') as string });
  expect(printed.stdout).toBe(`${(JSON.parse(stdout) as { line: string }).line}\n`);
  writeFileSync(proof, stdout.replace('\\"seq\\":7', '\\"seq\\":8'));
  expect(await archive('verify', '--proof', proof, '--key', keyFile, '--json')).toMatchObject({ code: 1 });
  writeFileSync(proof, `${stdout}no proof\n${stdout}`);
  expect(await archive('verify', '--proof', proof, '--key', keyFile)).toMatchObject({
    code: 3,
    stdout: expect.stringContaining('proof 2: it is not a proof of the format waybill-proof/1 or 2\nUNPROVEN: 2 lines') as string,
  });
  writeFileSync(proof, 'no proof');
  expect(await archive('verify', '--proof', proof, '--key', keyFile)).toMatchObject({ code: 3 });
});

test('a record that is not in the archive has no proof', async () => {
  await expect(archive('prove', ...place(), '--uid', 'BBBBBBBBBBBBBBBBBBBBBA')).rejects.toMatchObject({ code: 'archive_broken' });
});

test('export gives the lines of a period and a source, each with its proof', async () => {
  const out = join(folder, 'day.ndjson');
  const period = ['--source', 'production', '--from', '2026-07-01T00:02:00Z', '--to', '2026-07-01T00:04:00Z'];
  expect(await archive('export', ...place(), ...period, '--out', out)).toMatchObject({ code: 0 });
  const lines = readFileSync(out, 'utf8').trimEnd().split('\n').map((line) => JSON.parse(line) as { line: string }); // prettier-ignore
  const facts = lines.map(({ line }) => JSON.parse(line) as { kind: string; seq: number });
  expect(facts.filter(({ kind }) => kind === 'record').map(({ seq }) => seq)).toEqual([11, 12, 13, 14, 16, 17, 18, 19]);
  expect(facts.filter(({ kind }) => kind === 'ledger').map(({ seq }) => seq)).toEqual([15, 20]);
  expect(await archive('verify', '--proof', out, ...key())).toMatchObject({ code: 0 });
  expect(await archive('verify', '--proof', out, ...key(), '--json')).toMatchObject({ code: 0 });
  await expect(archive('export', ...place(), '--out', out)).rejects.toMatchObject({ code: 'usage' });
});

const segments = async (): Promise<string[]> => (await Array.fromAsync(new DirectoryStore(directory).list('segments/'))).sort();

test('export after retention has the lines that are there, and says how many are not', async () => {
  const [first = '', second = '', third = ''] = await segments();
  const lines = (text: string): number => text.split('\n').length - 1;
  rmSync(join(directory, first));
  const after = await archive('export', ...place());
  expect(after).toMatchObject({ code: 0, stderr: expect.stringMatching(/^warning: 31 lines are left out, leaf 0 to leaf 30: /) as string });
  // Each segment has a position, which is not exported.
  expect(lines(after.stdout)).toBe(70);
  writeFileSync(join(folder, 'proofs'), after.stdout);
  expect(await archive('verify', '--proof', join(folder, 'proofs'), ...key())).toMatchObject({ code: 0 });
  expect(await archive('export', ...place(), '--from', '2026-07-01T00:10:00Z')).toMatchObject({ code: 0 });
  rmSync(join(directory, third));
  const out = join(folder, 'out');
  const hole = await archive('export', ...place(), '--out', out);
  expect(hole).toMatchObject({ code: 3, stderr: expect.stringContaining('31 lines are left out, leaf 62 to leaf 92: ') as string });
  expect(lines(readFileSync(out, 'utf8'))).toBe(40);
  rmSync(join(directory, second));
  writeFileSync(join(directory, second), 'text');
  const altered = await archive('export', ...place());
  expect(altered).toMatchObject({ code: 1, stderr: expect.stringContaining(`"${second}" is not a segment`) as string });
});

test('export of a period without a line proves nothing, and an unknown source is wrong usage', async () => {
  const period = ['--from', '2026-08-01', '--to', '2026-08-02'];
  expect(await archive('export', ...place(), ...period)).toMatchObject({
    code: 3,
    stdout: '',
    stderr: expect.stringContaining('has none of this period') as string,
  });
  const out = join(folder, 'out');
  for (const more of [[], period, ['--out', out]])
    await expect(archive('export', ...place(), '--source', 'produktion', ...more)).rejects.toMatchObject({
      code: 'usage',
      message: expect.stringMatching(/"produktion".*"production"/) as string,
    });
  expect(existsSync(out)).toBe(false);
});

test('export leaves no part of a file', async () => {
  const out = join(folder, 'out');
  const read = DirectoryStore.prototype.read.bind(new DirectoryStore(directory));
  const [, last = ''] = (await segments()).slice(2);
  vi.spyOn(DirectoryStore.prototype, 'read').mockImplementation((path) =>
    path === last ? Promise.reject(new WaybillError('sink_unavailable', 'no answer')) : read(path),
  );
  await expect(archive('export', ...place(), '--out', out)).rejects.toMatchObject({ code: 'sink_unavailable' });
  vi.restoreAllMocks();
  expect(existsSync(out)).toBe(false);
  writeFileSync(out, 'other');
  await expect(archive('export', ...place(), '--out', out)).rejects.toMatchObject({ code: 'usage' });
  expect(readFileSync(out, 'utf8')).toBe('other');
});

test('export ends with a signal, and leaves no part of a file', async () => {
  const out = join(folder, 'out');
  for (const more of [[], ['--from', '2026-08-01']]) {
    const stop = new AbortController();
    const reason = new Error('stopped');
    const read = DirectoryStore.prototype.read.bind(new DirectoryStore(directory));
    vi.spyOn(DirectoryStore.prototype, 'read').mockImplementation((path) => {
      if (path.startsWith('segments/')) stop.abort(reason);
      return read(path);
    });
    const ended = outputOf((given, io) => command.run(given, io), ['export', ...place(), '--out', out, ...more], { signal: stop.signal });
    await expect(ended).rejects.toBe(reason);
    vi.restoreAllMocks();
    expect(existsSync(out)).toBe(false);
  }
});

test('prove and export say that lines of the newest checkpoint are left out, and do not pass for complete', async () => {
  const numbered = join(directory, 'checkpoints');
  const [newest = '', before = ''] = readdirSync(numbered).sort().reverse();
  rmSync(join(directory, 'checkpoint'));
  writeFileSync(join(directory, 'checkpoint'), readFileSync(join(numbered, before)));
  rmSync(join(directory, 'tile/entries/000.p/104'));
  const stderr = expect.stringMatching(
    new RegExp(`^warning: 11 lines are left out, leaf 93 to leaf 103: .* of "checkpoints/${newest}" .* at this moment`),
  ) as string;
  const out = join(folder, 'out');
  expect(await archive('export', ...place(), '--out', out)).toMatchObject({ code: 3, stderr });
  expect(await archive('verify', '--proof', out, ...key())).toMatchObject({ code: 0 });
  expect(await archive('prove', ...place(), `--uid=${uidOf(1)}`)).toMatchObject({ code: 0, stderr });
  const message = expect.stringContaining(`no such record in its first 93 lines, and 11 lines are left out`) as string;
  await expect(archive('prove', ...place(), `--uid=${uidOf(99)}`)).rejects.toMatchObject({ code: 'archive_broken', message });
  // The source may be in the lines that are left out.
  expect(await archive('export', ...place(), '--source', 'other')).toMatchObject({ code: 3, stdout: '' });
  // A copy of an older checkpoint must not hide more lines.
  writeFileSync(join(directory, 'checkpoint'), readFileSync(join(numbered, '0000000001')));
  expect(await archive('export', ...place())).toMatchObject({ code: 3, stderr });
});

test('prove and export say that lines may be left out if the newest note is no checkpoint', async () => {
  const [last = ''] = readdirSync(join(directory, 'checkpoints')).toSorted().reverse();
  const newer = String(Number(last) + 1).padStart(10, '0');
  for (const plant of [(path: string) => writeFileSync(path, 'x'), (path: string) => symlinkSync('nowhere', path)]) {
    plant(join(directory, 'checkpoints', newer));
    const stderr = expect.stringContaining(
      `warning: lines may be left out, from leaf 104 on: "checkpoints/${newer}" does not follow the checkpoint before it`,
    ) as string;
    expect(await archive('export', ...place())).toMatchObject({ code: 3, stderr });
    expect(await archive('prove', `--uid=${uidOf(1)}`, ...place())).toMatchObject({ code: 0, stderr });
    await expect(archive('prove', `--uid=${uidOf(999)}`, ...place())).rejects.toThrow(
      'has no such record in its first 104 lines, and lines after them may be left out',
    );
    rmSync(join(directory, 'checkpoints', newer));
  }
});

test('verify proves nothing from a file without a proof', async () => {
  const empty = join(folder, 'empty');
  writeFileSync(empty, '');
  expect(await archive('verify', '--proof', empty, ...key())).toMatchObject({
    code: 3,
    stdout: expect.stringContaining(`UNPROVEN: "${empty}" has no proof`) as string,
  });
  const { code, stdout } = await archive('verify', '--proof', empty, ...key(), '--json');
  expect([code, JSON.parse(stdout)]).toEqual([3, { result: 'unproven', proofs: [], verified: [] }]);
});

test.each<[string, () => string[]]>([
  ['no place', () => ['verify', ...key()]],
  ['two places', () => ['verify', ...place(), '--sink', 'archive', ...key()]],
  ['no key', () => ['verify', ...place()]],
  ['a directory that does not exist', () => ['verify', '--directory', join(folder, 'none'), ...key()]],
  ['an invalid key', () => ['verify', ...place(), '--key', join(directory, 'checkpoint')]],
  ['a proof and a place', () => ['verify', ...place(), ...key(), '--proof', 'x']],
  ['lines to print without a proof', () => ['verify', ...place(), ...key(), '--print']],
  ['a proof and a configuration', () => ['verify', ...key(), '--proof', 'x', '--config', 'waybill.yaml']],
  ['a uid of another length', () => ['prove', ...place(), '--uid', 'x']],
])('%s is wrong usage', async (_name, args) => {
  await expect(archive(...args())).rejects.toMatchObject({ code: 'usage' });
});

test('verify --format html escapes what the archive holds, and names what was not checked', async () => {
  const hostile = 'a<script>alert(1)</script>';
  const other = join(folder, 'hostile');
  const record = recordLine(1, start, hostile);
  await writeArchive(new DirectoryStore(other), [record, provenLine(2, start, start + minute, [record], { source: hostile })], 30);
  const { code, stdout } = await archive('verify', '--directory', other, '--key', publicKeyPath(other), '--format', 'html');
  expect(code).toBe(0);
  expect(stdout).toMatch(/^<!doctype html>/);
  expect(stdout).not.toMatch(/<script|<link|<img|https?:/);
  expect(stdout).toContain('a&#60;script&#62;alert(1)');
  expect(stdout).toContain('INTACT');
  expect(stdout).toContain('(--since)');
  const [origin, size, root] = readFileSync(join(other, 'checkpoint'), 'utf8').split('\n');
  for (const text of [origin, root, `of ${size} lines`, readFileSync(publicKeyPath(other), 'utf8').trim()]) expect(stdout).toContain(text);
  // The digest of the page, as the page explains it.
  const uids = createHash('sha256').update(Buffer.from(record.uid, 'base64url')).digest('hex');
  const row = `${start} ${start + minute} 1 ${uids}\n`;
  expect(stdout).toContain(createHash('sha256').update(row).digest('hex'));
  rmSync(join(other, 'checkpoints/0000000001'));
  expect(await archive('verify', '--directory', other, '--key', publicKeyPath(other), '--format', 'html')).toMatchObject({ code: 1 });
});

test('export --match prints the records with these values, and how many were compared', async () => {
  const { code, stdout, stderr } = await archive(
    'export',
    ...place(),
    '--match',
    'logId=7',
    '--match',
    'userName=\u0141ucja \n \u2028 ","record":{',
  );
  expect(code).toBe(0);
  expect(
    stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse((JSON.parse(line) as { line: string }).line) as { uid: string }),
  ).toMatchObject([{ uid: uidOf(7) }]);
  expect(stderr).toBe('1 of 80 different records match\nexported 1 line with 1 different record\n');
  expect(await archive('export', ...place(), '--match', 'logId=7', '--match', 'userName=x')).toMatchObject({ code: 3, stdout: '' });
  await expect(archive('export', ...place(), '--match', 'logId')).rejects.toMatchObject({ code: 'usage' });
});

test('compare names what an export lacks, has twice and has in addition', async () => {
  const uids = lines.flatMap((line) => (line.kind === 'record' ? [line.uid] : []));
  const compared = (...ids: readonly string[]): Promise<Output> => {
    writeFileSync(join(folder, 'ids'), `${ids.join('\n')}\n`);
    return archive('compare', ...place(), '--source', 'production', '--ids', join(folder, 'ids'));
  };
  expect(await compared(...uids)).toMatchObject({ code: 0, stdout: expect.stringContaining('MISSING in --ids: 0\n') as string });
  const other = recordLine(900, start).uid;
  const { code, stdout } = await compared(...uids.slice(1), uids[5] ?? '', other);
  expect([code, stdout]).toEqual([
    3,
    expect.stringMatching(/MISSING in --ids: 1\n.*DUPLICATED in --ids: 1\n.*ADDITIONAL in --ids .*: 1\n/s),
  ]);
  for (const uid of [uids[0], uids[5], other]) expect(stdout).toContain(`uid ${uid ?? ''}`);
  for (const changed of [uids.slice(1), [...uids, uids[0] ?? ''], [...uids, other]])
    expect(await compared(...changed)).toMatchObject({ code: 3 });
  writeFileSync(
    join(folder, 'ids.csv'),
    `time,logId\n${lines.flatMap((line) => (line.kind === 'record' ? [`now,${line.seq}\n`] : [])).join('')}`,
  );
  const csv = ['--ids', join(folder, 'ids.csv'), '--by', 'logId', '--field', 'logId'];
  expect(await archive('compare', ...place(), '--source', 'production', ...csv)).toMatchObject({ code: 0 });
  await expect(archive('compare', ...place(), '--source', 'elsewhere', ...csv)).rejects.toThrow(
    'cannot find the source "elsewhere": expected production',
  );
});
