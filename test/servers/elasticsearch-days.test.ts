/**
 * A day of the ledger is a day in a SIEM: ten days, each compared with a bucket of a date histogram
 * of a real Elasticsearch.
 */
import { expect, test } from 'vitest';
import { configure, Daemon, settled, sourceOf } from '../support/e2e-daemon.ts';
import { countByDay, dayMs, ledgerDays, wholeDays } from '../support/e2e-days.ts';
import { inPlace, until } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';
import { Elasticsearch, elasticsearchMissing } from '../support/servers/elasticsearch.ts';
import { notAsked } from '../support/servers/programs.ts';
import { stream, waybill } from '../support/servers/three-receivers.ts';

const missing = notAsked() ?? elasticsearchMissing('elasticsearch-9.5.3');
const records = 8_000;

interface Buckets {
  readonly aggregations?: {
    readonly days: { readonly buckets: readonly { readonly key_as_string: string; readonly doc_count: number }[] };
  };
}

test('ten days of the ledger equal the buckets of a date histogram to the record', { timeout: 1_200_000 }, async ({ skip }) => {
  if (missing !== undefined) return skip(missing);
  await using server = await Elasticsearch.start('elasticsearch-9.5.3');
  await inPlace('elasticsearch-days', async (place) => {
    const days = wholeDays(Date.now());
    const service = await Service.start(place, '--seed', '12', '--records', String(records), '--span', '12d');
    const start = new Date(Date.parse(days[0] ?? '') - 2 * dayMs + 51_000).toISOString();
    configure(place, [sourceOf(service, start, { recountAfter: [] })], [{ id: 'siem', type: 'elasticsearch', nodes: server.url }]);
    await waybill(place, 'setup', 'elasticsearch', '--sink', 'siem', '--yes');
    const daemon = new Daemon(place);
    await settled(daemon, Date.parse(days.at(-1) ?? '') + dayMs, 300_000);

    const truth = countByDay(await service.truth(), days);
    const body = {
      size: 0,
      query: { range: { '@timestamp': { gte: days[0], lt: `${days.at(-1) ?? ''}||+1d/d` } } },
      aggs: { days: { date_histogram: { field: '@timestamp', calendar_interval: 'day', format: 'yyyy-MM-dd', min_doc_count: 0 } } },
    };
    const histogram = async (): Promise<Record<string, number>> => {
      await server.ask('POST', `/${stream}/_refresh`);
      const { aggregations } = (await server.ask('POST', `/${stream}/_search`, body)).body as Buckets;
      return Object.fromEntries((aggregations?.days.buckets ?? []).map(({ key_as_string, doc_count }) => [key_as_string, doc_count]));
    };
    const sum = (counts: Record<string, number>): number => Object.values(counts).reduce((all, count) => all + count, 0);
    await until(
      () => `all events at the receiver\n${daemon.words()}`,
      300_000,
      async () => (sum(await histogram()) >= sum(truth) ? true : undefined),
    );
    const ledger = Object.fromEntries((await ledgerDays(place, days)).map(({ day, records }) => [day, records]));
    expect(ledger).toEqual(truth);
    expect(await histogram()).toEqual(ledger);
    expect(await daemon.stop()).toMatchObject({ code: 0 });
    // A readable table next to the result.
    process.stderr.write(`${days.map((day) => `${day} ${ledger[day] ?? 0}`).join('\n')}\n`);
  });
});
