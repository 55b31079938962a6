import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { command } from '../../../src/cli/commands/setup/index.ts';
import type { Io } from '../../../src/cli/io.ts';

let directory: string;
beforeEach(() => (directory = mkdtempSync(join(tmpdir(), 'waybill-setup-'))));
afterEach(() => {
  rmSync(directory, { recursive: true });
});

async function printed(sink: string, parameters: readonly string[]): Promise<string> {
  const file = join(directory, 'waybill.yaml');
  writeFileSync(
    file,
    `sources:
  - id: production
    baseUrl: https://service.example/v2/api
    auth: { authUrl: 'https://login.example', tenantId: t, clientId: c, clientSecret: s, scopeAddress: a }
sinks:
  - { id: f, type: file, path: ./f }
  - ${sink}
`,
  );
  let text = '';
  const stdout = { write: (part: string) => (text += part) };
  const io = { stdout, stderr: stdout, env: {}, signal: new AbortController().signal } as unknown as Io;
  await command.run([...parameters, '--config', file], io);
  return text;
}

const lake =
  "{ id: lake, type: kafka, brokers: ['kafka-1.example:9092'], topic: 'audit.{source}', sasl: { mechanism: PLAIN, username: alice, password: '${env:NOT_SET}' } }";

test('prints topics, rights and a consumer that reads committed, and needs no secret for it', async () => {
  expect(await printed(lake, ['kafka', '--sink', 'lake', '--print'])).toMatchInlineSnapshot(`
    "# Topics. Choose the partitions of the first; 3 replicas of which 2 are in sync are what the guarantee rests on.
    kafka-topics.sh --bootstrap-server kafka-1.example:9092 --create --if-not-exists --topic audit.production --partitions 6 --replication-factor 3 --config min.insync.replicas=2 --config unclean.leader.election.enable=false
    kafka-topics.sh --bootstrap-server kafka-1.example:9092 --create --if-not-exists --topic waybill-progress-lake --partitions 1 --replication-factor 3 --config cleanup.policy=compact --config segment.bytes=16777216 --config segment.ms=600000 --config min.cleanable.dirty.ratio=0.01 --config min.insync.replicas=2 --config unclean.leader.election.enable=false

    # Rights of the sink "lake". DescribeConfigs lets "waybill check" see what weakens the guarantee.
    kafka-acls.sh --bootstrap-server kafka-1.example:9092 --add --allow-principal 'User:alice' --operation Write --operation Describe --operation DescribeConfigs --topic audit.production
    kafka-acls.sh --bootstrap-server kafka-1.example:9092 --add --allow-principal 'User:alice' --operation Read --operation Write --operation Describe --operation DescribeConfigs --topic waybill-progress-lake
    kafka-acls.sh --bootstrap-server kafka-1.example:9092 --add --allow-principal 'User:alice' --operation Write --operation Describe --transactional-id waybill- --resource-pattern-type prefixed
    kafka-acls.sh --bootstrap-server kafka-1.example:9092 --add --allow-principal 'User:alice' --operation Read --group waybill- --resource-pattern-type prefixed

    # A consumer. It must read committed: any other sees messages of transactions that failed, and sees them again.
    kcat -C -b kafka-1.example:9092 -t audit.production -X isolation.level=read_committed -o beginning -e -f '%k %h %s\\n'
    kafka-console-consumer.sh --bootstrap-server kafka-1.example:9092 --topic audit.production --isolation-level read_committed --from-beginning
    # Of any client of Kafka: isolation.level=read_committed
    "
  `);
});

test('without transactions there is no progress topic and no right to it', async () => {
  const text = await printed(lake.replace('topic:', 'exactlyOnce: false, topic:'), ['kafka', '--sink', 'lake', '--print']);
  expect(text).not.toMatch(/progress|transactional-id|--group/);
  expect(text).toContain('--topic audit.production');
});

describe('the principal of a sink without SASL', () => {
  const withCertificate = (cert: string): string =>
    `{ id: lake, type: kafka, brokers: ['kafka-1.example:9092'], topic: audit, tls: { cert: '${cert}', key: '${cert}.key' } }`;
  const principals = (text: string): Set<string> => new Set([...text.matchAll(/--allow-principal '([^']*)'/g)].map(([, who]) => who ?? ''));

  test.each([
    // Made by OpenSSL; expected as `openssl x509 -subject -nameopt RFC2253` prints it, which is what brokers take (KafkaPrincipalBuilder).
    ['/C=DE/O=Example Ltd, Berlin/OU=SOC/CN=collector.test', 'User:CN=collector.test,OU=SOC,O=Example Ltd\\, Berlin,C=DE'],
    ['/DC=test/DC=example/CN=waybill', 'User:CN=waybill,DC=example,DC=test'],
  ])('is the subject of tls.cert: %s', async (subject, principal) => {
    const cert = join(directory, 'client.pem');
    const made = spawnSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-subj', subject, '-out', cert, '-keyout', `${cert}.key`], { encoding: 'utf8' }); // prettier-ignore
    expect(made.status, made.stderr).toBe(0);
    const second = spawnSync('openssl', ['x509', '-noout', '-subject', '-nameopt', 'RFC2253', '-in', cert], { encoding: 'utf8' });
    const text = await printed(withCertificate(cert), ['kafka', '--sink', 'lake', '--print']);
    expect(principals(text)).toEqual(new Set([principal]));
    expect(`User:${second.stdout.trim().replace(/^subject=/, '')}`).toBe(principal);
    expect(text).toContain('ssl.principal.mapping.rules');
  });

  test('is left open where the file is not there, and is anonymous without a certificate', async () => {
    const text = await printed(withCertificate('/nowhere/client.pem'), ['kafka', '--sink', 'lake', '--print']);
    expect(principals(text)).toEqual(new Set(['User:<subject of tls.cert>']));
    expect(text).toContain('openssl x509 -noout -subject -nameopt RFC2253');
    const bare = await printed("{ id: lake, type: kafka, brokers: ['kafka-1.example:9092'], topic: audit }", [
      'kafka',
      '--sink',
      'lake',
      '--print',
    ]);
    expect(principals(bare)).toEqual(new Set(['User:ANONYMOUS']));
  });
});

test.each([
  [['kafka', '--print'], 'cannot run "setup kafka": missing --sink; see waybill help setup'],
  [['kafka', '--sink', 'f', '--print'], 'cannot find the kafka sink "f": there are lake'],
  [['splunk', '--sink', 'lake'], 'cannot find "setup splunk": there are elasticsearch, kibana, kafka; see waybill help setup'],
  [['--sink', 'lake'], 'missing subcommand: waybill setup elasticsearch|kibana|kafka'],
])('setup %j is refused', async (parameters, message) => {
  await expect(printed(lake, parameters)).rejects.toMatchObject({ code: 'usage', message });
});
