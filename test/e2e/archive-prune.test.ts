/** `waybill archive prune` and `hold` through a running daemon: what goes, what stays, and what the archive says about it. */
import { generateKeyPairSync } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { publicKeyPath } from '../support/archive-files.ts';
import { ago, caughtUp, configure, Daemon, sourceOf } from '../support/e2e-daemon.ts';
import { inPlace, patience, pause, until } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';

interface Line {
  readonly kind: string;
  readonly operation?: string;
  readonly detail?: Readonly<Record<string, unknown>>;
  readonly record?: { readonly logTimestamp: string };
}

// promise: `archive prune` removes no line that a hold keeps, and a signed line says what was removed, by whom and why.
test('an archive is pruned up to a time, without what a case holds, and a signed line says so', { timeout: 300_000 }, () =>
  inPlace('archive-prune', async (place) => {
    const start = ago(600_000);
    const service = await Service.start(place, '--records', '200', '--span', '9m');
    writeFileSync(place.path('key.pem'), generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }));
    const archive = { id: 'archive', type: 'archive', directory: './archive', signingKey: '${file:./key.pem}' };
    const file = { id: 'siem', type: 'file', path: './siem.ndjson' };
    configure(place, [sourceOf(service, start)], [{ ...archive, batch: { maxRecords: 20, maxWait: '300ms' } }, file]);
    const daemon = new Daemon(place);
    await caughtUp(daemon, service, patience);
    const segments = (): string[] => readdirSync(place.path('archive/segments')).filter((name) => !name.startsWith('.')).sort(); // prettier-ignore
    const linesOf = (name: string): Line[] =>
      gunzipSync(readFileSync(join(place.path('archive/segments'), name)))
        .toString()
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as Line);
    const operations = (name: string): Line[] => segments().flatMap(linesOf).filter(({ operation }) => operation === name); // prettier-ignore
    const archived = async (name: string, count = 1): Promise<Line[]> =>
      until(`"${name}" in the archive`, patience, () => (operations(name).length >= count ? operations(name) : undefined));
    const run = async (...args: string[]): Promise<string> => {
      const { code, stdout, stderr } = await place.waybill('archive', ...args, '--sink', 'archive', '--actor', 'm.weber', '--yes');
      expect(code, stderr).toBe(0);
      return stdout + stderr;
    };

    // The third segment holds records of a minute that a case needs.
    const old = segments();
    const held = old[2] ?? '';
    const time = linesOf(held).find(({ kind }) => kind === 'record')?.record?.logTimestamp ?? '';
    const from = `${time.slice(0, 19)}Z`;
    const to = new Date(Date.parse(from) + 1_000).toISOString();
    await run('hold', '--case', '2026-114', '--from', from, '--to', to, '--reason', 'claim');
    const [hold] = await archived('archive hold');
    const first = Number(held.slice(0, 16)) + 1;
    expect(hold?.detail).toMatchObject({ case: '2026-114', reason: 'claim', lines: expect.arrayContaining([expect.objectContaining({ first })]) as object }); // prettier-ignore

    // A segment written after this time stays.
    const present = segments();
    await pause(50);
    const before = new Date().toISOString();
    const refused = await place.waybill('archive', 'prune', '--sink', 'archive', '--before', before, '--yes');
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('--reason') as string });
    expect(await run('prune', '--before', before, '--reason', '13 months')).toMatch(/ordered: .*the case "2026-114" holds them/s);
    await archived('archive prune');
    await daemon.logged('archive.segments_removed', patience);
    const isKept = (name: string): boolean =>
      !present.includes(name) ||
      name === present.at(-1) ||
      linesOf(name).some(({ kind, operation, record }) =>
        kind === 'operation'
          ? operation === 'archive hold'
          : kind === 'record' && record !== undefined && isIn(record.logTimestamp, from, to),
      );
    const left = segments();
    expect(left).toContain(held);
    expect(left.length).toBeLessThan(present.length);
    for (const name of left.slice(0, -1)) expect(isKept(name) || holdsWindow(linesOf(name), from, to), name).toBe(true);

    // A case that does not exist, and the release of the one that does.
    expect(await place.waybill('archive', 'hold', '--sink', 'archive', '--case', 'other', '--release', '--yes')).toMatchObject({ code: 2 });
    await run('hold', '--case', '2026-114', '--release');
    await archived('archive release');
    // Without a daemon, the state keeps the order, and the next start carries it out.
    expect(await daemon.stop()).toMatchObject({ code: 0 });
    await run('prune', '--before', before, '--reason', 'the case has ended');
    expect(segments()).toContain(held);
    const restarted = new Daemon(place);
    await until('the held segment is removed', patience, () => (segments().includes(held) ? undefined : true));
    const orders = await archived('archive prune', 1);
    // The newest order names every line that an order removed.
    const [range] = (orders.at(-1)?.detail?.['lines'] ?? []) as { first: number; last: number }[];
    expect(range?.first).toBe(1);

    const key = publicKeyPath(place.path('archive'));
    const verified = await place.waybill('archive', 'verify', '--directory', 'archive', '--key', key, '--json');
    expect(verified.code, verified.stdout).toBe(0);
    const { findings } = JSON.parse(verified.stdout) as { readonly findings: readonly { readonly message: string }[] };
    expect(findings[0]?.message).toMatch(/^operation \d+ removed it: m\.weber, .*13 months/);

    // What remains is read, and the daemon goes on with it.
    await service.set({ rate: 20 });
    await restarted.logged('sink.first_delivery', patience);
    expect(await restarted.stop()).toMatchObject({ code: 0 });
  }),
);

function isIn(time: string, from: string, to: string): boolean {
  const at = Date.parse(`${time.slice(0, 23)}Z`);
  return Date.parse(from) <= at && at < Date.parse(to);
}

function holdsWindow(lines: readonly (Line & { readonly from?: string; readonly to?: string })[], from: string, to: string): boolean {
  return lines.some(
    (line) => line.kind === 'ledger' && Date.parse(line.from ?? '') < Date.parse(to) && Date.parse(line.to ?? '') > Date.parse(from),
  );
}
