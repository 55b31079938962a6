/**
 * The whole program with a real Kafka (exactly once), a real Elasticsearch (users and TLS) and a
 * file at once, while the daemon, the broker and Elasticsearch are killed in turn. Each of the
 * three has every record of the service once, counted by other clients. `WAYBILL_SERVER_KILLS` is
 * the number of kills of Elasticsearch (5); the broker is killed twice as often, the daemon ten
 * times.
 */
import { expect, test } from 'vitest';
import { ago, caughtUp, Daemon } from '../support/e2e-daemon.ts';
import { inPlace, pause, until } from '../support/e2e-place.ts';
import type { Place } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';
import { CuttingProxy } from '../support/servers/cutting-proxy.ts';
import { Elasticsearch, elasticsearchMissing } from '../support/servers/elasticsearch.ts';
import { KafkaBroker, kafkaMissing } from '../support/servers/kafka-broker.ts';
import { notAsked } from '../support/servers/programs.ts';
import { allOnce, counted, differences, setUp, sinkIds, stream, topic } from '../support/servers/three-receivers.ts';
import type { SinkId } from '../support/servers/three-receivers.ts';

const missing = notAsked() ?? kafkaMissing('4.4.0') ?? elasticsearchMissing('elasticsearch-9.5.3');
const kills = Number(process.env['WAYBILL_SERVER_KILLS'] ?? 5);
const [daemonKills, brokerKills] = [kills * 10, kills * 2];
/** Records that exist at the start, for each kill of the daemon; the others are created later. */
const history = daemonKills * 400;
const perSecond = 20;
const patient = 600_000;

/**
 * The moments of the kills, in rotation: any time of the start, or just after this sink has
 * accepted its first message since the start.
 */
const moments: readonly (SinkId | undefined)[] = [undefined, ...sinkIds, undefined, ...sinkIds, ...sinkIds];

// promise: Kills of the daemon, of a Kafka broker and of Elasticsearch: each record is once in each receiver.
test(
  `${daemonKills} kills of the daemon, ${brokerKills} of the broker, ${kills} of Elasticsearch: every record once in each receiver`,
  { timeout: 2_400_000 + kills * 600_000 },
  async ({ skip }) => {
    if (missing !== undefined) return skip(missing);
    await using broker = await KafkaBroker.start('4.4.0', { acls: true });
    await using server = await Elasticsearch.start('elasticsearch-9.5.3', true);
    await using proxy = await CuttingProxy.start(server.port);
    await inPlace('three', async (place) => {
      const start = ago(1_800_000);
      const service = await Service.start(place, '--seed', '11', '--records', String(history), '--span', '29m');
      const servers = { broker, server };
      await setUp(place, service, start, servers, server.url.replace(String(server.port), String(proxy.port)));

      await service.set({ rate: perSecond });
      const cutLives = await killDaemon(place);
      const daemon = new Daemon(place);
      const agree = async (): Promise<number> => {
        await service.set({ rate: 0 });
        await caughtUp(daemon, service, patient);
        const truth = await service.truth();
        expect(await differences(place, truth, servers)).toEqual(allOnce);
        return truth.length;
      };
      const first = await agree();
      const aborted = async (): Promise<number> => (await broker.count(topic, 'read_uncommitted')) - (await broker.count(topic));
      say(`${daemonKills} kills of the daemon, ${cutLives} of them after a sink had taken something: ${first} records, each once in each`);
      say(`of what the kills cut off, ${await aborted()} messages lie in transactions that were never committed`);

      await service.set({ rate: perSecond });
      for (let i = 0; i < brokerKills; i += 1) {
        await flowing(daemon, 'lake');
        await pause(place.chance() * 500);
        await broker.end('SIGKILL');
        await broker.run();
      }
      const second = await agree();
      say(`${brokerKills} kills of the broker: ${second} records, each once in each; ${await aborted()} messages never committed`);

      const sent = await counted(daemon, 'waybill_events_delivered_total', 'siem');
      await service.set({ rate: perSecond });
      for (let i = 1; i < kills; i += 1) {
        await flowing(daemon, 'siem');
        await pause(place.chance() * 500);
        await server.kill();
        await server.run();
      }
      const stored = await takenWithoutAnswer(second, sent);
      await server.kill();
      await server.run();
      await server.recovered();
      await server.rollover(stream);
      proxy.open();
      const third = await agree();
      say(
        `${kills} kills of Elasticsearch, the last with ${stored} documents whose answer was lost, and a rollover: ${third} records, each once`,
      );

      expect(await counted(daemon, 'waybill_sink_duplicates_total', 'siem')).toBeGreaterThanOrEqual(stored);
      expect(await daemon.stop()).toMatchObject({ code: 0, signal: null });
      expect(daemon.log.filter(({ event }) => event === 'sink.dead_letter')).toEqual([]);

      /**
       * Resolves when Elasticsearch has stored documents without a response to the sender; from
       * then on no connection succeeds.
       * @param documents  the number of documents when `sent` messages were acknowledged
       * @returns the number of documents
       */
      async function takenWithoutAnswer(documents: number, sent: number): Promise<number> {
        return until('an answer to a batch is cut off', patient, async () => {
          await flowing(daemon, 'siem');
          proxy.cutNext('shut');
          await until('an answer is cut off', patient, () => proxy.isShut || undefined);
          const answered = (await counted(daemon, 'waybill_events_delivered_total', 'siem')) - sent;
          const unanswered = (await server.count(stream)) - documents - answered;
          if (unanswered > 0) return unanswered;
          // The dropped response was the response to a query.
          proxy.open();
          return undefined;
        });
      }
    });
  },
);

/** Starts and kills the daemon repeatedly. @returns the number of daemon runs that delivered a record */
async function killDaemon(place: Place): Promise<number> {
  let count = 0;
  for (let life = 0; life < daemonKills; life += 1) {
    const daemon = new Daemon(place);
    const sink = moments[life % moments.length];
    if (sink !== undefined)
      await until(
        () => `${sink} takes something\n${daemon.words()}`,
        patient,
        () => taken(daemon, sink),
      );
    await pause(place.chance() * (sink === undefined ? 3_000 : 500));
    await daemon.kill();
    if (sinkIds.some((id) => taken(daemon, id))) count += 1;
  }
  return count;
}

function taken(daemon: Daemon, sink: SinkId): true | undefined {
  return daemon.log.some((line) => line.event === 'sink.first_delivery' && line['sink'] === sink) || undefined;
}

/** Waits until this sink delivers again. */
async function flowing(daemon: Daemon, sink: SinkId): Promise<void> {
  const sent = (): Promise<number> => counted(daemon, 'waybill_events_delivered_total', sink);
  const before = await sent();
  await until(
    () => `${sink} takes more than ${before}\n${daemon.words()}`,
    patient,
    async () => ((await sent()) > before ? true : undefined),
  );
}

function say(words: string): void {
  process.stderr.write(`${words}\n`);
}
