/**
 * Starts the reference service: people, records, certificates, identity provider, API, control
 * port. It prints its addresses and runs until a signal ends it.
 */
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { Agent } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Activity } from './activity/activity.ts';
import type { Service as ClientsView } from './activity/caller.ts';
import { ServiceClock } from './clock.ts';
import { Api, apiRoot } from './http/api.ts';
import { certificatesIn } from './http/certificates.ts';
import { DataFile } from './data-file.ts';
import { ControlServer } from './http/control.ts';
import { Faults } from './http/faults.ts';
import { logsEndpoints } from './logs/endpoints.ts';
import { Feed } from './logs/feed.ts';
import { payloadEndpoints } from './payloads/endpoints.ts';
import { Payloads } from './payloads/payloads.ts';
import { policyEndpoints } from './policies/endpoints.ts';
import { Policies } from './policies/policies.ts';
import { peopleEndpoints } from './people/endpoints.ts';
import { Users } from './people/users.ts';
import { IdentityProvider } from './people/identity-provider.ts';
import { openApiOf } from './http/openapi.ts';
import { Limits } from './http/limits.ts';
import { Logs } from './logs/logs.ts';
import type { Options } from './options.ts';
import { organizationOf, type Organization } from './people/organization.ts';
import { ServiceServer } from './http/server.ts';
import { Stats } from './http/stats.ts';
import { Store } from './logs/store.ts';
import { BadValue } from './values.ts';

interface Addresses {
  readonly baseUrl: string;
  readonly authUrl: string;
  readonly ca: string;
  readonly control: string;
}

/**
 * Serves until the signal is aborted.
 * @param print  receives the addresses when it listens: one line of JSON with `json`, else text
 */
export async function serve(options: Options, signal: AbortSignal, print: (text: string) => void): Promise<void> {
  const { values } = options.switches;
  const clock = new ServiceClock(options.clock);
  await using release = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), 'reference-service-'));
  release.defer(() => rmSync(folder, { recursive: true, force: true }));

  const organization = organizationOf(options.seed);
  const data = new DataFile(options.data ?? join(folder, 'data.db'), options.data !== undefined);
  release.defer(() => data.close());
  checkSeed(data, options);
  const users = new Users(data, organization, options.seed);
  const store = new Store(data);
  const feed = new Feed(clock, data, store, values, organization, options.seed);
  if (store.isEmpty() && options.records > 0) await feed.fill(options.records, options.spanMs, progressOf(options.records), signal);

  await store.load(signal);

  const certificates = await naming('tls-dir', certificatesIn(options.tlsDir ?? folder));
  const server = new ServiceServer(certificates);
  const port = await naming('port', server.listen(options.port));
  release.defer(() => server.close());
  const authUrl = `https://127.0.0.1:${port}`;
  const provider = new IdentityProvider(clock, organization, data, users, values, authUrl);
  const logs = new Logs(clock, store, values, options.seed);
  const stats = new Stats();
  const parts = { data, payloads: new Payloads(data, users), policies: new Policies(data), feed };
  const endpoints = [
    ...payloadEndpoints(parts, values),
    ...policyEndpoints(parts, users),
    ...peopleEndpoints(users),
    ...logsEndpoints(logs),
  ];
  const api = new Api({ organization, provider, limits: new Limits(clock, values), values, endpoints });
  const description = Buffer.from(JSON.stringify(openApiOf(endpoints, apiRoot)));
  server.open({ clock, provider, api, faults: new Faults(values, options.seed), stats, values, description });

  const control = new ControlServer({ clock, switches: options.switches, organization, users, provider, logs, feed, stats });
  const controlPort = await naming('control-port', control.listen(options.controlPort));
  release.defer(() => control.close());
  feed.start();
  release.defer(() => feed.stop());

  const people = new Activity(values, users, clientsView(organization, authUrl, certificates.caFile), options.seed);
  people.start();
  release.defer(() => people.stop());

  const addresses = { baseUrl: authUrl + apiRoot, authUrl, ca: certificates.caFile, control: `http://127.0.0.1:${controlPort}` };
  print(options.json ? startLine(addresses, organization, people.lists) : startText(addresses, organization, logs.counts().visible));
  if (!signal.aborted) await once(signal, 'abort');
}

/** The service as its clients see it. */
function clientsView(organization: Organization, authUrl: string, caFile: string): ClientsView {
  return {
    baseUrl: authUrl + apiRoot,
    tokenUrl: `${authUrl}/${organization.tenantId}/oauth2/v2.0/token`,
    scope: `api://${organization.scopeAddress}/access_as_user`,
    clientId: organization.publicClientId,
    subscriptionKey: organization.subscriptionKey,
    agent: new Agent({ ca: readFileSync(caFile, 'utf8'), keepAlive: true }),
  };
}

/** Adds the name of the option to an error. */
async function naming<T>(option: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw new Error(`--${option}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}

function checkSeed(data: DataFile, options: Options): void {
  const before = data.fact('seed');
  if (before !== undefined && before !== options.seed) {
    throw new BadValue(`--data: the file was created with --seed ${before}; it cannot be used with --seed ${options.seed}`);
  }
  data.setFact('seed', options.seed);
}

function progressOf(count: number): (done: number) => void {
  return (done) => {
    if (process.stderr.isTTY) process.stderr.write(`\r${done} of ${count} records${done === count ? '\n' : ''}`);
  };
}

function startLine(addresses: Addresses, organization: Organization, lists: Activity['lists']): string {
  const { tenantId, scopeAddress, subscriptionKey, publicClientId } = organization;
  const line = {
    baseUrl: addresses.baseUrl,
    authUrl: addresses.authUrl,
    tenantId,
    scopeAddress,
    subscriptionKey,
    ca: addresses.ca,
    control: addresses.control,
    clients: organization.clients.map(({ clientId, clientSecret, person }) => {
      return { clientId, clientSecret, userId: person.userId, roles: person.roles };
    }),
    users: organization.accounts.map(({ username, password, person }) => {
      return { userId: person.userId, username, password, clientId: publicClientId, roles: person.roles };
    }),
    lists,
  };
  return `${JSON.stringify(line)}\n`;
}

function startText(addresses: Addresses, organization: Organization, visible: number): string {
  const auditor = organization.clients.find((client) => client.person.roles.includes('Security Administrator'));
  return [
    `The reference service is listening, with ${visible} audit records`,
    '',
    `  base address      ${addresses.baseUrl}`,
    `  token endpoint    ${addresses.authUrl}/${organization.tenantId}/oauth2/v2.0/token`,
    `  tenant id         ${organization.tenantId}`,
    `  scope address     ${organization.scopeAddress}`,
    `  subscription key  ${organization.subscriptionKey}`,
    `  authority         ${addresses.ca}`,
    `  control           ${addresses.control}`,
    `  client            ${auditor?.clientId ?? ''} (Security Administrator), secret ${auditor?.clientSecret ?? ''}`,
    '',
    'All credentials are generated from the seed; --json prints the credentials of every role. Ctrl-C ends the service.',
    '',
  ].join('\n');
}
