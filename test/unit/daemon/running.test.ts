/** A changed configuration: what stops, what starts, and the order. */
import { expect, onTestFinished, test, vi } from 'vitest';
import type { Config, SinkConfig } from '../../../src/config/load.ts';
import { changesBetween } from '../../../src/config/changes.ts';
import { Running } from '../../../src/daemon/running.ts';
import { Tasks } from '../../../src/daemon/tasks.ts';
import { WaybillError } from '../../../src/errors/errors.ts';
import type { PageRequest } from '../../../src/model/source.ts';
import { Secret } from '../../../src/settings/secret.ts';
import type { ComponentLog } from '../../../src/telemetry/log.ts';
import { ModelSource } from '../../support/model-source.ts';
import { uncounted } from '../../support/uncounted.ts';
import { Lines } from '../../support/collect/world.ts';
import { load, valid } from '../../support/config/loading.ts';
import { opened } from '../../support/journal/opening.ts';

class ComponentLines extends Lines implements ComponentLog {
  child(): ComponentLog {
    return this;
  }
}

const shutdownMs = 20_000;

/** A daemon of one source and the sink `out`, which accepts everything. */
async function started() {
  const { journal, clock } = await opened();
  const service = new ModelSource(clock);
  const log = new ComponentLines();
  const stop = new AbortController();
  const opens: string[] = [];
  const { config: loaded } = await load(valid({ top: `shutdownTimeout: ${shutdownMs / 1_000}s` }));
  const [template] = loaded.sinks;
  const [source] = loaded.sources;
  if (!template || !source) throw new Error('the configuration lacks a source or a sink');
  const sink = (id: string, hangs = false): SinkConfig => ({
    ...template,
    id,
    definition: {
      ...template.definition,
      destination: () => id,
      open: (...[, , , signal]) => {
        opens.push(id);
        // Until the loop abandons it.
        if (hangs) return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
        return Promise.resolve({ send: () => Promise.resolve({ rejections: [] }), [Symbol.asyncDispose]: () => Promise.resolve() });
      },
    },
  });
  const configured = (sinks: readonly SinkConfig[], pollInterval = source.pollInterval): Config => ({
    ...loaded,
    // The test journal already has a source "production", with another destination.
    sources: [{ ...source, id: 'new', pollInterval }],
    sinks,
  });
  let sourcesOpened = 0;
  const options = {
    ...{ version: '0.1.0', expectState: false, lockWait: 0, clock, random: () => 0.5, log },
    openSource: () => {
      sourcesOpened += 1;
      return {
        page: (request: PageRequest, signal: AbortSignal) => service.page(request, signal),
        renew: () => undefined,
        authenticate: () => Promise.resolve(),
        routes: () => [],
        [Symbol.asyncDispose]: () => Promise.resolve(),
      };
    },
  };
  const tasks = new Tasks(stop.signal, clock, log);
  const start = (config: Config): Running => {
    const running = new Running({ ...options, config }, { journal, meters: uncounted, tasks });
    running.register();
    running.start();
    return running;
  };
  const change = (running: Running, config: Config): Promise<void> =>
    running.change(config, changesBetween(running.config, config), stop.signal);
  onTestFinished(async () => {
    stop.abort(new Error('the test is over'));
    expect((await tasks.ended(() => 0)) ?? 'no failure').toBe('no failure');
  });
  const pass = (ms: number): Promise<void> => clock.sleep(ms, stop.signal);
  return { journal, log, opens, sink, configured, start, change, pass, openedSources: () => sourcesOpened };
}

test('a changed source and an added sink do not wait for a removed sink that hangs; a changed sink waits for its own loop', async () => {
  const it = await started();
  const running = it.start(it.configured([it.sink('out'), it.sink('stuck', true), it.sink('changed', true)]));
  await it.pass(1_000);
  expect([it.openedSources(), it.opens.toSorted()]).toEqual([1, ['changed', 'out', 'stuck']]);
  it.opens.length = 0;
  const changed = { ...it.sink('changed'), failReadinessAfter: 1 };
  const done = it.change(running, it.configured([it.sink('out'), it.sink('added'), changed], 7_000));
  await it.pass(shutdownMs / 2);
  expect([it.openedSources(), it.opens]).toEqual([2, ['added']]);
  await done;
  await it.pass(1_000);
  expect(it.opens).toEqual(['added', 'changed']);
  expect([...it.journal.sinkPositions.sinks()].map(({ id, state }) => `${id} ${state}`).toSorted()).toEqual([
    'added active',
    'changed active',
    'out active',
    'stuck unconfigured',
  ]);
});

test('a sink with a new id at the place of a removed one waits until that one has ended', async () => {
  const it = await started();
  const at = (id: string, hangs = false): SinkConfig => {
    const sink = it.sink(id, hangs);
    return { ...sink, definition: { ...sink.definition, destination: () => 'the same file' } };
  };
  const running = it.start(it.configured([at('old', true)]));
  await it.pass(1_000);
  const done = it.change(running, it.configured([at('new'), it.sink('added')]));
  await it.pass(shutdownMs / 2);
  expect(it.opens).toEqual(['old', 'added']);
  await done;
  await it.pass(1_000);
  expect(it.opens).toEqual(['old', 'added', 'new']);
});

test('a sink with another destination than in the state is blocked alone, and keeps its records and its selection', async () => {
  const it = await started();
  const { sinkPositions } = it.journal;
  sinkPositions.register('out', 'kafka', 'a topic', it.journal.positionFor('journal'), undefined);
  sinkPositions.select('out', { filter: { result: ['AccessDenied'] } });
  const running = it.start(it.configured([it.sink('out'), it.sink('second')]));
  await it.pass(1_000);
  expect(it.opens).toEqual(['second']);
  const loop = running.sink('out')?.loop;
  expect(loop?.view()).toMatchObject({
    state: 'blocked',
    lastCode: 'config_invalid',
    lastError: expect.stringMatching(
      /^cannot use sinks\.out: it delivered to "a topic" by kafka before and would now deliver to "out"/,
    ) as string,
  });
  expect(sinkPositions.sink('out')).toMatchObject({
    state: 'active',
    type: 'kafka',
    destination: 'a topic',
    selection: { filter: { result: ['AccessDenied'] } },
  });
});

test('a changed selection and records that a sink lost are logged for the sink', async () => {
  const it = await started();
  const narrow: SinkConfig = { ...it.sink('out'), filter: { result: ['AccessDenied'] } };
  const running = it.start(it.configured([narrow]));
  await it.pass(1_000);
  const [out] = [it.sink('out')];
  const open: typeof out.definition.open = async (settings, context, resumePoint, signal) => {
    const loss = { first: 1, last: 2, message: 'the file is shorter than before' };
    // A sink that cannot continue finds the same loss at each attempt.
    for (const note of ['one', 'two']) await resumePoint.lost(loss, note);
    return out.definition.open(settings, context, resumePoint, signal);
  };
  await it.change(running, it.configured([{ ...out, definition: { ...out.definition, open } }]));
  await it.pass(1_000);
  const told = it.log.lines.filter(({ event }) => ['sink.selection_changed', 'sink.records_lost'].includes(event));
  expect(told.map(({ event, fields }) => [event, fields])).toEqual([
    ['sink.selection_changed', { sink: 'out', sources: ['production', 'new'] }],
    ['sink.records_lost', { sink: 'out', code: 'file_truncated', first: 1, last: 2, detail: 'the file is shorter than before' }],
  ]);
});

test('a sink that starts with an archive may precede it in the configuration', async () => {
  const it = await started();
  const evidence = it.sink('evidence');
  const siem: SinkConfig = { ...it.sink('siem'), start: { kind: 'archive', archive: 'evidence' } };
  it.start(it.configured([siem, { ...evidence, type: 'archive' }]));
  await it.pass(1_000);
  expect(it.opens.toSorted()).toEqual(['evidence', 'siem']);
  expect(it.journal.sinkProgress('siem').replays).toMatchObject({ archive: { archive: 'evidence' } });
});

test('an archive that is added or changed restarts no other sink, and a replay reads its present settings', async () => {
  const it = await started();
  const running = it.start(it.configured([it.sink('out')]));
  await it.pass(1_000);
  const loop = running.sink('out')?.loop;
  const failure = async (): Promise<unknown> => {
    loop?.cancelReplays();
    loop?.replay({ kind: 'archive', archive: 'evidence', times: undefined, through: 0, began: 1, at: 0, sent: 0, rejected: 0 });
    await it.pass(1_000);
    return vi.waitFor(async () => {
      const { error } = loop?.view().replays?.[0] ?? {};
      expect(error).toBeDefined();
      return error;
    });
  };
  expect(await failure()).toContain('it is not in the configuration');
  const evidence = it.sink('evidence');
  for (const key of ['one', 'two']) {
    const settings = { ...evidence.settings, signingKey: new Secret(key) };
    await it.change(running, it.configured([it.sink('out'), { ...evidence, type: 'archive', settings }]));
    await it.pass(1_000);
    expect(await failure()).toContain('signingKey');
  }
  expect(it.opens).toEqual(['out', 'evidence', 'evidence']);
});

test('a disk that is full while a new sink is stored delays the change and does not end the daemon', async () => {
  const it = await started();
  const running = it.start(it.configured([it.sink('out')]));
  await it.pass(1_000);
  const full = vi.spyOn(it.journal.sinkPositions, 'register').mockImplementation(() => {
    throw new WaybillError('journal_full', 'cannot write the state: database or disk is full');
  });
  const done = it.change(running, it.configured([it.sink('out'), it.sink('added')], 7_000));
  await it.pass(10_000);
  expect(it.opens).toEqual(['out']);
  full.mockRestore();
  await done;
  await it.pass(1_000);
  expect([it.openedSources(), it.opens]).toEqual([2, ['out', 'added']]);
  expect(it.log.lines.filter(({ event }) => event === 'state.write_delayed')).toMatchObject([{ fields: { code: 'journal_full' } }]);
});
