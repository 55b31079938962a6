/**
 * Applies the chart and the sidecar to a real Kubernetes API server on this machine: a strict
 * server-side dry run of every object, then `helm install`, `upgrade` and `uninstall`. No
 * controllers run, so no pod starts, and hooks are left out. Needs `test/deploy/install.sh kube-apiserver helm crds`. Takes
 * about a minute.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseAllDocuments } from 'yaml';
import { cacheFolder } from '../support/servers/programs.ts';
import { programPath, run } from './programs.ts';

const root = resolve(import.meta.dirname, '../..');
const chart = join(root, 'helm/waybill');
const crds = join(cacheFolder(), 'prometheus-operator-0.92.0');
const namespace = 'audit';

interface KubeObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
}
interface Answer {
  readonly status: number;
  readonly warning: string | undefined;
  readonly body: { readonly message?: string; readonly resources?: readonly { kind: string; name: string; namespaced: boolean }[] };
}

function installed(name: string, inCache: string): string {
  const path = programPath(name, inCache);
  if (path === undefined) throw new Error(`a program is missing: test/deploy/install.sh ${name}`);
  return path;
}
const helm = installed('helm', 'helm-4.3.1');
const apiServer = installed('kube-apiserver', 'kube-apiserver-1.36.3');
const etcd = installed('etcd', '.');

const work = mkdtempSync(join(tmpdir(), 'waybill-api-server-'));
const processes: ChildProcess[] = [];
let failures = 0;
try {
  const server = await start();
  await server.create('/api/v1/namespaces', {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: {
      name: namespace,
      labels: { 'pod-security.kubernetes.io/enforce': 'restricted', 'pod-security.kubernetes.io/warn': 'restricted' },
    },
  });
  for (const name of readdirSync(crds)) {
    await server.create(
      '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
      parseAllDocuments(readFileSync(join(crds, name), 'utf8'))[0]?.toJS(),
    );
  }
  await server.until('/apis/monitoring.coreos.com/v1', ({ body }) => (body.resources?.length ?? 0) > 1);

  const examples = readdirSync(join(chart, 'examples'));
  for (const name of examples) {
    console.log(`\n== ${name}, dry run`);
    const rendered = run(helm, ['template', 'waybill', chart, '-n', namespace, '-f', join(chart, 'examples', name)]);
    if (!rendered.ok) throw new Error(rendered.text);
    await server.dryRun(rendered.text);
  }
  console.log('\n== sidecar, dry run (the container of the application, which is not ours, may violate the standard)');
  await server.dryRun(readFileSync(join(root, 'deploy/kubernetes/sidecar.yaml'), 'utf8'), 'default');
  console.log('\n== a wrong port is refused');
  const wrong = await server.apply(
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'x' },
      spec: { containers: [{ name: 'x', image: 'x', ports: [{ containerPort: 70000 }] }] },
    },
    'default',
  );
  expect(wrong.status === 422, `the server answers ${wrong.status} to a port of 70000: ${wrong.body.message ?? ''}`);

  const kubeconfig = server.kubeconfig();
  for (const name of examples) {
    console.log(`\n== ${name}: install, upgrade, uninstall`);
    const values = ['-n', namespace, '--kubeconfig', kubeconfig, '-f', join(chart, 'examples', name), '--no-hooks'];
    // No controller completes the setup job of a fleet.
    // The labels of the pod may change, but no field that the API server treats as immutable.
    for (const args of [
      ['install', 'waybill', chart, ...values],
      ['upgrade', 'waybill', chart, ...values, '--set', 'podLabels.changed=yes', '--set', 'terminationGracePeriodSeconds=45'],
      ['rollback', 'waybill', '1', '-n', namespace, '--kubeconfig', kubeconfig, '--no-hooks'],
      ['uninstall', 'waybill', '-n', namespace, '--kubeconfig', kubeconfig, '--no-hooks'],
    ]) {
      const { ok, text } = run(helm, args);
      expect(ok && !/warning|would violate/i.test(text.replaceAll(/^WARNING: .*$/gm, '')), `helm ${args[0] ?? ''}: ${ok ? 'ok' : text}`);
    }
  }
} finally {
  // The API server first: its orderly shutdown waits for etcd.
  for (const child of processes.reverse()) {
    child.kill('SIGTERM');
    if (child.exitCode === null) await once(child, 'exit');
  }
  if (failures === 0) rmSync(work, { recursive: true });
  else console.log(`logs: ${work}`);
}
process.exitCode = failures === 0 ? 0 : 1;

function expect(holds: boolean, message: string): void {
  if (!holds) failures++;
  console.log(holds ? 'ok  ' : 'FAIL', message);
}

async function start() {
  const [port, etcdPort, peerPort] = [await freePort(), await freePort(), await freePort()];
  const token = randomBytes(16).toString('hex');
  const file = (name: string, text: string): string => {
    writeFileSync(join(work, name), text, { mode: 0o600 });
    return join(work, name);
  };
  const { ok, text } = run('openssl', ['genrsa', '-out', join(work, 'sa.key'), '2048']);
  if (!ok) throw new Error(text);
  const launch = (program: string, args: readonly string[]): void => {
    const log = openSync(join(work, `${program.split('/').at(-1) ?? ''}.log`), 'w');
    processes.push(spawn(program, args, { stdio: ['ignore', log, log] }));
  };
  const etcdUrl = `http://127.0.0.1:${etcdPort}`;
  launch(etcd, [
    ...['--data-dir', join(work, 'etcd'), '--listen-client-urls', etcdUrl, '--advertise-client-urls', etcdUrl],
    ...['--listen-peer-urls', `http://127.0.0.1:${peerPort}`, '--initial-advertise-peer-urls', `http://127.0.0.1:${peerPort}`],
    ...['--initial-cluster', `default=http://127.0.0.1:${peerPort}`],
  ]);
  launch(apiServer, [
    ...[`--etcd-servers=${etcdUrl}`, '--bind-address=127.0.0.1', '--advertise-address=127.0.0.1', `--secure-port=${port}`],
    ...[`--cert-dir=${join(work, 'certs')}`, `--token-auth-file=${file('tokens.csv', `${token},admin,admin,system:masters`)}`],
    ...['--authorization-mode=RBAC', '--service-account-issuer=https://kubernetes.default.svc', '--service-cluster-ip-range=10.0.0.0/24'],
    ...[`--service-account-key-file=${join(work, 'sa.key')}`, `--service-account-signing-key-file=${join(work, 'sa.key')}`],
    '--disable-admission-plugins=ServiceAccount',
  ]);

  const ask = (method: string, path: string, body?: unknown, type = 'application/json'): Promise<Answer> =>
    new Promise((resolveAnswer, reject) => {
      const headers = { authorization: `Bearer ${token}`, ...(body === undefined ? {} : { 'content-type': type }) };
      const asked = request({ host: '127.0.0.1', port, method, path, headers, rejectUnauthorized: false }, (response) => {
        let received = '';
        response.setEncoding('utf8').on('data', (chunk: string) => {
          received += chunk;
        });
        response.on('end', () => {
          const { warning } = response.headers;
          resolveAnswer({ status: response.statusCode ?? 0, warning: warning?.toString(), body: bodyOf(received) });
        });
      });
      asked.on('error', reject).end(body === undefined ? undefined : JSON.stringify(body));
    });
  const until = async (path: string, holds: (answer: Answer) => boolean): Promise<void> => {
    for (const deadline = Date.now() + 300_000; Date.now() < deadline;) {
      const answer = await ask('GET', path).catch(() => undefined);
      if (answer?.status === 200 && holds(answer)) return;
      await wait(200);
    }
    throw new Error(`the API server does not answer ${path} within 5 min: see ${work}`);
  };
  const apply = async (object: KubeObject & Record<string, unknown>, inNamespace: string): Promise<Answer> => {
    const group = object.apiVersion.includes('/') ? `/apis/${object.apiVersion}` : `/api/${object.apiVersion}`;
    const kind = (await ask('GET', group)).body.resources?.find(({ kind, name }) => kind === object.kind && !name.includes('/'));
    if (!kind) return { status: 404, warning: undefined, body: { message: `the server has no ${object.kind}` } };
    const within = kind.namespaced ? `/namespaces/${object.metadata.namespace ?? inNamespace}` : '';
    const query = 'fieldManager=test&force=true&dryRun=All&fieldValidation=Strict';
    return ask('PATCH', `${group}${within}/${kind.name}/${object.metadata.name}?${query}`, object, 'application/apply-patch+yaml');
  };
  await until('/readyz', () => true);
  return {
    until,
    apply,
    create: async (path: string, object: unknown) => {
      const { status, body } = await ask('POST', path, object);
      if (status !== 201) throw new Error(`cannot create an object at ${path}: ${status} ${body.message ?? ''}`);
    },
    dryRun: async (rendered: string, inNamespace = namespace) => {
      for (const document of parseAllDocuments(rendered)) {
        const object = document.toJS() as (KubeObject & Record<string, unknown>) | null;
        if (!object) continue;
        const { status, warning, body } = await apply(object, inNamespace);
        const fine = status <= 201 && warning === undefined;
        expect(fine, `${object.kind} ${object.metadata.name} ${status} ${fine ? '' : `${body.message ?? ''} ${warning ?? ''}`}`);
      }
    },
    kubeconfig: () =>
      file(
        'kubeconfig',
        JSON.stringify({
          apiVersion: 'v1',
          kind: 'Config',
          clusters: [{ name: 'test', cluster: { server: `https://127.0.0.1:${port}`, 'insecure-skip-tls-verify': true } }],
          users: [{ name: 'admin', user: { token } }],
          contexts: [{ name: 'test', context: { cluster: 'test', user: 'admin' } }],
          'current-context': 'test',
        }),
      ),
  };
}

function bodyOf(text: string): Answer['body'] {
  try {
    return JSON.parse(text) as Answer['body'];
  } catch {
    return { message: text.trim() };
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
