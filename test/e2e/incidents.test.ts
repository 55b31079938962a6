/**
 * Incidents as someone on call sees them: the text and JSON of `status`, the data of the page, the readiness probe, the log, the metric of the
 * alert, and what `waybill explain` says on every word that these show. The screens agree, name the cause first, and say what to do. Prints a
 * table: a row for each incident, a tick for each screen that does so.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parse } from 'yaml';
import { afterAll, describe, expect, test } from 'vitest';
import { createAuthority } from '../support/certificates.ts';
import { ago, caughtUp, configure, Daemon, sourceOf } from '../support/e2e-daemon.ts';
import type { LogLine, Settings } from '../support/e2e-daemon.ts';
import { inPlace, pause, patience, until } from '../support/e2e-place.ts';
import type { Place } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';
import { mounted } from '../support/e2e-tmpfs.ts';
import { isLong } from '../support/long-run.ts';
import { HecModel } from '../support/splunk-hec-model.ts';
import { parseExposition } from '../support/telemetry/exposition.ts';

/** The parts of the JSON of the status that these tests read (docs/operations.md, "JSON of status"). */
interface Status {
  readonly summary: string;
  readonly tone: string;
  readonly problems: readonly { readonly source?: string; readonly sink?: string; readonly what: string; readonly code?: string }[];
  readonly problemCount: number;
  readonly sources: readonly Part[];
  readonly sinks: readonly Part[];
}

interface Part {
  readonly id: string;
  readonly state: string;
  readonly late?: number;
}

interface Scene {
  readonly place: Place;
  readonly service: Service;
  readonly receiver: HecModel;
  readonly daemon: Daemon;
}

interface Incident {
  readonly name: string;
  /** Options of the service. */
  readonly options?: readonly string[];
  /** In `test:long` only. `npm test` has one incident of a source, and the end of the daemon. */
  readonly isVariant?: true;
  /** Records a second at the start. */
  readonly rate?: number;
  /** A clock of the service that the incident can set. */
  readonly clock?: 'manual';
  readonly source?: Settings;
  /** The state is on a small file system at `volume`. */
  readonly volume?: true;
  /** Before the service starts. */
  readonly before?: (place: Place) => Promise<void>;
  /** Once everything is proven and delivered. */
  readonly happens?: (scene: Scene) => Promise<void> | void;
  readonly headline: RegExp;
  /** The first problem and its act in the text; none: `Nothing to do.` */
  readonly cause?: RegExp;
  readonly act?: RegExp;
  /** The state of the source and of the sink; `|` between two that a race decides. */
  readonly states: readonly [source: string, sink: string];
  readonly probe: 200 | 503;
  /** Undefined: the log says nothing. */
  readonly event?: LogLine['event'];
  /** The alert, and whether a sample of the metric in its expression makes it true once its time has passed. */
  readonly alert?: readonly [name: string, sample: string, holds: (value: number, began: number) => boolean];
  /** `explain` on the code of the first problem says this. */
  readonly explained?: RegExp;
}

/** On a loaded machine no window is late by this close delay. */
const calm = { closeDelay: '10s', recountAfter: ['15s'], pollInterval: '2s' };
const one = (value: number): boolean => value === 1;
/** The time of the last success stands still. */
const stands = (value: number, began: number): boolean => value < began + 5;
const noAnswer = ['WaybillSourceFailing', 'waybill_source_last_success_timestamp_seconds{source=production}', stands] as const;
const suspended = ['WaybillSourceSuspended', 'waybill_source_state{source=production,state=suspended}', one] as const;
const failing = { headline: /^COLLECTION FAILS at production since /, states: ['failing', 'active'], probe: 503 } as const;

const incidents: readonly Incident[] = [
  {
    // The log names it a minute after the start.
    name: 'certificate near its end',
    isVariant: true,
    options: ['--tls-dir', './tls'],
    before: async (place) => {
      const authority = await createAuthority('Test CA');
      const notAfter = new Date(Date.now() + 5.5 * 86_400_000);
      const { cert, key } = await authority.issue({ name: 'localhost', hosts: ['127.0.0.1', 'localhost'], notAfter });
      mkdirSync(place.path('tls'));
      writeFileSync(place.path('tls/ca.pem'), authority.cert);
      writeFileSync(place.path('tls/server.pem'), cert);
      writeFileSync(place.path('tls/server.key'), key);
    },
    headline: /^COMPLETE SO FAR AND DELIVERED.*, a certificate ends/,
    cause: /^The certificate of sources\.production(\.auth)? ends in 5 d/,
    act: /renew the certificate of sources\.production/,
    states: ['active', 'active'],
    probe: 200,
    event: 'certificate.ending',
    alert: [
      'WaybillCertificateExpires',
      'waybill_certificate_expiry_timestamp_seconds{target=sources.production}',
      (value, began) => value - began < 6 * 86_400,
    ],
    explained: /^certificate\.ending/,
  },
  {
    name: 'service 503',
    isVariant: true,
    happens: ({ service }) => service.set({ fault503: 1 }),
    ...failing,
    cause: /^Source production has failed for .*: the service is busy: 503 /,
    act: /attempts continue\. If it lasts, ask the operator of the service/,
    event: 'source.request_failing',
    alert: noAnswer,
    explained: /^source_busy\n/,
  },
  {
    name: 'service down',
    happens: ({ service }) => service.stop(),
    ...failing,
    cause: /^Source production has failed for .*: cannot reach .*ECONNREFUSED/,
    act: /restore the service or the way to it, or correct sources\.production\.\w/,
    event: 'source.request_failing',
    alert: noAnswer,
    explained: /^source_unreachable\n/,
  },
  {
    name: '401, secret wrong',
    isVariant: true,
    happens: async ({ place, service }) => {
      writeFileSync(place.path('secret'), 'wrong');
      await service.set({ revokeTokens: 'now' });
    },
    ...failing,
    cause: /^Source production has failed for .*invalid_client/,
    act: /put a valid secret into \.\/secret \(sources\.production\.auth\.clientSecret\)/,
    event: 'source.token_refused',
    alert: noAnswer,
    explained: /^token_refused\n/,
  },
  {
    name: '403',
    isVariant: true,
    happens: ({ service }) => service.set({ permissions: 'none' }),
    headline: /^COLLECTION SUSPENDED at production since /,
    cause: /^Source production is suspended \(forbidden\): .*403 Forbidden/,
    act: /Restore the right of the client of production to read logs/,
    states: ['suspended', 'active'],
    probe: 503,
    event: 'source.suspended',
    alert: suspended,
    explained: /`forbidden`/,
  },
  {
    name: 'wrong subscription key',
    isVariant: true,
    happens: ({ place }) => writeFileSync(place.path('key'), 'wrong'),
    ...failing,
    cause: /^Source production has failed for .*The subscription key is not valid/,
    act: /put a valid secret into \.\/key \(sources\.production\.subscriptionKey\)/,
    event: 'source.request_failing',
    alert: noAnswer,
    explained: /^source_unauthorized\n/,
  },
  {
    name: 'sink down',
    isVariant: true,
    happens: ({ receiver }) => receiver[Symbol.asyncDispose](),
    headline: /^DELIVERY FAILS at siem since /,
    cause: /^Sink siem has failed for .*ECONNREFUSED/,
    act: /start the receiver .*waybill sinks retry --sink siem/,
    states: ['active', 'retrying'],
    probe: 200,
    event: 'sink.delivery_failed',
    alert: ['WaybillSinkLate', 'waybill_sink_lag_seconds{sink=siem}', (value) => value > 0],
    explained: /^sink_unavailable\n/,
  },
  {
    name: 'sink 403',
    isVariant: true,
    happens: ({ receiver }) => receiver.tokens.clear(),
    headline: /^DELIVERY BLOCKED at siem since /,
    cause: /^Sink siem has been blocked for .*403 code 4 Invalid/,
    act: /put a valid secret into \.\/token \(sinks\.siem\.token\)/,
    states: ['active', 'blocked'],
    probe: 200,
    event: 'sink.delivery_blocked',
    alert: ['WaybillSinkBlocked', 'waybill_sink_state{sink=siem,state=blocked}', one],
    explained: /^sink_blocked\n/,
  },
  {
    name: 'sink rejects one in ten',
    isVariant: true,
    happens: ({ receiver }) => {
      // The same answer at each attempt.
      const sum = (event: unknown): number => Buffer.from(JSON.stringify(event)).reduce((total, byte) => total + byte, 0);
      receiver.refuses = (event) => (sum(event) % 10 === 0 ? 'Invalid data format' : undefined);
    },
    headline: /^COMPLETE SO FAR, NOT ALL DELIVERED|^COMPLETE SO FAR AND DELIVERED.* dead letter/,
    cause: /^Sink siem rejected \d+ records? permanently/,
    act: /waybill dead-letters show --all --sink siem; then "retry" after fixing the cause, or "discard"/,
    states: ['active', 'active'],
    probe: 200,
    event: 'sink.dead_letter',
    alert: ['WaybillDeadLetters', 'waybill_dead_letters{sink=siem}', (value) => value > 0],
    explained: /^A dead letter\n/,
  },
  {
    name: 'gap',
    isVariant: true,
    // Only the windows of some seconds exceed the cap: the others can be proven and counted again.
    rate: 0,
    happens: async ({ service }) => {
      await service.set({ total: 'capped', totalCap: 120, rate: 80 });
      await until('records above the cap', patience, async () => (await service.stats()).records.total > 340 || undefined);
      await service.set({ rate: 0 });
    },
    headline: /^INCOMPLETE: .*\bgaps?\b/,
    cause: /^\d+ windows? of production could not be proven/,
    act: /waybill gaps list/,
    states: ['active', 'active'],
    probe: 200,
    event: 'window.not_proven',
    alert: ['WaybillGap', 'waybill_windows{source=production,state=gap}', (value) => value > 0],
    explained: /^A gap\n/,
  },
  {
    name: 'clock 2 h ahead',
    isVariant: true,
    clock: 'manual',
    // A clock that is set forward would create all records between in one step.
    rate: 0,
    happens: ({ service }) => advance(service, 2 * 3_600_000),
    headline: /^COLLECTION SUSPENDED at production since /,
    cause: /^Source production is suspended \(clock\): /,
    act: /Correct the wrong clock, here or at the service/,
    states: ['suspended', 'active'],
    probe: 503,
    event: 'source.suspended',
    alert: suspended,
    explained: /`clock`/,
  },
  {
    name: 'clock 20 min ahead',
    isVariant: true,
    clock: 'manual',
    rate: 0,
    happens: ({ service }) => advance(service, 20 * 60_000),
    headline: /^COMPLETE SO FAR AND DELIVERED|^CATCHING UP/,
    cause: /^The clock of the service of production is (19|20) min ahead of the clock of this machine/,
    act: /Correct the wrong clock, here or at the service/,
    states: ['active', 'active'],
    probe: 200,
    alert: ['WaybillClockOff', 'waybill_clock_offset_seconds{source=production}', (value) => value > 300],
    explained: /^Clock set back\n/,
  },
  {
    name: 'disk full',
    isVariant: true,
    volume: true,
    happens: ({ place }) => expect(() => writeFileSync(place.path('volume/plug'), Buffer.alloc(16 * 2 ** 20))).toThrow('ENOSPC'),
    headline: /^COLLECTION PAUSED: the disk is full/,
    cause: /^The disk is full: cannot write to /,
    act: /free space on the disk of /,
    states: ['paused', 'active|retrying'],
    probe: 503,
    event: 'source.paused',
    alert: ['WaybillPaused', 'waybill_collection_paused{reason=disk}', one],
    explained: /^Disk full\n/,
  },
  {
    // They are found by recounts.
    name: 'late records',
    isVariant: true,
    // A record may be 30 s late, and a loaded service shows it some seconds later.
    source: { recountAfter: ['15s', '60s'] },
    happens: async ({ service, daemon }) => {
      await service.set({ lateShare: [0.5], lateDelay: ['30s'], rate: 20 });
      await daemon.logged('window.grew');
      await service.set({ rate: 0 });
      await caughtUp(daemon, service, patience);
    },
    headline: /^COMPLETE SO FAR AND DELIVERED/,
    states: ['active', 'active'],
    probe: 200,
    event: 'window.grew',
  },
];

type Screen = 'status' | 'json' | 'page' | 'probe' | 'log' | 'alert' | 'explain';
const screens: readonly Screen[] = ['status', 'json', 'page', 'probe', 'log', 'alert', 'explain'];
/** What each screen told wrongly; undefined: this incident has no such screen. */
const table = new Map<string, Map<Screen, string | undefined>>();

/** Makes the statements about one screen; a wrong one is kept, so that the other screens are seen as well. */
function see(incident: string, screen: Screen, statements: () => void): void {
  const row = table.get(incident) ?? new Map<Screen, string | undefined>();
  table.set(incident, row);
  try {
    statements();
    row.set(screen, undefined);
  } catch (thrown) {
    row.set(screen, thrown instanceof Error ? thrown.message : String(thrown));
  }
}

afterAll(() => {
  const rows = [...table].map(([name, row]) => [name, ...screens.map((screen) => (row.has(screen) ? (row.get(screen) ? '✗' : '✓') : '–'))]);
  const lines = [['incident', ...screens], ...rows].map(([name = '', ...cells]) =>
    [name.padEnd(26), ...cells.map((cell) => cell.padEnd(7))].join(' '),
  );
  process.stderr.write(`\n${lines.join('\n')}\n`);
});

const alertFile = parse(readFileSync(resolve(import.meta.dirname, '../../content/prometheus/alerts.yaml'), 'utf8')) as {
  readonly groups: readonly { readonly rules: readonly { readonly alert: string; readonly expr: string }[] }[];
};
const rules = alertFile.groups.flatMap((group) => group.rules);

async function advance(service: Service, ms: number): Promise<void> {
  const response = await fetch(`${service.line.control}/clock?advance=${ms}ms`, { method: 'POST', headers: { connection: 'close' } });
  if (!response.ok) throw new Error(await response.text());
}

/** Moves the manual clock of the service on with the time. */
function ticking(service: Service): AsyncDisposable {
  let isOver = false;
  const ended = (async () => {
    for (let at = performance.now(); !isOver;) {
      await pause(250);
      const ms = Math.round(performance.now() - at);
      at += ms;
      await advance(service, ms);
    }
  })();
  return {
    [Symbol.asyncDispose]: () => {
      isOver = true;
      return ended;
    },
  };
}

/** Service, receiver and daemon; every secret is in a file. */
async function sceneOf(place: Place, incident: Partial<Incident>): Promise<Scene> {
  const { clock = 'system', rate = 5, options = [] } = incident;
  const service = await Service.start(place, '--records', '100', '--span', '1m', '--rate', `${rate}`, '--clock', clock, ...options);
  const receiver = await new HecModel().listen();
  receiver.tokens.set('token', { indexes: ['main'] });
  const { auth, subscriptionKey, ...source } = sourceOf(service, ago(60_000), { ...calm, ...incident.source });
  const { clientSecret, ...client } = auth as Settings;
  const secrets = { secret: clientSecret, key: subscriptionKey, token: 'token' };
  for (const [name, secret] of Object.entries(secrets)) writeFileSync(place.path(name), String(secret));
  configure(
    place,
    [{ ...source, subscriptionKey: '${file:./key}', auth: { ...client, clientSecret: '${file:./secret}' } }],
    [{ id: 'siem', type: 'splunk-hec', url: `http://127.0.0.1:${receiver.port}`, token: '${file:./token}', batch: { maxWait: '200ms' } }],
    incident.volume && { dataDir: './volume/state' },
  );
  return { place, service, receiver, daemon: new Daemon(place) };
}

const explanations = new Map<string, ReturnType<Place['waybill']>>();

/** `waybill explain`, once for each code. */
function explained(place: Place, code: string): ReturnType<Place['waybill']> {
  const found = explanations.get(code) ?? place.waybill('explain', ...code.split(' '));
  explanations.set(code, found);
  return found;
}

const ids = ['production', 'siem'] as const;
const statesOf = ({ sources, sinks }: Status): readonly string[] => [...sources, ...sinks].map(({ state }) => state);
const wrongOf = (name: string): readonly unknown[] => [...(table.get(name) ?? [])].filter(([, wrong]) => wrong !== undefined);

/** Waits until the daemon shows such a status. */
function shows(daemon: Daemon, what: string, holds: (status: Status) => boolean): Promise<Status> {
  let last: unknown;
  return until(
    () => `${what}, but ${JSON.stringify(last)}\n${daemon.words()}`,
    patience,
    async () => {
      const { status, text } = await daemon.get('/status');
      const given = status === 200 ? (JSON.parse(text) as Status) : undefined;
      last = given;
      return given && holds(given) ? given : undefined;
    },
  );
}

const isHealthy = ({ tone, problemCount }: Status): boolean => tone === 'good' && problemCount === 0;

/** True once the status shows the incident, and nothing else: a loaded machine is late with proofs at times. */
function isSeen({ cause, headline, states }: Incident, status: Status): boolean {
  const { problems, sources, summary } = status;
  const isShown = cause ? cause.test(problems[0]?.what ?? '') : sources.some(({ late = 0 }) => late > 0);
  return isShown && headline.test(summary) && statesOf(status).every((state, n) => states[n]?.split('|').includes(state));
}

/** Every screen at a time that shows the incident. */
async function screensOf(incident: Incident, { place, daemon }: Scene) {
  return until(`screens that show ${incident.name}`, patience, async () => {
    await shows(daemon, incident.name, (status) => isSeen(incident, status));
    const [text, json, page, probe, metrics] = await Promise.all([
      place.waybill('status', '--config', 'waybill.yaml'),
      place.waybill('status', '--config', 'waybill.yaml', '--json'),
      daemon.get('/overview'),
      daemon.get('/readyz'),
      daemon.get('/metrics'),
    ]);
    const given = JSON.parse(json.stdout) as Status;
    const shown = JSON.parse(page.text) as Status;
    return isSeen(incident, given) && isSeen(incident, shown) ? { text, given, shown, probe, metrics } : undefined;
  });
}

/** Looks at every screen and fills the row of the table. */
async function look(incident: Incident, scene: Scene, began: number): Promise<void> {
  const { name, cause, act, headline, event } = incident;
  const { place, daemon } = scene;
  const states = incident.states.map((state) => new RegExp(`\\b(${state})\\b`));
  const { text, given, shown, probe, metrics } = await screensOf(incident, scene);
  const [first = '', ...lines] = text.stdout.split('\n');
  const [problem] = given.problems;

  see(name, 'status', () => {
    expect(first).toMatch(headline);
    expect(first.length).toBeLessThanOrEqual(90);
    for (const [n, id] of ids.entries()) expect(lines.find((line) => line.startsWith(id))).toMatch(states[n] ?? /$^/);
    const paragraph = text.stdout
      .slice(text.stdout.indexOf('JOURNAL'))
      .replace(/^.*\n\n/, '')
      .replaceAll('\n', ' ');
    if (!cause || !act) {
      expect(paragraph).toMatch(/^Nothing to do\./);
      return;
    }
    expect(paragraph).toMatch(cause);
    expect(paragraph).toMatch(/(Nothing|Collected records) .* To do: /);
    expect(paragraph).toMatch(act);
    expect(paragraph).toContain(`More: waybill explain ${problem?.code ?? ''}`);
  });
  see(name, 'json', () => {
    // One incident is one kind of problem.
    expect(new Set(given.problems.map(({ code }) => code)).size).toBe(cause ? 1 : 0);
    expect(given.tone === 'good').toBe(!cause);
  });
  see(name, 'page', () => {
    expect(shown.problems.map(({ source, sink, code }) => [source, sink, code])).toEqual(
      given.problems.map(({ source, sink, code }) => [source, sink, code]),
    );
    expect(statesOf(shown)[0]).toBe(statesOf(given)[0]);
    expect(shown.summary).toMatch(headline);
  });
  see(name, 'probe', () => {
    expect(probe.status).toBe(incident.probe);
    const state = statesOf(given)[0] ?? '';
    if (incident.probe === 503) expect(probe.text).toContain(state === 'paused' ? 'paused (disk)' : `source production: ${state}`);
  });
  if (event)
    see(name, 'log', () => {
      if (cause) expect(['warn', 'error']).toContain(daemon.find(event)?.level);
      // The log says nothing that the screens do not say.
      else expect(daemon.log.filter(({ level }) => level === 'error')).toEqual([]);
    });
  const samples = parseExposition(metrics.text).samples.map(({ name: metric, labels, value }) => {
    const pairs = Object.entries(labels).map(([label, value]) => `${label}=${value}`);
    return [`${metric}{${pairs.join()}}`, value] as const;
  });
  const valueOf = (sample: string): number | undefined => samples.find(([found]) => found === sample)?.[1];
  see(name, 'alert', () => {
    const [source] = statesOf(shown);
    expect(valueOf(`waybill_source_state{source=production,state=${source}}`)).toBe(1);
    if (!incident.alert) return;
    const [alert, sample, holds] = incident.alert;
    expect(rules.find((rule) => rule.alert === alert)?.expr).toContain(sample.slice(0, sample.indexOf('{')));
    expect(holds(valueOf(sample) ?? NaN, began), `${sample} is ${valueOf(sample)}`).toBe(true);
  });
  // Every word that the screens show.
  const codes = new Set([...given.problems.map(({ code }) => code), event, incident.alert?.[0]].filter((code) => code !== undefined));
  const texts = await Promise.all([...codes].map((code) => explained(place, code)));
  see(name, 'explain', () => {
    for (const { code, stderr } of texts) expect(code, stderr).toBe(0);
    if (incident.explained) expect(texts[0]?.stdout).toMatch(incident.explained);
  });
  expect(wrongOf(name)).toEqual([]);
}

// promise: Status, page, probe, log, alert and `waybill explain` agree on an incident: its cause first, and what to do.
describe.concurrent('incidents', () => {
  test.for(incidents)('$name', { timeout: 300_000 }, (incident, { skip }) =>
    inPlace('incident', async (place) => {
      const { name, event, happens, isVariant = false } = incident;
      skip(isVariant && !isLong, 'npm run test:long runs it');
      await using volume = incident.volume && mounted(place, 'volume', 'size=12m');
      skip(incident.volume === true && !volume, 'a tmpfs cannot be mounted here');
      await incident.before?.(place);
      const scene = await sceneOf(place, incident);
      const { daemon } = scene;
      await using _receiver = scene.receiver;
      await using _clock = incident.clock && ticking(scene.service);
      let began = Date.now() / 1000;
      if (happens) {
        await shows(daemon, `${name}: a healthy start`, isHealthy);
        began = Date.now() / 1000;
        await happens(scene);
      }
      if (event) await daemon.logged(event);
      await look(incident, scene, began);
    }),
  );

  test('second daemon, and killed daemon', { timeout: 300_000 }, () =>
    inPlace('incident', async (place) => {
      const { daemon, receiver } = await sceneOf(place, {});
      await using _receiver = receiver;
      await shows(daemon, 'a healthy start', isHealthy);
      const status = (...more: string[]) => place.waybill('status', '--config', 'waybill.yaml', ...more);
      const [second, before] = [await place.waybill('run', '--config', 'waybill.yaml', '--lock-wait', '1s'), await status()];
      see('second daemon', 'status', () => expect(before.stdout).toMatch(/^COMPLETE SO FAR AND DELIVERED[^]*Nothing to do\./));
      see('second daemon', 'log', () => {
        expect(second.code).toBe(75);
        const lines = second.stderr.split('\n').filter((line) => line !== '');
        expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject({
          ...{ event: 'daemon.not_started', code: 'state_locked' },
          error: { message: expect.stringContaining(`pid ${daemon.pid}`) as string },
        });
      });
      await daemon.kill();
      const [killed, json] = [await status(), JSON.parse((await status('--json')).stdout) as Status];
      see('daemon killed', 'status', () => {
        expect(killed.stdout).toMatch(/^DAEMON NOT RUNNING since about /);
        expect(killed.stdout).toMatch(/^production +stopped /m);
        expect(killed.stdout).toMatch(/^To do: start it \(waybill run, or your service manager\)/m);
      });
      see('daemon killed', 'json', () => {
        expect(statesOf(json)).toEqual(['stopped', 'stopped']);
        expect(json.problemCount).toBe(1);
      });
      const [locked, down] = await Promise.all([explained(place, 'state_locked'), explained(place, 'WaybillDown')]);
      see('second daemon', 'explain', () => expect(locked.stdout).toMatch(/^state_locked\n/));
      see('daemon killed', 'explain', () => expect(down.stdout).toMatch(/^WaybillDown: /));
      for (const name of ['second daemon', 'daemon killed']) expect(wrongOf(name)).toEqual([]);
    }),
  );
});
