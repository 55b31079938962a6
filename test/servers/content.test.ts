/**
 * The content of a SOC in the tools that it is for: Sigma rules through sigma-cli, the queries that come out on a real Elasticsearch, and
 * those of a language that it lacks through the evaluators of the unit tests.
 */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import component from '../../content/elasticsearch/component-template.json' with { type: 'json' };
import { encoder } from '../../src/encode/index.ts';
import { normalizer } from '../../src/normalize/normalizer.ts';
import { esql } from '../unit/content/esql.ts';
import type { Happening, Row } from '../unit/content/events.ts';
import { eventOf, flat, recordFor, start } from '../unit/content/events.ts';
import { kql } from '../unit/content/kql.ts';
import { mappedFields } from '../unit/content/mapped-fields.ts';
import { allCodes, bursts, burstSequences, singleEvents } from '../unit/content/sequences.ts';
import { sigmaRules } from '../unit/content/sigma.ts';
import { recordOf, settings } from '../unit/normalize/records.ts';
import { Elasticsearch, elasticsearchMissing } from './elasticsearch.ts';
import { cacheFolder, notAsked } from './programs.ts';

const sigma = join(cacheFolder(), 'sigma-3.1.0/bin/sigma');
const noSigma = notAsked() ?? (existsSync(sigma) ? undefined : 'no sigma-cli: test/servers/install.sh sigma');

/** The queries of the rules that no correlation rests on, or of all in one folder. */
function converted(target: string, pipeline: string, ...paths: readonly string[]): readonly string[] {
  const folder = new URL('../../content/sigma/', import.meta.url);
  const args = ['convert', '-t', target, '-p', `pipelines/${pipeline}.yml`, ...paths];
  const output = execFileSync(sigma, args, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  return output.trim().split('\n\n');
}

/** The outcomes that each rule over single events finds; sorted, because sigma-cli does not name the rules in its output. */
const expected = sigmaRules
  .flatMap(({ name, detection }) => (detection ? [singleEvents[name.replace(/^dpas_/, '')] ?? []] : []))
  .toSorted();

describe('Sigma rules, converted by sigma-cli', () => {
  test('for Elasticsearch (Lucene) find on a real server what they describe', { timeout: 300_000 }, async ({ skip }) => {
    const missing = noSigma ?? elasticsearchMissing('elasticsearch-9.5.3');
    if (missing !== undefined) return skip(missing);
    const queries = converted('lucene', 'ecs', 'rules');
    await using server = await Elasticsearch.start('elasticsearch-9.5.3');
    await store(
      server,
      allCodes.map((code, at) => recordFor({ code, at })),
    );
    const found = queries.map(async (query) => {
      const { status, body } = await server.ask('POST', '/content/_search', { size: 100, query: { query_string: { query } } });
      expect(status, query).toBe(200);
      const { hits } = (body as { hits: { hits: { _source: { event: { code: string } } }[] } }).hits;
      const codes = new Set(hits.map(({ _source }) => _source.event.code));
      return allCodes.filter((code) => codes.has(code));
    });
    expect((await Promise.all(found)).toSorted()).toEqual(expected);
    // The evaluator of the unit tests reads the same text in the same way.
    expect(queries.map((query) => allCodes.filter((code) => kql(query).matches(eventOf(recordFor({ code, at: 0 }))))).toSorted()).toEqual(
      expected,
    );
  });

  test('for Elasticsearch (ES|QL) count bursts that lie in one bucket', { timeout: 300_000 }, ({ skip }) => {
    if (noSigma !== undefined) return skip(noSigma);
    const queries = converted('esql', 'ecs', '-P', '*s/dpas_*.yml', '.').map((text) => esql(text));
    expect(queries.filter((query) => query.aggregates)).toHaveLength(Object.keys(bursts).length + 1);
    expect(queries.flatMap(({ fields }) => fields).filter((field) => !mappedFields.has(field))).toEqual([]);
    const fired = (happenings: readonly Happening[]): boolean =>
      queries.some(
        (query) =>
          query.aggregates &&
          query.run(
            happenings.map((happening) => eventOf(recordFor(happening))),
            start,
          ).length > 0,
      );
    for (const [name, burst] of Object.entries(bursts)) {
      // Shorter by a second, so that the whole burst lies in one bucket.
      for (const sequence of burstSequences({ ...burst, window: burst.window - 1 }, burst.window))
        expect(fired(sequence.happenings), `${name}: ${sequence.name}`).toBe(sequence.fires);
    }
  });

  test('for Splunk read only fields of the events', ({ skip }) => {
    if (noSigma !== undefined) return skip(noSigma);
    const queries = converted('splunk', 'splunk', 'rules');
    expect(queries).toHaveLength(expected.length);
    const fields = queries.flatMap((query) => [...query.matchAll(/([\w.]+)(?:=| IN )/g)].map(([, field = '']) => field));
    expect(fields.filter((field) => field !== 'sourcetype' && !mappedFields.has(field))).toEqual([]);
    expect(queries.every((query) => query.startsWith('sourcetype="dpas:audit"'))).toBe(true);
  });

  test('for OCSF read only attributes of the events', ({ skip }) => {
    if (noSigma !== undefined) return skip(noSigma);
    const encode = encoder('ocsf', { includeOriginal: false, cef: { ipv6: 'c6a2', geo: 'cfp' } });
    const ocsfOf = (code: string): Row =>
      flat(JSON.parse(encode(normalizer(settings)(recordOf(JSON.stringify(recordFor({ code, at: 0 })))))), '');
    const queries = converted('lucene', 'ocsf', 'rules');
    expect(queries.map((query) => allCodes.filter((code) => kql(query).matches(ocsfOf(code)))).toSorted()).toEqual(expected);
  });
});

/** Creates the index `content` with the mapping of content/elasticsearch, and stores the ECS document of each record. */
async function store(server: Elasticsearch, records: readonly object[]): Promise<void> {
  const { mappings } = component.template;
  const properties = { ...mappings.properties, '@timestamp': { type: 'date' } };
  expect(await server.ask('PUT', '/content', { mappings: { ...mappings, properties } })).toMatchObject({ status: 200 });
  const encode = encoder('ecs', { includeOriginal: true, cef: { ipv6: 'c6a2', geo: 'cfp' } });
  for (const record of records) {
    const document = JSON.parse(encode(normalizer(settings)(recordOf(JSON.stringify(record))))) as object;
    expect(await server.ask('POST', '/content/_doc', document)).toMatchObject({ status: 201 });
  }
  await server.ask('POST', '/content/_refresh');
}
