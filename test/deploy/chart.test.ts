/**
 * The chart rendered by Helm, and its objects checked against the schemas of Kubernetes and of the
 * Prometheus operator.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { cacheFolder } from '../support/servers/programs.ts';
import { notRun, programPath, run } from './programs.ts';

const root = resolve(import.meta.dirname, '../..');
const chart = join(root, 'helm/waybill');
const examples = readdirSync(join(chart, 'examples'));
const example = (name: string): string => join(chart, 'examples', name);
const helm = programPath('helm', 'helm-4.3.1') ?? '';
const kubeconform = programPath('kubeconform', 'kubeconform-0.8.0') ?? '';
const schemas = join(cacheFolder(), 'kubernetes-schemas-1.37.0');
const crds = join(cacheFolder(), 'prometheus-operator-0.92.0');
const cnpg = join(cacheFolder(), 'cloudnative-pg-1.27.0');
const skipped = notRun({ helm, kubeconform, schemas, crds, cnpg });

type KubeObject = Record<string, unknown> & {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: Record<string, never>;
};

describe('the chart', () => {
  beforeEach(({ skip }) => {
    if (skipped !== undefined) skip(skipped);
  });

  const work = mkdtempSync(join(tmpdir(), 'waybill-chart-'));
  beforeAll(() => (skipped === undefined ? writeCustomSchemas(work) : undefined));
  afterAll(() => rmSync(work, { recursive: true }));

  const render = (values: string, ...args: readonly string[]) =>
    run(helm, ['template', 'waybill', chart, '--namespace', 'audit', '--values', values, ...args]);
  const objects = (values: string, ...args: readonly string[]): readonly KubeObject[] => {
    const { ok, text } = render(values, ...args);
    if (!ok) throw new Error(text);
    return parseAllDocuments(text).flatMap((document) => (document.contents === null ? [] : [document.toJS() as KubeObject]));
  };
  const find = (all: readonly KubeObject[], kind: string): KubeObject => {
    const found = all.find((object) => object.kind === kind);
    if (!found) throw new Error(`the chart renders no ${kind}`);
    return found;
  };
  const valuesFile = (name: string, values: object): string => {
    const path = join(work, `${name}.yaml`);
    writeFileSync(path, JSON.stringify(values));
    return path;
  };
  const source = (parse(readFileSync(example('elasticsearch.yaml'), 'utf8')) as { config: { sources: readonly object[] } }).config
    .sources[0];
  const conform = (text: string, version: string) =>
    run(
      kubeconform,
      [
        ...['-strict', '-summary', '-output', 'json', '-kubernetes-version', version],
        ...['-schema-location', join(schemas, `v${version}-strict/{{ .ResourceKind }}{{ .KindSuffix }}.json`)],
        ...['-schema-location', join(work, '{{ .ResourceKind }}.json'), '-'],
      ],
      text,
    );
  const fleetConfig = { database: 'postgres://waybill@db.example/audit' };
  const minimalValues = { secrets: ['waybill'], config: { sources: [source] } };
  const minimal = valuesFile('minimal', minimalValues);

  it.each(['the defaults', ...examples])('helm lint --strict accepts %s', (name) => {
    const args = name === 'the defaults' ? [] : ['--values', example(name)];
    const { ok, text } = run(helm, ['lint', '--strict', chart, ...args]);
    expect(ok, text).toBe(true);
    expect(text).not.toMatch(/\[(WARNING|ERROR)\]/);
  });

  it.each(['only a source', ...examples].flatMap((name) => ['1.29.0', '1.36.0'].map((version) => [name, version] as const)))(
    '%s renders objects that Kubernetes %s knows',
    (name, version) => {
      const { ok, text } = render(name === 'only a source' ? minimal : example(name));
      expect(ok, text).toBe(true);
      const checked = conform(text, version);
      expect(checked.ok, checked.text).toBe(true);
      const { summary } = JSON.parse(checked.text) as { summary: Record<string, number> };
      expect(summary).toMatchObject({ invalid: 0, errors: 0, skipped: 0 });
      expect(summary['valid']).toBeGreaterThanOrEqual(5);
    },
  );

  it.each([
    { apiVersion: 'v1', kind: 'Service', metadata: { name: 'x' }, spec: { ports: [{ port: 1 }], portz: [] } },
    {
      apiVersion: 'monitoring.coreos.com/v1',
      kind: 'ServiceMonitor',
      metadata: { name: 'x' },
      spec: { selector: {}, endpoints: [{ prot: 'x' }] },
    },
  ])('the check of objects refuses an unknown field of a $kind', (object) => {
    const { ok, text } = conform(JSON.stringify(object), '1.36.0');
    expect(ok).toBe(false);
    expect(text).toMatch(/additional properties '(portz|prot)' not allowed/);
  });

  it('renders the same objects each time', () => {
    for (const name of examples) expect(render(example(name)).text).toBe(render(example(name)).text);
  });

  it('refuses a configuration without a source, and a literal secret', () => {
    expect(run(helm, ['template', 'waybill', chart]).text).toContain('config.sources names no source');
    const literal = { ...source, auth: { ...(source as { auth: object }).auth, clientSecret: 'hunter2' } };
    const refused = render(valuesFile('literal', { config: { sources: [literal] } }));
    expect(refused.ok).toBe(false);
    expect(refused.text).toContain("'/config/sources/0/auth/clientSecret'");
  });

  it.each<[string, object, RegExp]>([
    [
      'a secret that is not mounted',
      { secrets: ['other'], config: { sources: [source] } },
      /secrets does not name "waybill": config reads \$\{file:\/run\/secrets\/waybill\/… \(secrets: \[other\]\)/,
    ],
    [
      'a journal that is larger than its volume',
      { config: { sources: [source], journal: { maxSize: '50GiB' } } },
      /persistence\.size is 12Gi, less than config\.journal\.maxSize \(50GiB\)/,
    ],
    [
      'a grace period that ends first',
      { terminationGracePeriodSeconds: 10 },
      /terminationGracePeriodSeconds is 10: .* config\.shutdownTimeout \(20s\)/,
    ],
    ['a fleet without its database', { fleet: { enabled: true, setup: { enabled: false } } }, /fleet\.enabled needs config\.fleet/],
    [
      'a fleet with a volume',
      {
        config: { sources: [source], fleet: fleetConfig },
        fleet: { enabled: true, setup: { enabled: false } },
        persistence: { existingClaim: 'x' },
      },
      /persistence\.existingClaim and requireState are for one process/,
    ],
    [
      'a setup without an administrator',
      { config: { sources: [source], fleet: fleetConfig }, fleet: { enabled: true } },
      /fleet\.setup\.existingSecret is empty/,
    ],
    ['a database for one pod', { config: { sources: [source], fleet: fleetConfig } }, /config\.fleet needs no volume: set fleet\.enabled/],
    ['two configurations', { existingConfigMap: 'mine', config: { sources: [source] } }, /existingConfigMap replaces config/],
  ])('refuses %s', (_, values, reason) => {
    const refused = render(valuesFile('contradiction', { ...minimalValues, ...values }));
    expect(refused.ok).toBe(false);
    expect(refused.text).toMatch(reason);
  });

  it('runs one pod that the restricted pod security standard admits, with its state on a volume', () => {
    const { spec } = find(objects(minimal), 'StatefulSet') as unknown as { spec: StatefulSet };
    const pod = spec.template.spec;
    expect(spec).toMatchObject({
      replicas: 1,
      podManagementPolicy: 'Parallel',
      persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Retain' },
    });
    expect(pod).toMatchObject({
      automountServiceAccountToken: false,
      securityContext: {
        runAsNonRoot: true,
        runAsUser: 10001,
        fsGroupChangePolicy: 'OnRootMismatch',
        seccompProfile: { type: 'RuntimeDefault' },
      },
    });
    expect(pod.containers).toHaveLength(1);
    const [container] = pod.containers;
    expect(container).toMatchObject({
      securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
      startupProbe: { httpGet: { path: '/healthz' } },
      livenessProbe: { httpGet: { path: '/healthz' } },
      readinessProbe: { httpGet: { path: '/healthz' } },
    });
    expect(container?.volumeMounts.filter((mount) => 'subPath' in mount)).toEqual([]);
    expect(container?.volumeMounts).toContainEqual({ name: 'state', mountPath: '/var/lib/waybill' });
    expect(pod.volumes.filter((volume) => 'hostPath' in volume)).toEqual([]);
    expect(spec.volumeClaimTemplates).toHaveLength(1);
  });

  it('creates no disruption budget, and publishes the address of a pod that is not ready', () => {
    const all = objects(example('elasticsearch.yaml'));
    expect(all.map(({ kind }) => kind)).not.toContain('PodDisruptionBudget');
    expect(find(all, 'Service').spec).toMatchObject({ publishNotReadyAddresses: true });
  });

  it('runs a fleet as equal pods without a volume, after a job that sets up its database', () => {
    const all = objects(example('fleet.yaml'));
    const kinds = all.map(({ kind }) => kind);
    expect(kinds).not.toContain('StatefulSet');
    expect(kinds).not.toContain('PersistentVolumeClaim');
    const { spec } = find(all, 'Deployment') as unknown as { spec: StatefulSet };
    expect(spec).toMatchObject({ replicas: 3, strategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 1, maxSurge: 1 } } });
    const pod = spec.template.spec as StatefulSet['template']['spec'] & {
      readonly topologySpreadConstraints: readonly { topologyKey: string; labelSelector: { matchLabels: object } }[];
      readonly containers: readonly { readonly args: readonly string[] }[];
    };
    expect(pod.volumes).toContainEqual({ name: 'state', emptyDir: { sizeLimit: '6Gi' } });
    expect(pod.containers[0]).toMatchObject({
      args: ['run', '--config=/etc/waybill/config/waybill.yaml'],
      startupProbe: { httpGet: { path: '/healthz' } },
      livenessProbe: { httpGet: { path: '/healthz' } },
      readinessProbe: { httpGet: { path: '/healthz' } },
    });
    const { labels } = spec.template.metadata;
    const selected = pod.topologySpreadConstraints.map(({ labelSelector }) => labelSelector.matchLabels);
    expect(pod.topologySpreadConstraints.map(({ topologyKey }) => topologyKey)).toEqual([
      'kubernetes.io/hostname',
      'topology.kubernetes.io/zone',
    ]);
    for (const each of selected) expect(labels).toMatchObject(each);
    const budget = find(all, 'PodDisruptionBudget').spec as unknown as { selector: { matchLabels: object } };
    expect(budget).toMatchObject({ maxUnavailable: 1, unhealthyPodEvictionPolicy: 'AlwaysAllow' });
    expect(labels).toMatchObject(budget.selector.matchLabels);
    expect(find(all, 'NetworkPolicy').spec['egress']).toContainEqual({
      ports: [{ port: 5432, protocol: 'TCP' }],
      to: [{ podSelector: { matchLabels: { 'cnpg.io/cluster': 'audit' } } }],
    });

    const job = find(all, 'Job') as unknown as { metadata: { annotations: object }; spec: { template: StatefulSet['template'] } };
    expect(job.metadata.annotations).toMatchObject({ 'helm.sh/hook': 'pre-install,pre-upgrade' });
    // Neither service, network policy nor disruption budget takes it for a member.
    expect(job.spec.template.metadata.labels['app.kubernetes.io/name']).not.toBe(labels['app.kubernetes.io/name']);
    expect(job.spec.template.spec.containers[0]).toMatchObject({
      args: ['setup', 'postgres', '--config=/etc/waybill/config/waybill.yaml', '--shards=16', '--reader=waybill_read', '--yes'],
      env: [{ name: 'WAYBILL_SETUP_DATABASE', valueFrom: { secretKeyRef: { name: 'audit-app', key: 'uri' } } }],
    });
    const configOf = (name: string): unknown => all.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === name)?.['data'];
    expect(configOf('waybill-setup')).toEqual(configOf('waybill'));
  });

  it('the example of a fleet uses the database, users and secrets of the manifest of CloudNativePG, which its schema accepts', () => {
    const text = readFileSync(join(root, 'deploy/kubernetes/cloudnative-pg.yaml'), 'utf8');
    const checked = conform(text, '1.36.0');
    expect(checked.ok, checked.text).toBe(true);
    expect(JSON.parse(checked.text)).toMatchObject({ summary: { valid: 2, skipped: 0 } });
    const [secret, cluster] = parseAllDocuments(text).map((document) => document.toJS() as KubeObject) as [KubeObject, KubeObject];
    const { bootstrap, managed } = cluster.spec as unknown as {
      bootstrap: { initdb: { database: string } };
      managed: { roles: readonly { name: string; passwordSecret?: object }[] };
    };
    const values = parse(readFileSync(example('fleet.yaml'), 'utf8')) as {
      secrets: readonly string[];
      config: { fleet: { database: string; password: string } };
      fleet: { setup: { existingSecret: string; reader: string } };
      extraVolumes: readonly { secret: { secretName: string } }[];
    };
    const { username, hostname, pathname } = new URL(values.config.fleet.database);
    expect([hostname, pathname]).toEqual([`${cluster.metadata.name}-rw`, `/${bootstrap.initdb.database}`]);
    expect(managed.roles.map(({ name }) => name)).toEqual([username, values.fleet.setup.reader]);
    expect(managed.roles[0]?.passwordSecret).toEqual({ name: secret.metadata.name });
    expect(values.config.fleet.password).toBe(`\${file:/run/secrets/${secret.metadata.name}/password}`);
    expect(values.secrets).toContain(secret.metadata.name);
    // The operator names these Secrets after the cluster.
    expect(values.fleet.setup.existingSecret).toBe(`${cluster.metadata.name}-app`);
    expect(values.extraVolumes.map((volume) => volume.secret.secretName)).toEqual([`${cluster.metadata.name}-ca`]);
  });

  it('gives the pod a configuration that `check --offline` accepts, with the CA of its ConfigMap', () => {
    const all = objects(example('elasticsearch.yaml'));
    const { data } = all.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === 'waybill') as unknown as {
      data: Record<string, string>;
    };
    const config = parse(data['waybill.yaml'] ?? '') as Record<string, unknown>;
    expect(config).toMatchObject({ dataDir: '/var/lib/waybill/state', admin: { listen: '[::]:9464' }, tls: { ca: '/etc/waybill/ca' } });
    const file = join(work, 'waybill.yaml');
    writeFileSync(file, JSON.stringify({ ...config, tls: undefined }));
    const checked = run(process.execPath, [join(root, 'bin/waybill.js'), 'check', '--offline', '--config', file]);
    expect(checked.ok, checked.text).toBe(true);
  });

  it('restarts the pod for a changed configuration only with rollOnConfigChange', () => {
    const checksum = (...args: readonly string[]): unknown =>
      (find(objects(minimal, ...args), 'StatefulSet') as unknown as { spec: StatefulSet }).spec.template.metadata.annotations[
        'checksum/config'
      ];
    const roll = ['--set', 'rollOnConfigChange=true'];
    expect(checksum(...roll)).not.toBe(checksum(...roll, '--set', 'config.log.level=debug'));
    expect(checksum()).toBeUndefined();
  });

  it('installs each alert but the disabled ones, with the labels of the values', () => {
    const groups = (path: string): readonly { rules: readonly { alert: string; expr: string; labels: object }[] }[] =>
      (parse(readFileSync(path, 'utf8')) as { groups: never }).groups;
    const [expected] = groups(join(root, 'content/prometheus/alerts.yaml'));
    const [rendered] = find(objects(example('elasticsearch.yaml')), 'PrometheusRule').spec['groups'] as unknown as ReturnType<
      typeof groups
    >;
    const others = expected?.rules.filter(({ alert }) => alert !== 'WaybillFreshState') ?? [];
    expect(others.length).toBeGreaterThan(8);
    expect(rendered?.rules).toEqual(others.map((rule) => ({ ...rule, labels: { ...rule.labels, team: 'security-operations' } })));
  });

  it('follows admin.tls in probes, service and monitor', () => {
    const all = objects(example('openshift.yaml'));
    const { spec } = find(all, 'StatefulSet') as unknown as { spec: StatefulSet };
    expect(spec.template.spec.containers[0]?.livenessProbe).toMatchObject({ httpGet: { scheme: 'HTTPS' } });
    expect(spec.template.spec.securityContext).toEqual({
      runAsNonRoot: true,
      fsGroupChangePolicy: 'OnRootMismatch',
      seccompProfile: { type: 'RuntimeDefault' },
    });
    expect(find(all, 'ServiceMonitor').spec).toMatchObject({ endpoints: [{ scheme: 'https' }] });
  });

  it('says after the installation which command to run next, and warns of a state without a volume', () => {
    const notes = (...args: readonly string[]): string =>
      run(helm, ['install', 'waybill', chart, '--dry-run=client', '--values', minimal, ...args]).text.split('NOTES:')[1] ?? '';
    expect(notes()).toContain('waybill check');
    expect(notes()).not.toContain('WARNING');
    expect(notes('--set', 'persistence.enabled=false')).toContain('WARNING: persistence.enabled is false');
    expect(notes('--set', 'config.sources[0].start=24h')).toContain('WARNING');
  });
});

interface StatefulSet {
  readonly volumeClaimTemplates: readonly object[];
  readonly template: {
    readonly metadata: { readonly annotations: Readonly<Record<string, string>>; readonly labels: Readonly<Record<string, string>> };
    readonly spec: {
      readonly securityContext: object;
      readonly volumes: readonly object[];
      readonly containers: readonly { readonly livenessProbe: object; readonly volumeMounts: readonly object[] }[];
    };
  };
}

/**
 * Writes the schemas of the custom resources for kubeconform: an unknown field is an error, as
 * `-strict` makes it for the others.
 */
function writeCustomSchemas(folder: string): void {
  for (const path of [crds, cnpg].flatMap((from) => readdirSync(from).map((name) => join(from, name)))) {
    const { spec } = parse(readFileSync(path, 'utf8')) as {
      spec: { names: { kind: string }; versions: readonly { schema: { openAPIV3Schema: object } }[] };
    };
    const schema = spec.versions[0]?.schema.openAPIV3Schema ?? {};
    writeFileSync(join(folder, `${spec.names.kind.toLowerCase()}.json`), JSON.stringify(closed(schema)));
  }
}

function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== 'object' || schema === null) return schema;
  const inner = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, closed(value)]));
  const isOpen = 'x-kubernetes-preserve-unknown-fields' in schema || 'additionalProperties' in schema;
  // A field may be named "properties" or "type": only both together describe an object.
  return 'properties' in schema && 'type' in schema && schema.type === 'object' && !isOpen
    ? { ...inner, additionalProperties: false }
    : inner;
}
