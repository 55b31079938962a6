/**
 * The client certificate of a syslog sink is replaced in its file while records flow to a real
 * receiver. Each certificate expires soon after its successor is published, and each batch needs a
 * new connection, so a delivery after that time proves that the new certificate is in use.
 */
import { renameSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ago, caughtUp, configure, Daemon, sourceOf } from '../support/e2e-daemon.ts';
import { compare, exactlyOnce, originalOf } from '../support/e2e-oracle.ts';
import { inPlace, until } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';
import { notAsked } from '../support/servers/programs.ts';
import { rsyslog, rsyslogMissing } from '../support/servers/rsyslog.ts';
import { syslogNg, syslogNgMissing } from '../support/servers/syslog-ng.ts';
import { SyslogReceiver } from '../support/servers/syslog-receiver.ts';

const rotations = 3;
const lifeMs = 40_000;
/** Each certificate is published this long before its predecessor expires. */
const overlapMs = 15_000;
const patient = 150_000;

test.for([
  { program: rsyslog(), missing: notAsked() ?? rsyslogMissing() },
  { program: syslogNg, missing: notAsked() ?? syslogNgMissing() },
])('$program.name: the client certificate rotates three times', { timeout: 900_000 }, async ({ program, missing }, { skip }) => {
  if (missing !== undefined) return skip(missing);
  await using receiver = await SyslogReceiver.start(program);
  await inPlace('syslog-rotation', async (place) => {
    const service = await Service.start(place, '--records', '300', '--span', '1m', '--rate', '100');
    const file = place.path('client.pem');
    /** @returns when the certificate expires, ms since the epoch */
    const publish = async (): Promise<number> => {
      const expires = Date.now() + lifeMs;
      const names = { name: 'collector.test', hosts: ['collector.test'] };
      const { cert, key } = await receiver.authority.issue({ ...names, notAfter: new Date(expires) });
      writeFileSync(`${file}.new`, `${key}\n${cert}`);
      renameSync(`${file}.new`, file);
      return expires;
    };
    writeFileSync(place.path('ca.pem'), receiver.authority.cert);
    let expires = await publish();
    const tls = { ca: place.path('ca.pem'), cert: file, key: file };
    const siem = { id: 'siem', type: 'syslog', address: receiver.address('tls'), format: 'ecs', maxBytes: 65_536, tls };
    configure(place, [sourceOf(service, ago(90_000), { closeDelay: '1s', recountAfter: [] })], [{ ...siem, batch: { maxWait: '100ms' } }]);
    const daemon = new Daemon(place);
    await daemon.logged('sink.first_delivery');
    const acknowledged = async (): Promise<number> => {
      const { sinks } = JSON.parse((await daemon.get('/status')).text) as { sinks: readonly { acknowledged: number }[] };
      return sinks[0]?.acknowledged ?? 0;
    };
    for (let turn = 1; turn <= rotations; turn += 1) {
      const previous = expires;
      const reach = (at: number) => until(() => `certificate ${turn - 1} expires`, lifeMs, () => Date.now() > at || undefined); // prettier-ignore
      await reach(previous - overlapMs);
      expires = await publish();
      await reach(previous + 1_000);
      const before = await acknowledged();
      await until(
        () => `delivery with certificate ${turn}\n${daemon.words()}`,
        patient,
        async () => (await acknowledged()) > before + 500 || undefined,
      );
    }
    await service.set({ rate: 0 });
    await caughtUp(daemon, service, patient);
    const truth = await service.truth();
    const texts = (): string[] => receiver.received('tls').map(({ msg }) => msg);
    await until(
      () => `${truth.length} messages, but ${texts().length}`,
      patient,
      () => texts().length >= truth.length || undefined,
    );
    expect(compare(texts(), truth, originalOf)).toEqual(exactlyOnce);
    process.stderr.write(`${program.name} rotation: ${truth.length} records, ${rotations} rotations\n`);
    expect(daemon.log.filter(({ event }) => event === 'sink.delivery_blocked')).toEqual([]);
    expect(await daemon.stop()).toMatchObject({ code: 0, signal: null });
  });
});
