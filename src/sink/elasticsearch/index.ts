/**
 * The sink `elasticsearch`, versions 8 and 9: a data stream, or indices named by the time of the event. The uid is the `_id`, so that an
 * index stores an event once. A search resolves an uncertain outcome.
 */
import { defineSink } from '../define.ts';
import { dataStreamOf, elasticsearchSettings, targetFaults } from './settings.ts';

const losses = '0 with index.translog.durability: request';

export const elasticsearch = defineSink('elasticsearch', {
  summary: 'Elasticsearch 8 or 9, a data stream or time-named indices',
  config: elasticsearchSettings,
  formats: ['ecs'],
  batch: { records: 1_000, bytes: 5 * 1024 * 1024, wait: 1_000 },
  resolvable: () => true,
  deadline: 30_000,
  destination: ({ index, dataset, namespace }) => (index === undefined ? `data stream logs-${dataset}-${namespace}` : `index ${index}`),
  dataStream: dataStreamOf,
  faults: targetFaults,
  guarantees: [
    {
      settings: 'data stream',
      applies: ({ index }) => index === undefined,
      delivery: 'exactly once, by uid and lookup',
      duplicates: '0; one batch at a rollover without the right to read, or if a lost request arrives after the lookup',
      losses,
    },
    { settings: 'time-named `index`', delivery: 'exactly once, by uid', duplicates: '0', losses },
  ],
  check: async (settings, context, signal) => (await import('./check.ts')).check(settings, context, signal),
  open: async (settings, context, kept, signal) => (await import('./sink.ts')).ElasticsearchSink.open(settings, context, kept, signal),
});
