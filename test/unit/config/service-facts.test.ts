import { expect, test } from 'vitest';
import type { Config, SinkConfig } from '../../../src/config/load.ts';
import { factsOf, settingsOf, settingsOfRemoved } from '../../../src/config/service-facts.ts';
import { load, valid } from '../../support/config/loading.ts';

const key = 'a key of sixteen or more';
const rule = (action: string): string => `rules: [{ fields: [userEmailAddress], action: ${action} }]`;

async function loaded(
  parts: Parameters<typeof valid>[0],
): Promise<{ config: Config; sink: SinkConfig; source: Config['sources'][number] }> {
  const { config } = await load(valid(parts));
  const [sink] = config.sinks;
  const [source] = config.sources;
  if (!sink || !source) throw new Error('the configuration has neither source nor sink');
  return { config, sink, source };
}

test('records of a removed source are normalized as before its removal', async () => {
  const { config, sink, source } = await loaded({
    top: `privacy: { key: "${key}" }`,
    source: `privacy: { ${rule('pseudonymize')} }\nobserver: { vendor: Acme }`,
  });
  const facts = factsOf(source, config);
  expect(settingsOfRemoved('production', facts, sink, config)).toEqual(settingsOf(source, sink, config));
  // The state stores plain text: no key, no credential.
  expect(JSON.stringify(facts)).not.toContain(key);
  expect(JSON.stringify(facts)).not.toContain('hush');
  expect(JSON.parse(JSON.stringify(facts))).toEqual(facts);
});

test('a pseudonym without its key becomes a mask; the rules of a sink stay in force', async () => {
  const { config, sink, source } = await loaded({ source: `privacy: { key: "${key}", ${rule('pseudonymize')} }` });
  const gone = settingsOfRemoved('production', factsOf(source, config), sink, config);
  expect(gone.privacy.rules).toEqual([{ fields: ['userEmailAddress'], action: 'mask' }]);
  expect(gone.privacy.key).toBeUndefined();
  const strict = await loaded({ sink: `privacy: { ${rule('drop')} }` });
  expect(settingsOfRemoved('production', factsOf(source, config), strict.sink, strict.config).privacy.rules).toEqual([
    { fields: ['userEmailAddress'], action: 'drop' },
  ]);
});

test('a source removed before its first response has the general rules', async () => {
  const { config, sink } = await loaded({ top: `privacy: { ${rule('drop')} }` });
  expect(settingsOfRemoved('production', undefined, sink, config)).toMatchObject({
    tenantId: undefined,
    baseUrl: undefined,
    privacy: { rules: [{ fields: ['userEmailAddress'], action: 'drop' }] },
  });
});

test('events have the data stream that the sink names', async () => {
  const { config, source } = await loaded({});
  const { config: own } = await load(
    valid({ sink: '' }).replace(
      /sinks:[\s\S]*/,
      "sinks:\n  - { id: es, type: elasticsearch, nodes: 'https://es.example', namespace: 'x_{source}' }\n",
    ),
  );
  const [sink] = own.sinks;
  if (!sink) throw new Error('the configuration has no sink');
  expect(settingsOf(source, sink, config)).toMatchObject({ dataset: 'dpas.audit', namespace: 'x_production' });
  expect(settingsOfRemoved('north-1', undefined, sink, config)).toMatchObject({ dataset: 'dpas.audit', namespace: 'x_north_1' });
});
