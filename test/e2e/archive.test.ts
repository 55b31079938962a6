/**
 * The sink `archive` of a daemon that is killed: it contains every record of the service once, and
 * an auditor verifies it as in docs/evidence.md.
 */
import { execFileSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { archivedRecords, publicKeyPath } from '../support/archive-files.ts';
import { auditor, bash, commandsOf } from '../support/e2e-commands.ts';
import { ago, configure, Daemon, settled, sourceOf } from '../support/e2e-daemon.ts';
import { compare, exactlyOnce, linesOf } from '../support/e2e-oracle.ts';
import { inPlace, until, patience } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';
import { waybillProgram } from '../support/programs.ts';
import { hasPython, verifyWithPython } from '../support/second-verifier.ts';

/** The commands of docs/evidence.md, section "Ten commands". */
function documented(): string[] {
  const text = readFileSync(new URL('../../docs/evidence.md', import.meta.url), 'utf8');
  return /^## Ten commands$[^]*?```sh\n([^]*?)```/m.exec(text)?.[1]?.trimEnd().split('\n') ?? [];
}

/** @throws when the command fails, with what it printed */
function run(cwd: string, line: string, environment: Readonly<Record<string, string>>): string {
  const script = `waybill() { "${process.execPath}" "${waybillProgram}" "$@"; }\n${line}`;
  try {
    return execFileSync('bash', ['-ec', script], { cwd, encoding: 'utf8', env: { ...process.env, ...environment } });
  } catch (thrown) {
    throw new Error(`${(thrown as Error).message}\n${(thrown as { stdout: string }).stdout}`, { cause: thrown });
  }
}

test('an archive has each record once after kills, and its ledger proves every window', { timeout: 300_000 }, ({ annotate }) =>
  inPlace('archive', async (place) => {
    const service = await Service.start(place, '--records', '600', '--span', '1m');
    writeFileSync(place.path('key.pem'), generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }));
    const archive = { id: 'archive', type: 'archive', directory: './archive', signingKey: '${file:./key.pem}', batch: { maxWait: '1s' } };
    const siem = { id: 'siem', type: 'file', path: './siem.ndjson', format: 'ecs', ledger: true };
    configure(place, [sourceOf(service, ago(80_000))], [archive, siem]);
    const first = new Daemon(place);
    await first.logged('window.first_proven');
    await first.kill();
    const second = new Daemon(place);
    await second.logged('sink.first_delivery');
    await second.kill();
    // Records after the first checkpoint require another one.
    const before = (await service.truth()).length;
    await service.set({ rate: 50 });
    await until('new records', patience, async () => ((await service.truth()).length > before + 10 ? true : undefined));
    await service.set({ rate: 0 });
    const last = new Daemon(place);
    const end = Math.floor(Date.now() / 1000) * 1000 - 20_000;
    await settled(last, end, 120_000);
    const truth = await service.truth();
    await until('every record in the archive', patience, () =>
      archivedRecords(place.path('archive')).length >= truth.length ? true : undefined,
    );
    const checkpoint = await until('the checkpoint of the day at the SIEM', patience, () =>
      linesOf(place.path('siem.ndjson')).find((line) => line.includes('"action":"archive-checkpoint"')),
    );
    expect(await last.stop()).toMatchObject({ code: 0 });

    expect(compare(archivedRecords(place.path('archive')), truth, (record) => record)).toEqual(exactlyOnce);
    const states = archivedRecords(place.path('archive'), 'line')
      .map((line) => JSON.parse(line) as { kind: string; state?: string })
      .filter(({ kind }) => kind === 'ledger')
      .map(({ state }) => state);
    expect(states.length).toBeGreaterThan(2);
    expect(new Set(states)).toEqual(new Set(['proven']));
    if (!hasPython) {
      await annotate('skipped: python3 or openssl is missing, which docs/evidence.md needs');
      return;
    }

    // The directory that an auditor receives.
    const directory = place.path('archive');
    copyFileSync(publicKeyPath(directory), place.path('archive.pub'));
    // The checkpoint that the SIEM received on the first day.
    const { dpas } = JSON.parse(checkpoint) as { readonly dpas: { readonly ledger: { readonly checkpoint: string } } };
    writeFileSync(place.path('earlier-checkpoint'), dpas.ledger.checkpoint);
    copyFileSync(fileURLToPath(new URL('../../content/archive/verify.py', import.meta.url)), place.path('verify.py'));
    const lines = archivedRecords(directory, 'line').map(
      (line) => JSON.parse(line) as { kind: string; uid: string; from: string; to: string; records: number; digest: string },
    );
    const proven = lines.filter(({ kind }) => kind === 'ledger');
    const [from, to] = [proven.map((line) => line.from).sort()[0] ?? '', proven.map((line) => line.to).sort().at(-1) ?? '']; // prettier-ignore
    const environment = { FROM: from, TO: to, UID_OF_RECORD: lines.find(({ kind }) => kind === 'record')?.uid ?? '' };
    const commands = documented();
    expect(commands).toHaveLength(10);
    const outputs = commands.map((each) => run(place.directory, each, environment));
    expect(outputs[0]).toBe(readFileSync(place.path('archive.pub'), 'utf8'));
    expect(outputs[2]).toMatch(/^INTACT: [1-9][\d,]* lines checked\n(.*\n)*the checkpoint from elsewhere confirms [1-9]/m);
    for (const i of [3, 4]) expect(outputs[i]).toContain('INTACT');
    expect(outputs[5]).toBe('no gaps\n');
    expect(outputs[6]).toBe('no operations\n');
    expect(outputs[8]).toContain('INTACT: 1 line is in the signed archive, of 1 proof');
    const exported = readFileSync(place.path('period.ndjson'), 'utf8').trimEnd().split('\n');
    expect(exported.length).toBeGreaterThan(proven.length);
    // The commands of docs/audit.md, unchanged: the digest of a window from the service alone.
    const [window] = lines.filter((line) => line.kind === 'ledger' && line.records > 0);
    const script = commandsOf('docs/audit.md', 'Counting a window at the service');
    const env = { ...auditor(service, ''), FROM: window?.from ?? '' };
    const at = await bash(place, script, env);
    const { records, digest } = window ?? {};
    expect(at).toEqual({
      code: 0,
      stdout: `${records} records at the service, ${records} in the archive; digests ${digest} and ${digest}\n`,
      stderr: '',
    });
    const more = { logId: 77_000_001, logTimestamp: window?.from.replace('.000000Z', '.5'), actionAttempted: 'Decrypt' };
    await service.add([JSON.stringify(more)]);
    expect(await bash(place, script, env)).toMatchObject({
      code: 1,
      stdout: expect.stringContaining(`${(records ?? 0) + 1} records at the service, ${records} in the archive`) as string,
    });
    expect(verifyWithPython('--proof', place.path('period.ndjson'), '--key', place.path('archive.pub'))).toMatchObject({ code: 0 });
  }),
);
