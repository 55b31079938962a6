/** The sink `archive` of a daemon that is killed: the second verifier accepts the archive, which has every record of the service once. */
import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { archivedRecords, publicKeyPath } from '../support/archive-files.ts';
import { ago, configure, Daemon, settled, sourceOf } from '../support/e2e-daemon.ts';
import { compare, exactlyOnce } from '../support/e2e-oracle.ts';
import { inPlace, until } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';
import { hasPython, verifyWithPython } from '../support/second-verifier.ts';

test('an archive has each record once after kills, and its ledger proves every window', { timeout: 300_000 }, ({ annotate }) =>
  inPlace('archive', async (place) => {
    const service = await Service.start(place, '--records', '600', '--span', '1m');
    writeFileSync(place.path('key.pem'), generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }));
    const archive = { id: 'archive', type: 'archive', directory: './archive', signingKey: '${file:./key.pem}', batch: { maxWait: '1s' } };
    configure(place, [sourceOf(service, ago(80_000))], [archive]);
    const first = new Daemon(place);
    await first.logged('window.first_proven');
    await first.kill();
    const second = new Daemon(place);
    await second.logged('sink.first_delivery');
    await second.kill();
    const last = new Daemon(place);
    const end = Math.floor(Date.now() / 1000) * 1000 - 20_000;
    await settled(last, end, 120_000);
    const truth = await service.truth();
    await until('every record in the archive', 60_000, () =>
      archivedRecords(place.path('archive')).length >= truth.length ? true : undefined,
    );
    expect(await last.stop()).toMatchObject({ code: 0 });

    expect(compare(archivedRecords(place.path('archive')), truth, (record) => record)).toEqual(exactlyOnce);
    const states = archivedRecords(place.path('archive'), 'line')
      .map((line) => JSON.parse(line) as { kind: string; state?: string })
      .filter(({ kind }) => kind === 'ledger')
      .map(({ state }) => state);
    expect(states.length).toBeGreaterThan(2);
    expect(new Set(states)).toEqual(new Set(['proven']));
    if (!hasPython) await annotate('python3 or openssl is missing: verify.py did not run');
    else {
      const directory = place.path('archive');
      expect(verifyWithPython('--directory', directory, '--key', publicKeyPath(directory))).toMatchObject({ code: 0 });
    }
  }),
);
