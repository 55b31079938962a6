/** The directory of an archive is replaced by an older copy under the running daemon: the sink stops, and the ledger says what is gone. */
import { generateKeyPairSync } from 'node:crypto';
import { cpSync, renameSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { publicKeyPath } from '../support/archive-files.ts';
import { ago, caughtUp, configure, Daemon, settled, sourceOf } from '../support/e2e-daemon.ts';
import { inPlace, patience, until } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';

// promise: An archive that is replaced by an older copy stops its sink, and its records count as lost until it is back.
test('an archive that is replaced by an older copy stops its sink, and counts as lost until it is back', { timeout: 300_000 }, () =>
  inPlace('archive-replaced', async (place) => {
    const service = await Service.start(place, '--records', '200', '--span', '9m');
    writeFileSync(place.path('key.pem'), generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }));
    const archive = { id: 'archive', type: 'archive', directory: './archive', signingKey: '${file:./key.pem}' };
    configure(place, [sourceOf(service, ago(600_000))], [{ ...archive, batch: { maxRecords: 50, maxWait: '200ms' } }]);
    const daemon = new Daemon(place);
    await caughtUp(daemon, service, patience);
    const [right, older] = ['right', 'older'].map((name) => place.path(name)) as [string, string];
    cpSync(place.path('archive'), older, { recursive: true });
    await service.set({ rate: 20 });
    await until('a newer checkpoint', patience, async () => ((await service.truth()).length > 260 ? true : undefined));
    await service.set({ rate: 0 });
    const end = Math.floor(Date.now() / 1_000) * 1_000;
    await caughtUp(daemon, service, patience);
    await settled(daemon, end, patience);
    const ledger = async (): Promise<number> => (await place.waybill('ledger')).code ?? -1;
    expect(await ledger()).toBe(0);

    // A commit between the two would find no directory.
    daemon.signal('SIGSTOP');
    renameSync(place.path('archive'), right);
    renameSync(older, place.path('archive'));
    daemon.signal('SIGCONT');
    await service.set({ rate: 20 });
    const blocked = await daemon.logged('sink.delivery_blocked', patience);
    const message = expect.stringMatching(/"checkpoints\/\d{10}": it is missing; the archive was replaced while the daemon runs/) as string;
    expect(blocked).toMatchObject({ sink: 'archive', code: 'archive_broken', error: { message } });
    await service.set({ rate: 0 });
    expect(await place.waybill('sinks', 'retry', '--sink', 'archive', '--yes')).toMatchObject({ code: 0 });
    expect(await daemon.logged('sink.records_lost', patience)).toMatchObject({ sink: 'archive', code: 'archive_broken' });
    expect(await ledger()).toBe(3);
    // The copy has no checkpoint that does not follow the one before it.
    const verify = async (): Promise<number | null> =>
      (await place.waybill('archive', 'verify', '--directory', 'archive', '--key', publicKeyPath(place.path('archive')))).code;
    expect(await verify()).not.toBe(1);

    renameSync(place.path('archive'), older);
    renameSync(right, place.path('archive'));
    expect(await place.waybill('sinks', 'retry', '--sink', 'archive', '--yes')).toMatchObject({ code: 0 });
    await caughtUp(daemon, service, patience);
    await settled(daemon, Math.floor(Date.now() / 1_000) * 1_000, patience);
    await until('a complete ledger', patience, async () => ((await ledger()) === 0 ? true : undefined));
    expect(await verify()).toBe(0);
    expect(await daemon.stop()).toMatchObject({ code: 0 });
  }),
);
