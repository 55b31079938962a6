/**
 * The whole program with a real Elasticsearch with users and TLS: `setup`, `check` and `run`, an
 * invalid key at first, kills with a rollover each, a lost state, a replay. Every record of the
 * service is there once, counted and compared by another client.
 */
import { rmSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ago, configure, Daemon, sourceOf } from '../support/e2e-daemon.ts';
import { inPlace, pause, until } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';
import { Elasticsearch, elasticsearchMissing } from '../support/servers/elasticsearch.ts';
import { notAsked } from '../support/servers/programs.ts';
import { stream, waybill } from '../support/servers/three-receivers.ts';

const missing = notAsked() ?? elasticsearchMissing('elasticsearch-9.5.3');
const records = 6_000;
const patient = 600_000;

// promise: Elasticsearch stores each record once, despite faults of the key, the daemon and the state.
test('every record is stored once, despite faults of key, daemon and state', { timeout: 2_400_000 }, async ({ skip }) => {
  if (missing !== undefined) return skip(missing);
  await using server = await Elasticsearch.start('elasticsearch-9.5.3', true);
  await inPlace('elasticsearch', async (place) => {
    const start = ago(1_800_000);
    const service = await Service.start(place, '--seed', '7', '--records', String(records), '--span', '30m');
    writeFileSync(place.path('ca.pem'), server.authority?.cert ?? '');
    writeFileSync(place.path('key'), 'bm90aGluZzpjYW5hcnk=');
    const sink = {
      id: 'siem',
      type: 'elasticsearch',
      nodes: server.url,
      apiKey: `\${file:${place.path('key')}}`,
      tls: { ca: place.path('ca.pem') },
    };
    configure(place, [sourceOf(service, start)], [sink]);
    const key = await waybill(place, 'setup', 'elasticsearch', '--sink', 'siem', '--key', '--yes');

    const all = async (): Promise<string[]> => (await service.truth()).sort();
    const arrived = (daemon: Daemon): Promise<unknown> =>
      until(
        () => `${records} documents\n${daemon.words()}`,
        patient,
        async () => ((await server.count(stream)) >= records ? true : undefined),
      );

    // An unknown key: blocked with a message that names sink and setting; delivery resumes once the
    // key is fixed.
    const first = new Daemon(place);
    const line = await first.logged('sink.delivery_blocked', patient);
    expect(JSON.stringify(line)).toMatch(/sink_blocked.*401 security_exception.*sinks\.siem\.apiKey/);
    expect(JSON.stringify(first.log)).not.toContain('bm90aGluZzpjYW5hcnk');
    writeFileSync(place.path('key'), key.trim());
    await first.logged('sink.first_delivery', patient);
    await first.kill();

    // Killed during delivery, with a rollover each time: a search resolves the batches that the
    // state does not know.
    for (let life = 0; life < 3; life += 1) {
      await server.rollover(stream);
      const daemon = new Daemon(place);
      await daemon.logged('sink.first_delivery', patient);
      await pause(place.chance() * 1_000);
      await daemon.kill();
    }
    const last = new Daemon(place);
    await arrived(last);
    await last.ready(200, undefined, patient);
    await last.stop();
    expect((await server.originals(stream)).sort()).toEqual(await all());
    const checked = JSON.parse(await waybill(place, 'check', '--sink', 'siem', '--json')) as { ok: boolean };
    expect(checked.ok).toBe(true);

    // The state is lost, and everything is read again from the start of the ledger.
    await server.rollover(stream);
    rmSync(place.path('state'), { recursive: true });
    const again = new Daemon(place);
    await until(
      () => `everything acknowledged once more\n${again.words()}`,
      patient,
      async () => {
        const { sinks } = JSON.parse((await again.get('/status')).text) as {
          sinks: readonly { acknowledged: number; lagEntries: number }[];
        };
        const [found] = sinks;
        return found !== undefined && found.acknowledged >= records && found.lagEntries === 0 ? true : undefined;
      },
    );
    expect((await server.originals(stream)).sort()).toEqual(await all());

    // Replays all records on request, after one more rollover.
    await server.rollover(stream);
    const replayed = await waybill(place, 'replay', '--sink', 'siem', '--from', '1', '--yes');
    expect(replayed).toMatch(/^replay to siem finished: 6,000 records sent/);
    await again.stop();
    expect((await server.originals(stream)).sort()).toEqual(await all());
    for (const daemon of [first, last, again]) for (const { message } of daemon.log) expect(message).not.toBe('sink.dead_letter');
  });
});
