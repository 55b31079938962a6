/** The generated files of the Helm chart, and the values that its schema must refuse. test/deploy/chart.test.ts runs Helm itself. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Ajv } from 'ajv';
import { format, resolveConfig } from 'prettier';
import { parse } from 'yaml';
import { describe, expect, it } from 'vitest';
import { version } from '../../../src/disk/version.ts';
import { valuesOf, valuesSchema } from '../../support/chart-values.ts';

const pathOf = (path: string): string => fileURLToPath(new URL(`../../../${path}`, import.meta.url));
const read = (path: string): string => readFileSync(pathOf(path), 'utf8');
const values = read('helm/waybill/values.yaml');

// `npx vitest run test/unit/content/chart.test.ts --update` writes the files.
describe('generated files of the chart', () => {
  it('values.schema.json follows values.yaml and the schema of the configuration', async () => {
    const path = pathOf('helm/waybill/values.schema.json');
    const text = await format(JSON.stringify(valuesSchema(values)), { ...(await resolveConfig(path)), filepath: path });
    await expect(text).toMatchFileSnapshot(path);
  });

  it('README.md lists every value', async () => {
    const path = pathOf('helm/waybill/README.md');
    const mark = '<!-- generated below this line by test/unit/content/chart.test.ts -->\n';
    const [written = ''] = readFileSync(path, 'utf8').split(mark);
    const rows = valuesOf(values).map(({ name, description, default: usual }) => {
      const shown = name === 'config' ? 'see below' : `\`${JSON.stringify(usual)}\``;
      return `| \`${name}\` | ${description.replaceAll('|', '\\|')} | ${shown} |\n`;
    });
    await expect(`${written}${mark}\n| value | purpose | default |\n| --- | --- | --- |\n${rows.join('')}`).toMatchFileSnapshot(path);
  });

  // A chart cannot read files outside its directory, and Flux drops symbolic links.
  it.each([
    ['content/prometheus/alerts.yaml', 'helm/waybill/files/alerts.yaml'],
    ['content/grafana/dashboard.json', 'helm/waybill/files/dashboard.json'],
  ])('%s is in the chart', async (from, to) => {
    await expect(read(from)).toMatchFileSnapshot(pathOf(to));
  });

  it('has the version of the program', () => {
    expect(parse(read('helm/waybill/Chart.yaml'))).toMatchObject({ version, appVersion: version });
  });
});

it('docs/install.md creates the secret with every key that its example of values uses', () => {
  const keys = (text: string, pattern: RegExp): string[] => [...text.matchAll(pattern)].map(([, key = '']) => key).toSorted();
  const [, section = ''] = /\n## Helm\n([^]*?)\n## /.exec(read('docs/install.md')) ?? [];
  const used = keys(read('helm/waybill/examples/elasticsearch.yaml'), /\/run\/secrets\/waybill\/([a-z-]+)/g);
  expect(used).not.toEqual([]);
  expect(keys(section, /--from-literal=([a-z-]+)=/g)).toEqual(used);
});

describe('the schema of the values', () => {
  const accepts = new Ajv({ strict: false }).compile(JSON.parse(JSON.stringify(valuesSchema(values))) as object);
  const source = {
    id: 'production',
    baseUrl: 'https://service.example/v2/api',
    auth: { authUrl: 'https://login.example', tenantId: 't', clientId: 'c', scopeAddress: 'service.example' },
  };
  const secret = '${file:/run/secrets/waybill/secret}';
  const withAuth = (more: object): object => ({ config: { sources: [{ ...source, auth: { ...source.auth, ...more } }] } });
  const withSink = (sink: object): object => ({ config: { sources: [source], sinks: [{ id: 'siem', ...sink }] } });

  it.each<[string, object]>([
    ['the defaults', {}],
    ['a secret by reference', withAuth({ clientSecret: secret })],
    ['a proxy without a password', { config: { sources: [source], proxy: { url: 'http://proxy.example:3128' } } }],
    ['a sink with its key by reference', withSink({ type: 'elasticsearch', nodes: 'https://es.example:9200', apiKey: '${env:KEY}' })],
  ])('accepts %s', (_, given) => {
    const merged = { ...(parse(values) as object), ...given };
    expect([accepts(merged), accepts.errors]).toEqual([true, null]);
  });

  it.each<[string, object]>([
    ['a literal client secret', withAuth({ clientSecret: 'hunter2' })],
    ['a literal password after a reference', withAuth({ grantType: 'password', username: 'u', password: `${secret}x` })],
    ['a literal API key', withSink({ type: 'elasticsearch', nodes: 'https://es.example:9200', apiKey: 'abc' })],
    ['a literal HEC token', withSink({ type: 'splunk-hec', url: 'https://splunk.example:8088', token: 'abc' })],
    ['a literal admin token', { config: { sources: [source], admin: { token: 'abc' } } }],
    ['a literal privacy key', { config: { sources: [source], privacy: { key: 'sixteen characters' } } }],
    ['a proxy with a password', { config: { sources: [source], proxy: { url: 'http://u:p@proxy.example:3128' } } }],
    ['an unknown setting of the configuration', { config: { sources: [source], sink: [] } }],
    ['a renamed setting of a source', { config: { sources: [{ ...source, poll: '10s' }] } }],
    ['two replicas', { replicas: 2 }],
    ['an unknown value', { imagePullSecret: [] }],
    ['a volume for many nodes', { persistence: { accessModes: ['ReadWriteMany'] } }],
    ['a state outside of the volume', { config: { sources: [source], dataDir: './state' } }],
    ['an address that the probes cannot reach', { config: { sources: [source], admin: { listen: '127.0.0.1:9464' } } }],
  ])('refuses %s', (_, given) => {
    expect(accepts({ ...(parse(values) as object), ...given })).toBe(false);
  });
});
