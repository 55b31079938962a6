/** `waybill archive prune` and `hold` with a process that is killed before each change of the archive: it verifies, and the command run again completes. */
import { generateKeyPairSync } from 'node:crypto';
import { cpSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { archivedRecords, publicKeyPath } from '../support/archive-files.ts';
import { ago, caughtUp, configure, Daemon, sourceOf } from '../support/e2e-daemon.ts';
import { inPlace, patience, until, type Place } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';
import { hasPython, verifyWithPython } from '../support/second-verifier.ts';

const preload = fileURLToPath(new URL('../support/kill-at.ts', import.meta.url));

/** @returns what `archive verify` says */
async function expectVerified(place: Place, where: string): Promise<string> {
  const key = publicKeyPath(place.path('archive'));
  if (hasPython) expect(verifyWithPython('--directory', place.path('archive'), '--key', key), where).toMatchObject({ code: 0 });
  const { code, stdout } = await place.waybill('archive', 'verify', '--directory', 'archive', '--key', key);
  expect(code, `${where}: ${stdout}`).toBe(0);
  return stdout;
}

const segments = (place: Place): readonly string[] => readdirSync(place.path('archive/segments')).filter((name) => !name.startsWith('.'));

/** An archive of some segments, and the state of its daemon. */
async function archived(place: Place): Promise<void> {
  const service = await Service.start(place, '--records', '100', '--span', '9m');
  writeFileSync(place.path('key.pem'), generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }));
  const archive = { id: 'archive', type: 'archive', directory: './archive', signingKey: '${file:./key.pem}' };
  configure(place, [sourceOf(service, ago(600_000))], [{ ...archive, batch: { maxRecords: 20, maxWait: '200ms' } }]);
  const daemon = new Daemon(place);
  await caughtUp(daemon, service, patience);
  expect(await daemon.stop()).toMatchObject({ code: 0 });
}

const folders = ['archive', 'state'] as const;
function copy(place: Place, from: string, to: string): void {
  for (const folder of folders) {
    rmSync(place.path(`${to}${folder}`), { recursive: true, force: true });
    cpSync(place.path(`${from}${folder}`), place.path(`${to}${folder}`), { recursive: true });
  }
}

/** @returns false for a daemon that has done what `isDone` looks for before it made so many changes */
async function killedAt(place: Place, change: number, isDone: (daemon: Daemon) => boolean): Promise<boolean> {
  place.environment = { NODE_OPTIONS: `--import ${preload}`, KILL_AT: String(change), KILL_IN: place.path('archive') };
  const daemon = new Daemon(place);
  place.environment = {};
  const ended = daemon.ended.then(({ signal }) => signal);
  let signal: string | null | undefined;
  void ended.then((found) => (signal = found));
  await until(() => `the kill at change ${change}\n${daemon.words()}`, patience, () => (signal !== undefined || isDone(daemon) ? true : undefined)); // prettier-ignore
  if (signal === undefined) await daemon.stop();
  else expect(signal, daemon.words()).toBe('SIGKILL');
  return (await ended) === 'SIGKILL';
}

// promise: A kill before each change by `archive prune` or `archive hold`: the archive verifies, and the command completes when run again.
test.each(['prune', 'hold'] as const)('a kill before each change of the archive by %s', { timeout: 1_200_000 }, (name) =>
  inPlace(`archive-${name}-kills`, async (place) => {
    await archived(place);
    const before = new Date().toISOString();
    const args = { prune: ['--before', before, '--reason', '13 months'], hold: ['--case', '2026-114', '--from', '2020-01-01'] }[name];
    const old = segments(place);
    expect(old.length).toBeGreaterThan(4);
    // The newest segment before the order always stays.
    const isSigned = (): boolean => archivedRecords(place.path('archive'), 'line').some((line) => line.includes(`"operation":"archive ${name}"`)); // prettier-ignore
    const isDone = {
      prune: (): boolean => segments(place).filter((each) => old.includes(each)).length <= 1,
      hold: (daemon: Daemon): boolean => daemon.find('sink.first_delivery') !== undefined && isSigned(),
    }[name];
    const order = async (): Promise<void> => {
      const { code, stdout, stderr } = await place.waybill('archive', name, '--sink', 'archive', '--yes', ...args);
      expect(code, stdout + stderr).toBe(0);
    };
    await order();
    copy(place, '', 'ordered-');
    let kills = 0;
    for (let change = 1; ; change += 1) {
      copy(place, 'ordered-', '');
      if (!(await killedAt(place, change, isDone))) break;
      kills += 1;
      const where = `${name}, killed before change ${change}`;
      await expectVerified(place, where);
      await order();
      const daemon = new Daemon(place);
      await until(() => `${where}: done\n${daemon.words()}`, patience, () => isDone(daemon) || undefined); // prettier-ignore
      expect(await daemon.stop()).toMatchObject({ code: 0 });
      const said = await expectVerified(place, `${where}, and run again`);
      if (name === 'prune') expect(said).toMatch(/operation \d+ removed it: .*13 months/);
      else expect(segments(place)).toEqual(expect.arrayContaining([...old]));
    }
    process.stderr.write(`${name}: ${kills} kills\n`);
    expect(kills).toBeGreaterThan(5);
  }),
);
