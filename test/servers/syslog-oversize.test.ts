/**
 * A record above the limit of a real receiver that ends the connection at it: it becomes a dead letter with the reason, and each other
 * record arrives.
 */
import { expect, test } from 'vitest';
import { ago, configure, Daemon, sourceOf } from '../support/e2e-daemon.ts';
import { inPlace, until } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';
import { notAsked } from '../support/servers/programs.ts';
import { rsyslogLimited, rsyslogMissing } from '../support/servers/rsyslog.ts';
import { syslogNgLimited, syslogNgMissing } from '../support/servers/syslog-ng.ts';
import { SyslogReceiver } from '../support/servers/syslog-receiver.ts';

const limit = 4_096;

test.for([
  { program: rsyslogLimited(limit), way: 'relp', missing: notAsked() ?? rsyslogMissing() },
  { program: syslogNgLimited(limit), way: 'tcp', missing: notAsked() ?? syslogNgMissing() },
] as const)('$program.name by $way', { timeout: 300_000 }, async ({ program, way, missing }, { skip }) => {
  if (missing !== undefined) return skip(missing);
  await using receiver = await SyslogReceiver.start(program);
  await inPlace('oversize', async (place) => {
    const service = await Service.start(place, '--seed', '3', '--records', '200', '--span', '9m');
    const truth = await service.truth();
    const long = (truth[100] ?? '')
      .replace(/"logId":\d+/, '"logId":900000001')
      .replace(/"payloadName":"[^"]*"/, `"payloadName":"${'x'.repeat(5_000)}"`);
    await service.add([long]);
    const siem = {
      id: 'siem',
      type: 'syslog',
      address: receiver.address(way),
      format: 'raw',
      maxBytes: 65_536,
      batch: { maxWait: '200ms' },
    };
    configure(place, [sourceOf(service, ago(600_000), { closeDelay: '1s', recountAfter: [] })], [siem]);
    const daemon = new Daemon(place);
    const received = (): Set<string | undefined> => new Set(receiver.received(way).map(({ msg }) => msg));
    await until(
      () => `200 records, but ${received().size}\n${daemon.words()}`,
      120_000,
      () => received().size >= 200 || undefined,
    );
    const listed = async (): Promise<string> =>
      (await place.waybill('dead-letters', 'list', '--sink', 'siem', '--json', '--config', 'waybill.yaml')).stdout;
    const list = await until(
      () => `a dead letter\n${daemon.words()}`,
      120_000,
      async () => {
        const text = await listed();
        return text.includes('"code"') ? text : undefined;
      },
    );
    expect(list).toMatch(/"code": "no_answer"/);
    const shown = await place.waybill('dead-letters', 'show', '--all', '--sink', 'siem', '--config', 'waybill.yaml');
    expect(shown.stdout).toBe(`${long}\n`);
    expect(shown.stderr).toMatch(/sinks\.siem\.maxBytes/);
    expect([...received()].sort()).toEqual([...truth].sort());
    expect(await daemon.stop()).toMatchObject({ code: 0, signal: null });
  });
});
