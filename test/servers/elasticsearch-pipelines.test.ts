/** Ingest pipelines of a customer on a real Elasticsearch 9: nothing is lost silently, nothing is repeated without end, good records are stored once. */
import { rmSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { systemClock, systemRandom } from '../../src/time/clock.ts';
import { Delivery } from '../../src/deliver/delivery.ts';
import { elasticsearch } from '../../src/sink/elasticsearch/index.ts';
import { elasticsearchSettings } from '../../src/sink/elasticsearch/settings.ts';
import { plain } from '../support/deliver/rig.ts';
import { until } from '../support/e2e-place.ts';
import { append, committed, deadLetters, openJournal, registerSink, temporary } from '../support/model-journal.ts';
import { Elasticsearch, elasticsearchMissing } from '../support/servers/elasticsearch.ts';
import { notAsked } from '../support/servers/programs.ts';
import { contextOf, ModelKept } from '../support/sinks/sink-batches.ts';
import { uncounted } from '../support/uncounted.ts';
import { noting } from '../support/telemetry/written-events.ts';

const missing = notAsked() ?? elasticsearchMissing('elasticsearch-9.5.3');
const never = new AbortController().signal;
const count = 30;
/** The pipeline concerns these records. */
const picked = [7, 20];
const only = { if_equals: { field: 'picked', value: 'yes' } };

let server: Elasticsearch;
let streams = 0;

/** A data stream with this pipeline. */
async function streamWith(kind: 'default' | 'final', processors: readonly object[], settings: object = {}): Promise<string> {
  const dataset = `pipeline${(streams += 1)}`;
  await server.ask('PUT', `/_ingest/pipeline/${dataset}`, { processors });
  const template = { settings: { number_of_replicas: 0, [`index.${kind}_pipeline`]: dataset, ...settings } };
  await server.ask('PUT', `/_index_template/${dataset}`, {
    ...{ index_patterns: [`logs-${dataset}-*`], data_stream: {}, priority: 500, template },
  });
  return dataset;
}

/** Delivers the records, until all are settled or the sink is blocked. */
async function deliver(dataset: string, given: object = {}) {
  const directory = temporary();
  await using journal = await openJournal(directory, systemClock);
  registerSink(journal, 'sink');
  await append(journal, count, (n) => ({ hash: `h${n}`, picked: picked.includes(n) ? 'yes' : 'no' }));
  const settings = elasticsearchSettings.parse({ nodes: server.url, templates: 'ignore', dataset, ...given });
  const events: string[] = [];
  const delivery = new Delivery({
    settings: {
      ...{ id: 'sink', type: 'elasticsearch', deadline: 30_000, resolvable: true, failReadinessAfter: 1e9 },
      batch: { maxRecords: 10, maxBytes: 1e6, maxWait: 1 },
    },
    journal,
    pipeline: (entry) => {
      const message = plain(entry);
      const { hash, picked: isPicked } = JSON.parse(entry.text) as Record<string, string>;
      const document = { '@timestamp': '2026-11-28T10:00:00Z', event: { hash }, picked: isPicked, dpas: { uid: message.uid } };
      return { ...message, bytes: Buffer.from(JSON.stringify(document)) };
    },
    open: (signal) => elasticsearch.open(settings, contextOf('sink'), new ModelKept(), signal),
    clock: systemClock,
    random: systemRandom,
    log: noting({ write: (...[event]) => void events.push(event) }),
    meters: uncounted,
  });
  const stop = new AbortController();
  const run = delivery.run(stop.signal, stop.signal);
  const done = (): true | undefined =>
    committed(journal, 'sink').acknowledged === count || delivery.view().state === 'blocked' ? true : undefined;
  await until(
    () => `all records are settled: ${JSON.stringify(delivery.view())}`,
    90_000,
    async () => done(),
  );
  const { state, lastError } = delivery.view();
  stop.abort(new Error('the test ends'));
  await run.catch(() => undefined);
  const letters = deadLetters(journal).map(({ seq, code, message }) => ({ seq, code, message }));
  const acknowledged = committed(journal, 'sink').acknowledged;
  rmSync(directory, { recursive: true, force: true });
  const target = `logs-${dataset}-default`;
  return { state, lastError, letters, acknowledged, events, stored: await server.count(target), hashes: await hashesOf(target) };
}

/** The different events of a stream. */
async function hashesOf(target: string): Promise<number> {
  const texts = await server.documents(target);
  return new Set(texts.map((text) => (JSON.parse(text) as { event: { hash: string } }).event.hash)).size;
}

describe('pipelines of Elasticsearch 9', () => {
  beforeAll(async () => {
    if (missing !== undefined) return;
    server = await Elasticsearch.start('elasticsearch-9.5.3');
    await server.ask('PUT', '/_index_template/other', {
      ...{ index_patterns: ['logs-other-*'], data_stream: {}, priority: 500, template: { settings: { number_of_replicas: 0 } } },
    });
  }, 240_000);
  afterAll(() => (missing === undefined ? server[Symbol.asyncDispose]() : undefined));
  beforeEach(({ skip }) => {
    if (missing !== undefined) skip(missing);
  });

  const kinds = ['default', 'final'] as const;

  test.each(kinds)('a %s pipeline that drops records: dead letters, and the others are stored once', async (kind) => {
    const found = await deliver(await streamWith(kind, [{ drop: only }]));
    expect(found).toMatchObject({ state: 'active', acknowledged: count, stored: count - 2, hashes: count - 2 });
    expect(found.letters).toMatchObject(picked.map((seq) => ({ seq, code: 'dropped' })));
  });

  test('with dropped: count they count as delivered, and the log tells it once', async () => {
    const found = await deliver(await streamWith('default', [{ drop: only }]), { dropped: 'count' });
    expect(found).toMatchObject({ state: 'active', acknowledged: count, stored: count - 2, letters: [] });
    expect(found.events.filter((event) => event === 'sink.records_dropped')).toHaveLength(1);
  });

  test.each(kinds)('a %s pipeline that fails with 500 for some records', async (kind) => {
    const found = await deliver(await streamWith(kind, [{ fail: { message: 'no address', ...only } }]));
    expect(found).toMatchObject({ state: 'active', acknowledged: count, stored: count - 2, hashes: count - 2 });
    expect(found.letters).toEqual(picked.map((seq) => ({ seq, code: 'runtime_exception', message: 'runtime_exception: no address' })));
  });

  test.each(kinds)('a %s pipeline that fails with 400 for some records', async (kind) => {
    const found = await deliver(await streamWith(kind, [{ set: { field: 'labels.ip', copy_from: 'source.ip', ...only } }]));
    expect(found).toMatchObject({ state: 'active', acknowledged: count, stored: count - 2, hashes: count - 2 });
    expect(found.letters).toMatchObject(
      picked.map((seq) => ({ seq, code: 'illegal_argument_exception', message: expect.stringContaining('[source.ip]') as string })),
    );
  });

  test('a pipeline that fails for every record blocks the sink, names the pipeline, and makes no dead letter', async () => {
    const found = await deliver(await streamWith('default', [{ set: { field: 'labels.ip', copy_from: 'source.ip' } }]));
    expect(found).toMatchObject({ state: 'blocked', acknowledged: 0, stored: 0, letters: [] });
    expect(found.lastError).toMatch(/400 illegal_argument_exception \(a pipeline of .*index\.default_pipeline/);
  });

  test.each(kinds)('a %s pipeline that sets the _id of each event: stored once', async (kind) => {
    const found = await deliver(await streamWith(kind, [{ set: { field: '_id', copy_from: 'event.hash' } }]));
    expect(found).toMatchObject({ state: 'active', acknowledged: count, stored: count, hashes: count, letters: [] });
  });

  test('a pipeline that gives two events the same _id: the second is a dead letter', async () => {
    const found = await deliver(await streamWith('default', [{ set: { field: '_id', value: 'same', ...only } }]));
    expect(found).toMatchObject({ state: 'active', acknowledged: count, stored: count - 1, hashes: count - 1 });
    expect(found.letters).toMatchObject([{ seq: 20, code: 'id_taken' }]);
  });

  test('a pipeline that removes the _id: stored once', async () => {
    const found = await deliver(await streamWith('default', [{ remove: { field: '_id' } }]));
    expect(found).toMatchObject({ state: 'active', acknowledged: count, stored: count, hashes: count, letters: [] });
  });

  test('a pipeline that reroutes: stored once, there', async () => {
    const before = await server.count('logs-other-default');
    const found = await deliver(await streamWith('default', [{ reroute: { destination: 'logs-other-default', ...only } }]));
    expect(found).toMatchObject({ state: 'active', acknowledged: count, stored: count - 2, letters: [] });
    expect((await server.count('logs-other-default')) - before).toBe(2);
  });

  test('a reached limit of fields blocks the sink, names the setting, and makes no dead letter', async () => {
    const found = await deliver(await streamWith('default', [{ remove: { field: 'picked' } }], { 'index.mapping.total_fields.limit': 3 }));
    expect(found).toMatchObject({ state: 'blocked', acknowledged: 0, letters: [] });
    expect(found.lastError).toMatch(/Limit of total fields \[3\].*raise index\.mapping\.total_fields\.limit/);
  });

  test('check tries the pipelines and tells what they do to a record', async () => {
    const told = async (processors: readonly object[]): Promise<string> => {
      const dataset = await streamWith('default', processors);
      const settings = elasticsearchSettings.parse({ nodes: server.url, templates: 'ignore', dataset });
      const found = await elasticsearch.check(settings, contextOf('sink'), never);
      return found
        .filter(({ message }) => message.includes('pipelines of'))
        .map(({ level, message }) => `${level}: ${message}`)
        .join();
    };
    expect(await told([{ drop: {} }])).toMatch(/^warning: .* drop a sample record/);
    expect(await told([{ fail: { message: 'no' } }])).toMatch(/^warning: .*refuse a sample record \(runtime_exception: no\)/);
    expect(await told([{ remove: { field: '_id' } }])).toMatch(/^warning: .*set or remove the _id/);
    expect(await told([{ reroute: { destination: 'logs-other-default' } }])).toMatch(/^warning: .*reroute a sample record/);
    expect(await told([{ set: { field: 'labels.seen', value: 'yes' } }])).toMatch(/^ok: .*\(pipeline\d+\) keep a sample record/);
  });
});
