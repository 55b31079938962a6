/**
 * On-demand sends of a running daemon: retried dead letters, a replayed range of the journal, test
 * events; and the content of the file after `kill -9`.
 */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { ago, configure, Daemon, sourceOf } from '../support/e2e-daemon.ts';
import { linesOf } from '../support/e2e-oracle.ts';
import { inPlace, until, patience } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';

const records = 20;

test('dead letters, replay and test events through the running daemon', { timeout: 300_000 }, () =>
  inPlace('on-demand', async (place) => {
    const receiver = createSocket('udp4');
    const received: string[] = [];
    receiver.on('message', (bytes) => received.push(bytes.toString('utf8')));
    receiver.bind(0, '127.0.0.1');
    await once(receiver, 'listening');
    try {
      const service = await Service.start(place, '--records', String(records), '--span', '1m');
      const address = `udp://127.0.0.1:${receiver.address().port}`;
      const quick = { closeDelay: '1s', recountAfter: [] };
      const file = { id: 'siem', type: 'file', path: './siem.ndjson', format: 'raw' };
      const batch = { maxWait: '200ms' };
      const syslog = { id: 'syslog', type: 'syslog', address, format: 'ecs', batch };
      const with480 = (maxBytes: number): string =>
        configure(place, [sourceOf(service, ago(90_000), quick)], [file, { ...syslog, maxBytes }]);
      interface Status {
        readonly sinks: readonly { readonly id: string; readonly lagEntries: number; readonly deadLetters: number }[];
      }
      const sinksOf = async (daemon: Daemon): Promise<Status['sinks']> => (JSON.parse((await daemon.get('/status')).text) as Status).sinks;
      const waybill = async (...args: string[]): Promise<string> => {
        const { code, stdout, stderr } = await place.waybill(...args, '--config', 'waybill.yaml');
        expect(code, `${args.join(' ')}: ${stderr}`).toBe(0);
        return stdout;
      };

      // No event fits into this size: every record is a dead letter of this sink only.
      with480(480);
      const first = new Daemon(place);
      await until(
        () => `dead letters\n${first.words()}`,
        patience,
        async () => ((await sinksOf(first)).find(({ id }) => id === 'syslog')?.deadLetters === records ? true : undefined),
      );
      await until('lines', patience, () => (linesOf(place.path('siem.ndjson')).length === records ? true : undefined));
      await first.stop();

      with480(65_000);
      const second = new Daemon(place);
      await second.ready(200);
      expect(await waybill('dead-letters', 'retry', '--all', '--yes', '--actor', 'j.doe')).toBe(`${records} records delivered\n`);
      await until('messages', patience, () => (received.length === records ? true : undefined));
      expect(received.every((message) => message.includes('"original"'))).toBe(true);

      expect(await waybill('replay', '--sink', 'siem', '--from', '1', '--to', '10', '--yes')).toMatch(
        /^replay to siem finished: \d+ records sent/,
      );
      expect(await waybill('sinks', 'test', '--sink', 'siem', '--count', '2', '--yes')).toBe('2 events delivered\n');
      const lines = linesOf(place.path('siem.ndjson'));
      const replayed = lines.slice(records, -2);
      expect(replayed.length).toBeGreaterThan(0);
      expect(replayed).toEqual(lines.slice(0, replayed.length));
      expect(lines.slice(-2).every((line) => line.includes('waybill_test'))).toBe(true);

      // On-demand sends do not change the stored position of the file: after a restart the sink
      // neither truncates their lines nor delivers a line twice.
      await second.kill();
      const third = new Daemon(place);
      await third.ready(200);
      expect(linesOf(place.path('siem.ndjson'))).toEqual(lines);
      expect((await sinksOf(third)).find(({ id }) => id === 'syslog')?.deadLetters).toBe(0);
      const state = new Database(place.path('state/waybill.db'), { readonly: true });
      const operations = state.prepare('SELECT operation, count(*) AS n FROM operations GROUP BY operation ORDER BY operation').all();
      state.close();
      expect(operations).toEqual([
        { operation: 'dead-letters retry', n: records },
        { operation: 'replay', n: 1 },
        { operation: 'sinks test', n: 1 },
      ]);
      await third.stop();
    } finally {
      receiver.close();
    }
  }),
);
