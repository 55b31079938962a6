/** What the ingest pipelines of the target do to a record, for `waybill check`. Stores nothing. */
import { membersOf } from '../../record/json-object.ts';
import { quote } from '../../errors/quote.ts';
import { error, ok, warning, type Finding } from '../define.ts';
import type { ElasticClient } from './client.ts';
import { errorFrom, messageOfItem } from './items.ts';
import { patternOf, type ElasticsearchSettings } from './settings.ts';

const sampleId = 'waybill-check';
const sample = {
  '@timestamp': '2026-11-21T23:00:00.000Z',
  event: { kind: 'event', category: ['file'], type: ['access'], action: 'open', outcome: 'success', id: '1', hash: '0'.repeat(64) },
  file: { name: 'check.docx' },
  user: { id: '1', name: 'check', email: 'check@example.com' },
  source: { ip: '192.0.2.1' },
  dpas: { uid: sampleId },
  message: 'waybill check',
};

/** Simulates the pipelines of the target with a sample record (Elasticsearch 8.12 or later). @param known  their names, as far as they can be read */
export async function simulatePipelines(
  client: ElasticClient,
  settings: ElasticsearchSettings,
  id: string,
  known: readonly string[],
  signal: AbortSignal,
): Promise<Finding[]> {
  const target = patternOf(settings).replaceAll('*', 'x');
  const setting = `sinks.${id}.${settings.index === undefined ? 'namespace' : 'index'}`;
  const json = { docs: [{ _index: target, _id: sampleId, _source: sample }] };
  const { status, body } = await client.request({ method: 'POST', path: '/_ingest/_simulate', json }, signal);
  const [first] = Array.isArray(body.docs) ? (body.docs as readonly unknown[]) : [];
  const { _id, _index, result, error: thrown, executed_pipelines: executed } = membersOf(membersOf(first).doc);
  const names = Array.isArray(executed) && executed.length > 0 ? executed.map(String) : known;
  const pipelines = `the pipelines of "${target}"${names.length === 0 ? '' : ` (${quote(names.join(', '), 200)})`}`;
  const effect = (what: string): Finding[] => [warning(`${pipelines} ${what}`, setting)];
  if (status !== 200 || first === undefined)
    return names.length === 0
      ? []
      : effect(
          'are not tried: the key lacks the privilege read_pipeline; `check` cannot see whether they drop records, fail or set the _id',
        );
  if (_id !== sampleId) return effect('set or remove the _id: after an unknown outcome a batch may be stored twice');
  const failure = errorFrom(thrown);
  if (failure?.reason?.startsWith('pipeline with id ')) return [error(`"${target}": ${failure.reason}`, setting)];
  if (failure)
    return effect(`or its mapping refuse a sample record (${messageOfItem({ error: failure })}); such records become dead letters`);
  if (result === 'noop')
    return effect(
      settings.dropped === 'count'
        ? 'drop a sample record, which counts as delivered'
        : `drop a sample record; it becomes a dead letter (sinks.${id}.dropped)`,
    );
  if (typeof _index === 'string' && _index !== target && !_index.startsWith(`.ds-${target}-`))
    return effect(
      `reroute a sample record to "${quote(_index, 200)}": after a rollover there, a batch with an unknown outcome may be stored twice`,
    );
  return names.length === 0 ? [] : [ok(`${pipelines} keep a sample record`)];
}
