/** `waybill demo`: the reference service as a separate process, the daemon, a file sink whose events are shown, and an archive. */
import { spawn, type ChildProcess } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { accessSync, constants, existsSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { systemClock, systemRandom } from '../../../time/clock.ts';
import { loadConfig } from '../../../config/load.ts';
import { parseDuration } from '../../../settings/units.ts';
import { runDaemon } from '../../../daemon/daemon.ts';
import { messageOf, WaybillError } from '../../../errors/errors.ts';
import { packageFile, programFile } from '../../../disk/files.ts';
import { createLog } from '../../../telemetry/log.ts';
import { version } from '../../../disk/version.ts';
import { readRules } from '../../../detections/rule.ts';
import { parseLists } from '../../../detections/trial.ts';
import { Alerts } from './alerts.ts';
import { PageServer } from './page.ts';
import { DemoScreen } from './screen.ts';
import { defineCommand } from '../../command.ts';
import type { Io } from '../../io.ts';
import { choice, parsed, text, withDefault, type ValuesOf } from '../../option.ts';

const options = {
  port: withDefault(parsed('N', 'port of the admin server; default any free port', 'a port', portOf), '0'),
  for: parsed('DURATION', 'end after this time', 'a duration such as 30s, 5m', parseDuration),
  dir: text('DIR', 'new directory for configuration, state and events; default a temporary one'),
  attack: choice('NAME', ['harvest', 'weakened', 'search'], 'show this attack on protected files, and its alerts'),
};

export const command = defineCommand({
  name: 'demo',
  summary: 'runs everything on this machine with a simulated service, and shows what happens',
  description: `Starts the reference service with simulated people who protect, share and open files (some records arrive late), the daemon, a file sink,
and a signed archive. Shows denials as they arrive, and then the ledger with its proofs. Times are short: windows close after 4 s, and are
recounted after 6 and 12 s. Ctrl-C ends it, and verifies the archive.`,
  notes: `With --attack one of 500 people attacks after some seconds, amid everyday work. The demo then also shows the alerts of the detection rules of
content/rules on the events that the sink received, with names, files and next steps, and at the end what that person did:
  harvest   opens 32 files of others within seconds
  weakened  ends the embargo of 15 files of others, and opens five of them
  search    tries eight files of another team`,
  options,
  examples: ['waybill demo', 'waybill demo --attack harvest', 'waybill demo --for 30s --dir ./demo'],
  run,
});

function portOf(given: string): string | undefined {
  return /^\d{1,5}$/.test(given) && Number(given) <= 65_535 ? given : undefined;
}

/** Output of the reference service when it listens (contract: docs/reference-service.md). */
interface Service {
  readonly baseUrl: string;
  readonly authUrl: string;
  readonly tenantId: string;
  readonly scopeAddress: string;
  readonly subscriptionKey: string;
  readonly ca: string;
  readonly lists: unknown;
  readonly clients: readonly { readonly clientId: string; readonly clientSecret: string; readonly roles: readonly string[] }[];
}

const startMs = 15_000;
const historyMs = 60_000;

async function run(values: ValuesOf<typeof options>, io: Io): Promise<number> {
  const lasts = values.for;
  const directory = createDirectory(values.dir);

  const over = new AbortController();
  const stop = AbortSignal.any([io.signal, over.signal, ...(lasts === undefined ? [] : [AbortSignal.timeout(lasts)])]);
  const screen = new DemoScreen(io, directory);
  screen.say('Starting the reference service and the daemon …');
  const child = startService(values.attack);
  const ended = new Promise<void>((resolveEnd) => child.once('exit', () => resolveEnd()));
  try {
    const service = await listening(child, stop);
    void ended.then(() => {
      if (!stop.aborted) over.abort(new WaybillError('source_unreachable', 'cannot continue the demo: the reference service ended'));
    });
    const file = writeConfiguration(directory, service, values.port);
    const { config } = await loadConfig(file, io.env);
    // The log goes to a file; the terminal shows the demo.
    const logs = createLog(config.log, systemClock, screen.logFile(), io.env);
    const rules = readRules(packageFile('content/rules/'));
    const lists = parseLists(JSON.stringify(service.lists), 'of the reference service', rules);
    const alerts = values.attack === undefined ? undefined : new Alerts(rules, lists);
    screen.begin(service.baseUrl, file, alerts);
    await using page = alerts && new PageServer(() => screen.shownOf(alerts));
    if (page) screen.say(`What an analyst sees: ${await page.listen()}`);
    const showing = screen.show(config, stop).catch((thrown: unknown) => over.abort(thrown));
    const options = { config, version, expectState: false, lockWait: 5_000, clock: systemClock, random: systemRandom, log: logs.root };
    try {
      const failure = await runDaemon({ ...options, listening: (addresses) => screen.listens(addresses) }, stop);
      if (failure !== undefined) over.abort(failure);
    } catch (thrown) {
      over.abort(thrown);
      throw thrown;
    } finally {
      await showing;
      logs.flush();
    }
    if (over.signal.aborted) throw over.signal.reason;
    await screen.end(config);
    await screen.verified(config);
    return 0;
  } catch (thrown) {
    // Stopped before the service listened.
    if (io.signal.aborted && thrown === io.signal.reason) return 0;
    if (isTimeout(thrown) && stop.aborted)
      throw new WaybillError('usage', 'cannot run the demo: --for ended before the reference service listened; use at least 30s');
    throw thrown;
  } finally {
    child.kill('SIGTERM');
    await ended;
  }
}

function createDirectory(given: string | undefined): string {
  try {
    if (given === undefined) return mkdtempSync(join(tmpdir(), 'waybill-demo-'));
    mkdirSync(resolve(given), { recursive: true, mode: 0o700 });
    accessSync(given, constants.W_OK | constants.X_OK);
  } catch (thrown) {
    const what = given === undefined ? `a directory for the demo in "${tmpdir()}", so name one with --dir` : `"${given}" (--dir)`;
    throw new WaybillError('usage', `cannot create ${what}: ${messageOf(thrown)}`, { cause: thrown });
  }
  // Each demo has another service and another key: an earlier state and archive do not continue.
  if (existsSync(join(given, 'waybill.yaml')))
    throw new WaybillError('usage', `cannot run the demo in "${given}" (--dir): it has a waybill.yaml already; name a new directory`);
  return resolve(given);
}

/** The reason of `AbortSignal.timeout`. */
function isTimeout(thrown: unknown): boolean {
  return thrown instanceof DOMException && thrown.name === 'TimeoutError';
}

function startService(attack: string | undefined): ChildProcess {
  const program = fileURLToPath(programFile('reference/main'));
  // An attack is seen among people with habits: records of random people would hide it, and as many actions would be a day in a minute.
  const records =
    attack === undefined
      ? ['--records', '1500', '--span', `${historyMs / 1000}s`, '--activity', '25']
      : ['--activity', '5', '--attack', attack];
  const switches = ['--late-share', '0.05', '--late-delay', '8s', '--sort', 'unstable-ties', '--fault-503', '0.02', '--nodes', '3'];
  // A separate process group: Ctrl-C reaches the daemon first, which then ends the service.
  return spawn(process.execPath, [program, '--json', ...records, ...switches], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    detached: true,
  });
}

async function listening(child: ChildProcess, stop: AbortSignal): Promise<Service> {
  if (!child.stdout) throw new WaybillError('internal_error', 'the reference service was started without an output');
  const lines = createInterface({ input: child.stdout, signal: AbortSignal.any([stop, AbortSignal.timeout(startMs)]) });
  for await (const line of lines) return JSON.parse(line) as Service;
  stop.throwIfAborted();
  throw new WaybillError('source_unreachable', `cannot start the reference service: it did not listen within ${startMs / 1000} s`);
}

function writeConfiguration(directory: string, service: Service, port: string): string {
  const client = service.clients.find(({ roles }) => roles.includes('Security Administrator'));
  if (!client) throw new WaybillError('internal_error', 'the reference service names no client with the role Security Administrator');
  const secret = (name: string, value: string): string => {
    const path = join(directory, name);
    writeFileSync(path, value, { mode: 0o600 });
    return `\${file:${path}}`;
  };
  const config = {
    dataDir: join(directory, 'state'),
    sources: [
      {
        id: 'demo',
        baseUrl: service.baseUrl,
        auth: {
          authUrl: service.authUrl,
          tenantId: service.tenantId,
          clientId: client.clientId,
          clientSecret: secret('client-secret', client.clientSecret),
          scopeAddress: service.scopeAddress,
        },
        subscriptionKey: secret('subscription-key', service.subscriptionKey),
        tls: { ca: service.ca },
        proxy: 'none',
        start: new Date(systemClock.now() - historyMs - 5_000).toISOString(),
        pollInterval: '1s',
        closeDelay: '4s',
        recountAfter: ['6s', '12s'],
        requests: { perSecond: 50 },
      },
    ],
    sinks: [
      { id: 'siem', type: 'file', path: join(directory, 'events.ndjson'), format: 'ecs', batch: { maxWait: '200ms' } },
      {
        id: 'archive',
        type: 'archive',
        directory: join(directory, 'archive'),
        batch: { maxWait: '200ms' },
        signingKey: secret(
          'archive-key.pem',
          generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }).toString(),
        ),
      },
    ],
    admin: { listen: `127.0.0.1:${port}` },
    log: { level: 'info', format: 'pretty' },
    shutdownTimeout: '5s',
  };
  const path = join(directory, 'waybill.yaml');
  // JSON is YAML.
  writeFileSync(path, `${JSON.stringify(config, null, 2)}\n`, { mode: 0o600 });
  return path;
}
