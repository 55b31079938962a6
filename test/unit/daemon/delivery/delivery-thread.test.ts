/**
 * Delivery loops in a real second thread: the same bytes as in this one, the order of a stop, and
 * the end of the thread.
 */
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../../../../src/clock.ts';
import type { Config, SinkConfig } from '../../../../src/config/load.ts';
import { DeliveryThread, usesDeliveryThread } from '../../../../src/daemon/delivery/delivery-thread.ts';
import { createLoop } from '../../../../src/daemon/delivery/loop.ts';
import { createDelivery, createSink } from '../../../../src/daemon/sink.ts';
import type { SinkLoop } from '../../../../src/deliver/sink-loop.ts';
import type { Journal } from '../../../../src/journal/journal.ts';
import { remember } from '../../../../src/secrets.ts';
import { Secret } from '../../../../src/settings/secret.ts';
import type { ArchiveSettings } from '../../../../src/sink/archive/settings.ts';
import type { ComponentLog } from '../../../../src/telemetry/log.ts';
import { append, openJournal, temporary } from '../../../support/model-journal.ts';
import { uncounted } from '../../../support/uncounted.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { Lines } from '../../../support/collect/world.ts';
import { load, valid } from '../../../support/config/loading.ts';

class ComponentLines extends Lines implements ComponentLog {
  child(): ComponentLog {
    return this;
  }
}

async function place() {
  const directory = temporary();
  const journal = await openJournal(directory, systemClock);
  const thread = new DeliveryThread(journal);
  onTestFinished(async () => {
    await thread[Symbol.asyncDispose]();
    await journal[Symbol.asyncDispose]();
    rmSync(directory, { recursive: true, force: true });
  });
  const path = (id: string): string => join(directory, `${id}.ndjson`);
  const { config } = await load(valid().replace('type: stdout', `type: file\n    path: ${path('out')}`));
  const [out] = config.sinks;
  if (!out) throw new Error('the configuration has no sink');
  const sink = (id: string): SinkConfig => ({ ...out, id, settings: { ...out.settings, path: path(id) } });
  return { journal, thread, config, path, sink, log: new ComponentLines(), directory };
}

function optionsOf(config: Config, log: ComponentLog) {
  return { config, clock: systemClock, random: Math.random, log };
}

function started(loop: SinkLoop): { readonly stop: AbortController; readonly ended: Promise<void> } {
  const stop = new AbortController();
  return { stop, ended: loop.run(stop.signal, new AbortController().signal) };
}

async function acknowledged(journal: Journal, id: string, seq: number): Promise<void> {
  await vi.waitFor(() => expect(journal.sinkProgress(id).acknowledged).toBe(seq), { timeout: 20_000 });
}

test('writes the same bytes as a loop in this thread, before and after records arrive, and stops', async () => {
  const { journal, thread, config, path, sink, log } = await place();
  await append(journal, 2_500, (n) => ({ payloadName: `Übung ${n}`, userEmailAddress: 'a@b.example' }));
  const options = optionsOf(config, log);
  const here = createDelivery(sink('here'), journal, options, uncounted).loop;
  const there = createSink(sink('there'), journal, options, uncounted, (plan, parts) => thread.create(plan, parts)).loop;
  const runs = [started(here), started(there)];
  await acknowledged(journal, 'there', 2_500);
  await append(journal, 40);
  await acknowledged(journal, 'there', 2_540);
  await acknowledged(journal, 'here', 2_540);
  const text = readFileSync(path('there'), 'utf8');
  expect(text.split('\n')).toHaveLength(2_541);
  expect(text).toBe(readFileSync(path('here'), 'utf8'));
  expect(await there.view()).toMatchObject({ id: 'there', state: 'active', acknowledged: 2_540 });
  expect(await there.isOpen).toBe(true);
  for (const { stop } of runs) stop.abort(new Error('enough'));
  await Promise.all(runs.map(({ ended }) => ended));
  expect(await there.isOpen).toBe(false);
  const [delivered, other] = ['here', 'there'].map((id) => journal.sinkProgress(id).delivered);
  expect([other?.seq, ...(other?.chain ?? [])]).toEqual([delivered?.seq, ...(delivered?.chain ?? [])]);
  expect(log.lines.filter(({ event }) => event === 'sink.first_delivery').map(({ fields }) => fields)).toMatchObject([
    { messages: expect.any(Number) as number },
    { messages: expect.any(Number) as number },
  ]);
});

test('the view has no secret that only this thread knows', async () => {
  const { journal, thread, config, sink, log } = await place();
  const secret = 'correct-horse-battery';
  const options = optionsOf(config, log);
  const loop = createSink(sink(secret), journal, options, uncounted, (plan, parts) => thread.create(plan, parts)).loop;
  const { stop, ended } = started(loop);
  await vi.waitFor(async () => expect(await loop.isOpen).toBe(true), { timeout: 20_000 });
  const owner = {};
  remember(owner, secret);
  // The sink is not configured, and the error names it.
  await loop.onDemand.replayArchive({ archive: secret, times: undefined, through: 0, began: 1, at: 0, sent: 0, rejected: 0 });
  await vi.waitFor(async () => expect((await loop.view()).replay).toMatchObject({ state: 'failed' }), { timeout: 20_000 });
  expect((await loop.view()).replay?.error).toMatch(/^cannot read the archive of the sink "[^"]*": /);
  expect((await loop.view()).replay?.error).not.toContain(secret);
  stop.abort(new Error('enough'));
  await ended;
});

test('a replay opens its archive with the present settings of it, in either thread', async () => {
  const { journal, thread, config, sink, log } = await place();
  const archive = (path: string) => ({ directory: path, signingKey: new Secret('none') }) as unknown as ArchiveSettings;
  const present = new Map<string, ArchiveSettings>();
  const create = (id: string, createOne: Parameters<typeof createSink>[4]): SinkLoop =>
    createSink(sink(id), journal, optionsOf(config, log), uncounted, createOne, undefined, (id) => present.get(id)).loop;
  const loops = [create('here', createLoop), create('there', (plan, parts) => thread.create(plan, parts))];
  const runs = loops.map(started);
  const errors = async (): Promise<unknown> =>
    Promise.all(
      loops.map(async (loop) => {
        await loop.onDemand.cancelReplay();
        await loop.onDemand.replayArchive({ archive: 'evidence', times: undefined, through: 0, began: 1, at: 0, sent: 0, rejected: 0 });
        return vi.waitFor(
          async () => {
            const { error } = (await loop.view()).replay ?? {};
            expect(error).toBeDefined();
            return error;
          },
          { timeout: 20_000 },
        );
      }),
    );
  for (const loop of loops) await vi.waitFor(async () => expect(await loop.isOpen).toBe(true), { timeout: 20_000 });
  const each = (text: string): unknown[] => loops.map(() => expect.stringContaining(text) as unknown);
  expect(await errors()).toEqual(each('it is not in the configuration'));
  present.set('evidence', archive('elsewhere'));
  expect(await errors()).toEqual(each('signingKey'));
  for (const { stop } of runs) stop.abort(new Error('enough'));
  await Promise.all(runs.map(({ ended }) => ended));
});

test('a thread that ends fails every run and every later call with an internal error', async () => {
  const { journal, thread, config, sink, log } = await place();
  const options = optionsOf(config, log);
  const create = (config: SinkConfig): SinkLoop =>
    createSink(config, journal, options, uncounted, (plan, parts) => thread.create(plan, parts)).loop;
  const loop = create(sink('there'));
  const { ended } = started(loop);
  const failed = ended.catch((thrown: unknown) => thrown);
  await vi.waitFor(async () => expect(await loop.isOpen).toBe(true), { timeout: 20_000 });
  // The thread does not know this type and has no such loop: a message to it is an error that ends
  // the thread.
  const odd = create({ ...sink('odd'), type: 'odd' });
  await expect(started(odd).ended).rejects.toThrow('cannot find the definition of "odd"');
  odd.wake();
  expect(await failed).toMatchObject({ code: 'internal_error', message: expect.stringContaining('the delivery thread ended') as string });
  await expect(Promise.resolve(loop.view())).rejects.toMatchObject({ code: 'internal_error' });
});

test('an acknowledgement that goes back ends the run with the error of the journal', async () => {
  const { journal, thread, config, sink, log } = await place();
  const loop = createSink(sink('there'), journal, optionsOf(config, log), uncounted, (plan, parts) => thread.create(plan, parts)).loop;
  const acknowledgeLater = vi.spyOn(journal, 'acknowledgeLater').mockImplementation((id) => {
    acknowledgeLater.mockRestore();
    journal.acknowledgeLater(id, { acknowledged: journal.head().seq + 1, delivered: undefined });
  });
  const { ended } = started(loop);
  const failed = ended.catch((thrown: unknown) => thrown);
  await append(journal, 10);
  expect(await failed).toMatchObject({ code: 'internal_error', message: expect.stringContaining('acknowledged 11') as string });
});

test('a second thread needs the setting, a second core and the system clock', async () => {
  const { config: loaded } = await place();
  const config: Config = { ...loaded, deliveryThread: 'auto' };
  const cores = (await import('node:os')).availableParallelism();
  expect(usesDeliveryThread({ config, clock: systemClock })).toBe(cores > 1);
  expect(usesDeliveryThread({ config: { ...config, deliveryThread: 'off' }, clock: systemClock })).toBe(false);
  expect(usesDeliveryThread({ config, clock: new VirtualClock(0) })).toBe(false);
});

test('the thread responds in time; an unused thread does not count', async () => {
  const { journal, thread, config, sink, log } = await place();
  await thread.responded();
  const { loop } = createSink(sink('there'), journal, optionsOf(config, log), uncounted, (plan, parts) => thread.create(plan, parts));
  // The start of the thread blocks nothing.
  expect(loop.view()).toMatchObject({ id: 'there', state: 'active', acknowledged: 0, lastError: undefined });
  expect(loop.isOpen).toBe(false);
  await thread.responded();
  await vi.waitFor(async () => expect(await loop.view()).toHaveProperty('attempts', 0), { timeout: 20_000 });
  await thread.responded();
});
