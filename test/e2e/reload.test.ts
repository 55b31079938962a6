/**
 * The daemon reloads a changed configuration: sources and sinks are added, changed and removed, an
 * invalid configuration changes nothing, and each sink has each record exactly once.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ago, Daemon, sourceOf } from '../support/e2e-daemon.ts';
import type { LogLine, Settings } from '../support/e2e-daemon.ts';
import { compare, delivered, exactlyOnce, linesOf, originalOf } from '../support/e2e-oracle.ts';
import { inPlace, pause, seed, until, patience } from '../support/e2e-place.ts';
import type { Place } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';

const quick = { closeDelay: '1s', recountAfter: [] };
const fileSink = (id: string, more: Settings = {}): Settings => ({
  id,
  type: 'file',
  path: `./${id}.ndjson`,
  sources: ['production'],
  ...more,
});
const denied = { filter: { result: ['AccessDenied'] } };
const isDenied = (record: string): boolean => record.includes('"result":"AccessDenied"');
const none = { added: [], changed: [], removed: [] };

/**
 * A configuration directory published like a Kubernetes volume: files in a new directory, and a
 * symlink that is replaced.
 */
class Volume {
  readonly #place: Place;
  #version = 0;

  constructor(place: Place) {
    this.#place = place;
    symlinkSync('..data/waybill.yaml', place.path('waybill.yaml'));
  }

  publish(text: string): void {
    this.#version += 1;
    const name = `v${this.#version}`;
    mkdirSync(this.#place.path(name));
    writeFileSync(this.#place.path(`${name}/waybill.yaml`), text);
    symlinkSync(name, this.#place.path('..data_tmp'));
    renameSync(this.#place.path('..data_tmp'), this.#place.path('..data'));
  }
}

function textOf(sources: readonly Settings[], sinks: readonly Settings[], more: Settings = {}): string {
  return JSON.stringify({ dataDir: './state', sources, sinks, admin: { listen: '127.0.0.1:0' }, shutdownTimeout: '5s', ...more });
}

/**
 * Publishes, and waits for the next line of this event, after SIGHUP or, without it, by the watched
 * files.
 */
async function next(daemon: Daemon, event: LogLine['event'], publish: () => void, bySignal = true): Promise<LogLine> {
  const count = (): LogLine[] => daemon.log.filter((line) => line.event === event);
  const before = count().length;
  publish();
  if (bySignal) daemon.signal('SIGHUP');
  return until(
    () => `another "${event}" in the log\n${daemon.words()}`,
    patience,
    () => count()[before],
  );
}

/** Waits until a file has these records. In the meantime the service creates others. */
async function holds(file: string, records: readonly string[]): Promise<void> {
  const missing = (): readonly string[] => {
    const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : [];
    return compare(lines, records, originalOf).missing;
  };
  await until(
    () => `${file} without ${missing().length} records`,
    patience,
    () => (missing().length === 0 ? true : undefined),
  );
}

/** The part of `GET /status` about a rejected configuration. */
interface Rejecting {
  readonly rejected: { readonly problems: readonly string[] } | null;
  readonly problems: readonly object[];
}

async function metric(daemon: Daemon, name: string): Promise<string | undefined> {
  const { text } = await daemon.get('/metrics');
  return text.split('\n').find((line) => line.startsWith(`${name} `));
}

/** The metrics are at most a second old. */
async function isCurrent(daemon: Daemon, value: 0 | 1): Promise<void> {
  const wanted = `waybill_config_last_reload_successful ${value}`;
  await until(wanted, 10_000, async () => ((await metric(daemon, 'waybill_config_last_reload_successful')) === wanted ? true : undefined));
}

test('a reload adds, changes and removes sources and sinks; an invalid configuration changes nothing', { timeout: 300_000 }, () =>
  inPlace('reload', async (place) => {
    const service = await Service.start(place, '--records', '500', '--span', '2m', '--rate', '20');
    const start = ago(150_000);
    const source = sourceOf(service, start, quick);
    const { auth } = source as { auth: Settings };
    writeFileSync(place.path('secret'), String(auth['clientSecret']));
    const fromFile = { ...source, auth: { ...auth, clientSecret: `\${file:${place.path('secret')}}` } };
    const other = sourceOf(service, start, { ...quick, id: 'other' });
    const otherSink = fileSink('third', { sources: ['other'] });
    const volume = new Volume(place);
    const publish =
      (...parts: Parameters<typeof textOf>) =>
      (): void =>
        volume.publish(textOf(...parts));
    publish([source], [fileSink('siem')])();
    writeFileSync(place.path('tenant.yaml'), 'sources: [');
    const daemon = new Daemon(place);
    await daemon.logged('sink.first_delivery');
    await isCurrent(daemon, 1);

    /** Configurations that are refused for this reason, whatever configuration is in effect. */
    const refused: readonly (readonly [reason: RegExp, text: string])[] = [
      [/closeDelay .*"soon" is not a duration/, textOf([{ ...source, closeDelay: 'soon' }], [fileSink('siem')])],
      [/line 1, column/, '{ "dataDir": "./state", '],
      // The valid sink of the main file waits too.
      [/^tenant\.yaml, line 1, column/, textOf([source], [fileSink('siem'), fileSink('waiting')], { include: ['tenant.yaml'] })],
      [/^dataDir: .*restart/, textOf([source], [fileSink('siem')], { dataDir: './elsewhere' })],
      [/^sinks\.siem: it delivered to/, textOf([source], [fileSink('siem', { path: './moved.ndjson' })])],
    ];
    let turn = 0;
    const refuse = async (): Promise<void> => {
      const [reason, text] = refused[turn % refused.length] ?? [/never/, ''];
      turn += 1;
      const { problems } = await next(daemon, 'config.rejected', () => volume.publish(text));
      expect(problems).toEqual([expect.stringMatching(reason)]);
      await isCurrent(daemon, 0);
      // The status is at most a second old, too.
      const status = await until(
        () => 'the rejected configuration in the status',
        10_000,
        async () => {
          const read = JSON.parse((await daemon.get('/status')).text) as Rejecting;
          return read.rejected?.problems.some((problem) => reason.test(problem)) === true ? read : undefined;
        },
      );
      expect(status.problems).toContainEqual(
        expect.objectContaining({ code: 'reload', what: expect.stringMatching(/1 problem: /) as string }),
      );
    };

    await refuse();
    // Only the symlink changes.
    expect(await next(daemon, 'config.reloaded', publish([source], [fileSink('siem'), fileSink('second')]), false)).toMatchObject({
      sources: none,
      sinks: { ...none, added: ['second'] },
    });
    await isCurrent(daemon, 1);
    await holds(place.path('second.ndjson'), await service.truth());
    await refuse();
    expect(await next(daemon, 'config.reloaded', publish([source], [fileSink('siem'), fileSink('second', denied)]))).toMatchObject({
      sources: none,
      sinks: { ...none, changed: ['second'] },
    });
    await refuse();
    expect(await next(daemon, 'config.reloaded', publish([fromFile], [fileSink('siem'), fileSink('second', denied)]))).toMatchObject({
      sources: { ...none, changed: ['production'] },
      sinks: none,
    });
    await refuse();
    expect(
      await next(daemon, 'config.reloaded', publish([fromFile, other], [fileSink('siem'), fileSink('second', denied), otherSink])),
    ).toMatchObject({ sources: { ...none, added: ['other'] }, sinks: { ...none, added: ['third'] } });
    await holds(place.path('third.ndjson'), await service.truth());
    await refuse();
    await refuse();
    expect(existsSync(place.path('waiting.ndjson'))).toBe(false);
    await service.set({ rate: 0 });
    await delivered(service, [place.path('siem.ndjson'), place.path('third.ndjson')]);
    const truth = await service.truth();
    await holds(place.path('second.ndjson'), truth.filter(isDenied));
    expect(await next(daemon, 'config.reloaded', publish([fromFile], [fileSink('siem')]))).toMatchObject({
      sources: { ...none, removed: ['other'] },
      sinks: { ...none, removed: ['second', 'third'] },
    });
    const unconfigured = daemon.log.filter(({ event }) => event === 'sink.unconfigured' || event === 'source.unconfigured');
    expect(unconfigured.map(({ source: of, sink }) => of ?? sink)).toEqual(['other', 'second', 'third']);
    // The admin server may answer with a status that is a second old.
    await expect
      .poll(async () => {
        const { sinks } = JSON.parse((await daemon.get('/status')).text) as { sinks: { id: string; state: string }[] };
        return Object.fromEntries(sinks.map(({ id, state }) => [id, state]));
      })
      .toEqual({ siem: 'active', second: 'unconfigured', third: 'unconfigured' });

    expect(compare(linesOf(place.path('siem.ndjson')), truth, originalOf)).toEqual(exactlyOnce);
    expect(compare(linesOf(place.path('third.ndjson')), truth, originalOf)).toEqual(exactlyOnce);
    expect({ ...compare(linesOf(place.path('second.ndjson')), truth, originalOf), missing: [] }).toEqual(exactlyOnce);
    // No reload affected this sink: its loop never restarted.
    expect(daemon.log.filter(({ event, sink }) => event === 'sink.first_delivery' && sink === 'siem')).toHaveLength(1);
    expect(await daemon.stop()).toMatchObject({ code: 0, signal: null });
  }),
);

// promise: Reloads and kills under load: each sink has each record once.
test('a thousand records a second, twenty reloads and kills: each sink has each record once', { timeout: 2_100_000 }, () =>
  inPlace('reload-load', async (place) => {
    process.stderr.write(`reload: WAYBILL_SEED=${seed}\n`);
    const service = await Service.start(place, '--records', '1000', '--span', '1m', '--rate', '1000');
    const source = sourceOf(service, ago(90_000), quick);
    const { auth } = source as { auth: Settings };
    const secretOf = (turn: number): Settings => {
      const path = place.path(`secret-${turn}`);
      writeFileSync(path, String(auth['clientSecret']));
      return { ...source, auth: { ...auth, clientSecret: `\${file:${path}}` } };
    };
    const volume = new Volume(place);
    const extra = ['one', 'two', 'three'];
    let present = new Set<string>();
    let production = source;
    let isFiltered = false;
    const valid = (): string =>
      textOf([production], [fileSink('siem'), fileSink('filtered', isFiltered ? denied : {}), ...[...present].map((id) => fileSink(id))]);
    volume.publish(valid());
    let daemon = new Daemon(place);
    await daemon.logged('sink.first_delivery');
    let kills = 0;
    let reloadsBefore = 0;
    const reloads = (): number => reloadsBefore + daemon.log.filter(({ event }) => event === 'config.reloaded').length;
    for (let turn = 0; reloads() < 20; turn += 1) {
      const id = extra[Math.floor(turn / 4) % extra.length] ?? 'one';
      if (turn % 4 === 0) present = present.has(id) ? present.difference(new Set([id])) : present.union(new Set([id]));
      if (turn % 4 === 1) isFiltered = !isFiltered;
      if (turn % 4 === 2) production = secretOf(turn);
      if (turn % 4 === 3) [production, present] = [secretOf(turn), present.symmetricDifference(new Set(['three']))];
      await next(daemon, 'config.rejected', () => volume.publish(valid().replace('"1s"', '"soon"')));
      if (turn % 3 < 2) {
        await next(daemon, 'config.reloaded', () => volume.publish(valid()));
        await pause(place.chance() * 1_000);
      } else {
        volume.publish(valid());
        daemon.signal('SIGHUP');
        await pause(place.chance() * 400);
        reloadsBefore = reloads();
        await daemon.kill();
        kills += 1;
        daemon = new Daemon(place);
        await daemon.logged('sink.first_delivery');
      }
    }
    // Every removed sink is configured again, and a new one is added. In the end each has every record.
    const all = ['siem', ...extra, 'last'];
    present = new Set(all.slice(1));
    await next(daemon, 'config.reloaded', () => volume.publish(valid()));
    await service.set({ rate: 0 });
    await delivered(
      service,
      all.map((id) => place.path(`${id}.ndjson`)),
      1_200_000,
    );
    expect(await daemon.stop()).toMatchObject({ code: 0, signal: null });
    const truth = await service.truth();
    process.stderr.write(`reload: ${truth.length} records, ${reloads()} reloads, ${kills} kills\n`);
    for (const id of all) expect(compare(linesOf(place.path(`${id}.ndjson`)), truth, originalOf), id).toEqual(exactlyOnce);
    const filtered = linesOf(place.path('filtered.ndjson'));
    expect({ ...compare(filtered, truth, originalOf), missing: [] }).toEqual(exactlyOnce);
    expect(compare(filtered, truth.filter(isDenied), originalOf).missing).toEqual([]);
    expect(truth.length).toBeGreaterThan(10_000);
    expect(kills).toBeGreaterThanOrEqual(5);
  }),
);
