/**
 * Content for analysts in real tools: sigma-cli converts the rules, and a real Elasticsearch runs
 * the queries. The evaluators of the unit tests run queries in other languages.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import component from '../../content/elasticsearch/component-template.json' with { type: 'json' };
import { encoder } from '../../src/encode/index.ts';
import { normalizer } from '../../src/normalize/normalizer.ts';
import { esql } from '../support/content/esql.ts';
import type { Row } from '../support/content/events.ts';
import { eventOf, flat, recordFor, start } from '../support/content/events.ts';
import { kibanaFiles } from '../../tools/content/kibana.ts';
import type { Rule } from '../../src/detections/rule.ts';
import { rules as detectionRules } from '../../tools/content/rules.ts';
import { kql } from '../support/content/kql.ts';
import type { Bucket } from '../support/content/lens.ts';
import { aggregationsOf, columnsOf, lensPanels, shippedObjects, valueIn } from '../support/content/lens.ts';
import { mappedFields } from '../../tools/content/mapped-fields.ts';
import { evaluate } from '../../src/detections/evaluate.ts';
import { sigmaLimit } from '../../tools/content/sigma.ts';
import { eventsOf } from '../support/detections/samples.ts';
import { spl } from '../support/content/spl.ts';
import { fullest, poorest, recordOf, rows, settings } from '../support/normalize/records.ts';
import { Elasticsearch, elasticsearchMissing } from '../support/servers/elasticsearch.ts';
import { cacheFolder, notAsked } from '../support/servers/programs.ts';

const sigma = join(cacheFolder(), 'sigma-3.1.0-validators-0.21.0/bin/sigma');
const noSigma = notAsked() ?? (existsSync(sigma) ? undefined : 'no sigma-cli: test/servers/install.sh sigma');

/** The queries of all rules in some folders. Detections that a correlation counts have none. */
function converted(target: string, pipeline: string, ...paths: readonly string[]): readonly string[] {
  const folder = new URL('../../content/sigma/', import.meta.url);
  const args = ['convert', '-t', target, '-p', `pipelines/${pipeline}.yml`, ...paths];
  const output = execFileSync(sigma, args, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  return output.trim().split('\n\n');
}

const allCodes = rows.map(({ triple }) => triple.join(':'));
const saidRules = detectionRules.filter((rule) => sigmaLimit(rule) === undefined);
const burstRules = detectionRules.filter(({ detect }) => detect.kind === 'count' || detect.kind === 'distinct');

/** The outcomes that each detection matches; sorted, because sigma-cli does not name the rules in its output. */
const expected = saidRules
  .flatMap(({ detect }) =>
    detect.kind === 'single'
      ? [allCodes.filter((code) => detect.where.some(({ fields }) => fields['event.code']?.includes(code) ?? code.includes(':AccessDenied:')))]
      : [],
  )
  .toSorted(); // prettier-ignore

type Sample = Rule['fires'][number];
/** The records of a sample, which begins at `start`. */
const recordsOf = (acts: Sample, rule: Rule, name: { readonly user?: string; readonly file?: string } = {}, from = 0) => {
  const events = eventsOf(acts, rule);
  const begin = events[0]?.at ?? 0;
  return events.map(({ at, fields }) => {
    const [code = '', user = '', file = ''] = ['event.code', 'user.id', 'dpas.payload.id'].map((field) => fields[field]);
    return { ...recordFor({ code, user, file, ...name, at: from + (at - begin) / 1_000 }), currentPayloadOwnerId: fields['file.uid'] };
  });
};

/** Runs every sample of every burst through the queries of all correlations: one of them fires if one of the rules does. */
function firesOnBursts(queries: readonly ((rows: readonly Row[]) => readonly unknown[])[]): void {
  expect(queries).toHaveLength(burstRules.length);
  for (const rule of burstRules)
    for (const acts of [...rule.fires, ...rule.quiet]) {
      const rows = recordsOf(acts, rule).map(eventOf);
      const events = eventsOf(acts, rule);
      const fires = burstRules.some((each) => evaluate(each, events, {}, events.at(-1)?.at ?? 0).length > 0);
      expect(queries.some((run) => run(rows).length > 0), `${rule.id}: ${JSON.stringify(acts)}`).toBe(fires); // prettier-ignore
    }
}

describe('Sigma rules, converted by sigma-cli', () => {
  test('for Elasticsearch (Lucene) match their outcomes on a real server', { timeout: 300_000 }, async ({ skip }) => {
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
    // The evaluator of the unit tests gives the same result for the same text.
    expect(queries.map((query) => allCodes.filter((code) => kql(query).matches(eventOf(recordFor({ code, at: 0 }))))).toSorted()).toEqual(
      expected,
    );
  });

  test('for Elasticsearch (ES|QL) count bursts within one bucket', { timeout: 300_000 }, ({ skip }) => {
    if (noSigma !== undefined) return skip(noSigma);
    const texts = converted('esql', 'ecs', 'correlations');
    for (const text of texts) expect(text).toMatch(/^from logs-dpas\.audit-\* /);
    const queries = texts.map((text) => esql(text));
    expect(queries.flatMap(({ fields }) => fields).filter((field) => !mappedFields.has(field))).toEqual([]);
    const counting = queries.filter(({ aggregates }) => aggregates);
    firesOnBursts(counting.map((query) => (rows) => query.run(rows, start)));
  });

  test('for Splunk match their outcomes, and count bursts within one bucket', { timeout: 300_000 }, ({ skip }) => {
    if (noSigma !== undefined) return skip(noSigma);
    const single = converted('splunk', 'splunk', 'rules').map((text) => spl(text));
    // sigma-cli separates rules by empty lines, and a correlation rule has empty lines inside too: a new rule begins only at these words.
    const counting = converted('splunk', 'splunk', 'correlations')
      .join('\n\n')
      .split(/\n\n(?=index=|\| multisearch)/)
      .filter((text) => text.includes('| stats'))
      .map((text) => spl(text));
    const found = single.map(({ run }) => allCodes.filter((code) => run([eventOf(recordFor({ code, at: 0 }))]).length > 0));
    expect(found.toSorted()).toEqual(expected);
    const fields = [...single, ...counting].flatMap((query) => query.fields);
    expect(fields.filter((field) => !mappedFields.has(field))).toEqual([]);
    for (const { limits } of [...single, ...counting]) expect(limits).toMatchObject({ index: 'dpas', sourcetype: 'dpas:audit' });
    firesOnBursts(counting.map(({ run }) => run));
  });

  test('pass the validators of pySigma and SigmaHQ that need no download', { timeout: 300_000 }, ({ skip }) => {
    if (noSigma !== undefined) return skip(noSigma);
    // content/README.md names them: they compare with lists on web sites.
    const downloading = ['fieldname_cast', 'filename_prefix', 'invalid_fieldname', 'logsource_unknown', 'redundant_field', 'tags_techniques_without_tactics']; // prettier-ignore
    const leftOut = ['attacktag', 'd3_fendtag', ...downloading.map((name) => `sigmahq_${name}`)];
    const folder = mkdtempSync(join(tmpdir(), 'waybill-sigma-'));
    try {
      const config = join(folder, 'validators.yml');
      writeFileSync(config, ['validators:', '  - all', ...leftOut.map((name) => `  - -${name}`)].join('\n'));
      const args = ['check', '--fail-on-issues', '--validation-config', config, 'rules', 'correlations', 'ordered'];
      const output = execFileSync(sigma, args, { cwd: new URL('../../content/sigma/', import.meta.url), encoding: 'utf8' });
      expect(output).toContain('Found 0 errors, 0 condition errors and 0 issues');
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test.for([
    ['kusto', 'cef', 'rules'],
    ['opensearch_lucene', 'ecs', 'rules'],
    ['lucene', 'leef', 'rules'],
  ] as const)('convert for %s with the pipeline %s', { timeout: 300_000 }, ([target, pipeline, path], { skip }) => {
    if (noSigma !== undefined) return skip(noSigma);
    const queries = converted(target, pipeline, path).filter((query) => query !== '');
    expect(queries.length).toBeGreaterThan(0);
    // No name of the service is left.
    for (const query of queries) expect(query).not.toMatch(/actionAttempted|resultReason|payloadOwner/);
  });

  test('for OCSF use only attributes of the events', ({ skip }) => {
    if (noSigma !== undefined) return skip(noSigma);
    const encode = encoder('ocsf', { includeOriginal: false, cef: { ipv6: 'c6a2', geo: 'cfp' } });
    const ocsfOf = (code: string): Row =>
      flat(JSON.parse(encode(normalizer(settings)(recordOf(JSON.stringify(recordFor({ code, at: 0 }))))).toString()), '');
    const queries = converted('lucene', 'ocsf', 'rules');
    expect(queries.map((query) => allCodes.filter((code) => kql(query).matches(ocsfOf(code)))).toSorted()).toEqual(expected);
  });
});

interface Inspection {
  readonly summary: Readonly<Record<string, number>>;
  readonly reports: readonly {
    readonly groups: readonly { readonly checks: readonly { readonly name: string; readonly result: string }[] }[];
  }[];
}

test(
  'AppInspect, also for Splunk Cloud, reports only that the Splunk app has collections, which needs no action',
  { timeout: 300_000 },
  ({ skip }) => {
    const inspect = join(cacheFolder(), 'appinspect-4.3.1/bin/splunk-appinspect');
    const missing = notAsked() ?? (existsSync(inspect) ? undefined : 'no splunk-appinspect: test/servers/install.sh appinspect');
    if (missing !== undefined) return skip(missing);
    const folder = mkdtempSync(join(tmpdir(), 'waybill-appinspect-'));
    try {
      const [packed, report] = [join(folder, 'waybill_dpas.spl'), join(folder, 'report.json')];
      execFileSync('tar', ['-czf', packed, '-C', fileURLToPath(new URL('../../content/splunk', import.meta.url)), 'waybill_dpas']);
      for (const tags of [[], ['--included-tags', 'cloud']]) {
        const args = ['inspect', packed, ...tags, '--data-format', 'json', '--output-file', report];
        execFileSync(inspect, args, { cwd: folder, stdio: 'ignore' });
        const { summary, reports } = JSON.parse(readFileSync(report, 'utf8')) as Inspection;
        const checks = reports.flatMap(({ groups }) => groups).flatMap((group) => group.checks);
        expect(checks.filter(({ result }) => result === 'warning').map(({ name }) => name)).toEqual(['check_collections_conf']);
        expect(summary).toMatchObject({ error: 0, failure: 0, warning: 1 });
        expect(summary['success']).toBeGreaterThan(50);
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
);

describe('content of Kibana, on a real Elasticsearch', () => {
  const missing = notAsked() ?? elasticsearchMissing('elasticsearch-9.5.3');
  // The page says to replace the id of the file.
  const documentedQueries = [...readFileSync('docs/denials.md', 'utf8').matchAll(/^```kql\n([^]*?)\n```$/gm)].map(([, query = '']) => ({
    query: query.replace('p-91c2', 'p-1'),
  }));
  const perDay = allCodes.flatMap((code, index) =>
    [0, 1, 2].map((day) => ({ code, user: `u-${index % 3}`, file: `p-${index}`, at: day * 86_400 + index })),
  );
  const records = [...perDay.map((happening) => ({ ...fullest, ...recordFor(happening) })), { ...poorest, resultReason: 'NewReason' }];
  let server: Elasticsearch;
  beforeAll(async () => {
    if (missing !== undefined) return;
    server = await Elasticsearch.start('elasticsearch-9.5.3');
    await store(server, records);
  }, 300_000);
  afterAll(() => (missing === undefined ? server[Symbol.asyncDispose]() : undefined));
  beforeEach(({ skip }) => {
    if (missing !== undefined) skip(missing);
  });

  interface Found {
    readonly hits: { readonly total: { readonly value: number } };
    readonly aggregations: Readonly<Record<string, { readonly buckets: readonly Bucket[] }>>;
  }
  const search = async (body: object): Promise<Found> => {
    const answer = await server.ask('POST', '/content/_search', { size: 0, track_total_hits: true, ...body });
    expect(answer.status, JSON.stringify(answer.body)).toBe(200);
    return answer.body as Found;
  };

  test('each KQL rule, search and query of docs/denials.md finds as many events as the evaluator of the unit tests', async () => {
    const events = records.map(eventOf);
    const files = kibanaFiles(detectionRules);
    const rules = `${files['detection-rules.ndjson'] ?? ''}${files['detection-rules-threshold.ndjson'] ?? ''}`.trimEnd().split('\n');
    const queries = [
      ...rules.map((line) => JSON.parse(line) as { language: string; query: string }).filter(({ language }) => language === 'kuery'),
      ...shippedObjects().flatMap((object) =>
        object.type === 'search' ? [object.attributes.kibanaSavedObjectMeta.searchSourceJSON.query] : [],
      ),
      ...documentedQueries,
    ].flatMap(({ query }) => (query === '' ? [] : [kql(query)]));
    expect(documentedQueries).toHaveLength(3);
    expect(queries.length).toBeGreaterThan(18);
    for (const { query, matches } of queries) {
      const { hits } = await search({ query });
      expect(hits.total.value, JSON.stringify(query)).toBe(events.filter(matches).length);
      expect(hits.total.value, JSON.stringify(query)).toBeGreaterThan(0);
    }
  });

  test('each panel of the dashboards has a bucket, and its metrics count', async () => {
    const panels = lensPanels(shippedObjects());
    expect(panels.length).toBeGreaterThan(10);
    for (const { dashboard, title, lens, queries } of panels) {
      const filter = queries.map((query) => kql(query).query);
      const { aggregations } = await search({ query: { bool: { filter } }, aggs: aggregationsOf(lens, '1d') });
      const [first] = columnsOf(lens).find(([, { isBucketed }]) => isBucketed) ?? [''];
      const [bucket] = aggregations[first]?.buckets ?? [];
      expect(bucket, `${dashboard}: ${title}`).toBeDefined();
      for (const column of columnsOf(lens)) {
        const [, { label, operationType }] = column;
        if (operationType === 'unique_count' || operationType === 'max')
          expect(bucket && valueIn(bucket, column), `${dashboard}: ${title}: ${label}`).toBeGreaterThan(0);
      }
    }
  });

  test('the aggregation of a burst rule finds the burst in one of two buckets of twice the window', async () => {
    for (const rule of burstRules) {
      const { detect } = rule;
      if (detect.kind !== 'count' && detect.kind !== 'distinct') continue;
      const window = detect.window / 1_000;
      const [group = ''] = detect.group;
      const name = `burst-${rule.id}`;
      // The burst starts a minute before an edge of the first buckets, and has no event too many.
      const from = 2 * window - 60 - ((start / 1000) % (2 * window));
      const [acts = []] = rule.fires;
      const burst = recordsOf(acts, rule, group === 'user.id' ? { user: name } : { file: name }, from).slice(0, detect.threshold);
      await storeMore(server, burst);
      const counted = detect.kind === 'distinct' ? { counted: { cardinality: { field: detect.distinct } } } : {};
      const codes = detect.where.flatMap(({ fields }) => fields['event.code'] ?? []);
      const found = [0, window].map(async (offset) => {
        const histogram = { field: '@timestamp', fixed_interval: `${2 * window}s`, offset: `-${offset}s` };
        const query = { bool: { filter: [{ terms: { 'event.code': codes } }, { term: { [group]: name } }] } };
        const { aggregations } = await search({ query, aggs: { bucket: { date_histogram: histogram, aggs: counted } } });
        const sizes = aggregations['bucket']?.buckets.map(
          (each) => (each['counted'] as { value: number } | undefined)?.value ?? each.doc_count,
        );
        return sizes?.some((size) => size >= detect.threshold);
      });
      expect(await Promise.all(found), rule.id).toEqual([false, true]);
    }
  });
});

/** Creates the index `content` with the mapping of content/elasticsearch, and stores the ECS document of each record. */
async function store(server: Elasticsearch, records: readonly object[]): Promise<void> {
  const { mappings } = component.template;
  const properties = { ...mappings.properties, '@timestamp': { type: 'date' } };
  expect(await server.ask('PUT', '/content', { mappings: { ...mappings, properties } })).toMatchObject({ status: 200 });
  await storeMore(server, records);
}

async function storeMore(server: Elasticsearch, records: readonly object[]): Promise<void> {
  const encode = encoder('ecs', { includeOriginal: true, cef: { ipv6: 'c6a2', geo: 'cfp' } });
  for (const record of records) {
    const document = JSON.parse(encode(normalizer(settings)(recordOf(JSON.stringify(record)))).toString()) as object;
    expect(await server.ask('POST', '/content/_doc', document)).toMatchObject({ status: 201 });
  }
  await server.ask('POST', '/content/_refresh');
}
