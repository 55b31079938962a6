/** Calls across a connection that clones messages: order, results, errors, and the end of the other side. */
import { expect, test } from 'vitest';
import { Channel } from '../../../src/daemon/channel.ts';
import { WaybillError } from '../../../src/errors/errors.ts';

function channels(served?: object): { near: Channel; failed: Promise<unknown> } {
  const { port1, port2 } = new MessageChannel();
  const { promise: failed, resolve } = Promise.withResolvers<unknown>();
  const near = new Channel(port1, resolve);
  const far = new Channel(port2, resolve);
  if (served) far.serve(served);
  for (const port of [port1, port2]) port.unref();
  return { near, failed };
}

test('calls with and without a result start in the order of sending', async () => {
  const performed: string[] = [];
  const served = {
    slow: async (name: string) => {
      performed.push(name);
      await Promise.resolve();
      return `${name} done`;
    },
    note: (name: string) => void performed.push(name),
  };
  const { near } = channels(served);
  const [remote, notified] = [near.remote<typeof served>(), near.notified<typeof served>()];
  notified.note('first');
  const answer = remote.slow('second');
  notified.note('third');
  expect(await answer).toBe('second done');
  expect(await remote.slow('last')).toBe('last done');
  expect(performed).toEqual(['first', 'second', 'third', 'last']);
});

test("an error keeps its code, the system's code and its causes; a call to an end that serves nothing is an error", async () => {
  const served = {
    full: () => {
      throw new WaybillError('journal_full', 'cannot write', { cause: Object.assign(new Error('no space'), { code: 'ENOSPC' }) });
    },
  };
  const { near } = channels(served);
  const thrown = await near
    .remote<typeof served>()
    .full()
    .then(
      () => undefined,
      (error: unknown) => error,
    );
  expect(thrown).toBeInstanceOf(WaybillError);
  expect(thrown).toMatchObject({ code: 'journal_full', message: 'cannot write', cause: { message: 'no space', code: 'ENOSPC' } });
  await expect(channels().near.remote<typeof served>().full()).rejects.toThrow('serves nothing yet');
});

test('an error of a call without a result is reported where it occurs', async () => {
  const served = {
    fails: () => {
      throw new WaybillError('internal_error', 'goes back');
    },
  };
  const { near, failed } = channels(served);
  near.notified<typeof served>().fails();
  expect(await failed).toMatchObject({ code: 'internal_error' });
});

test('after the end of the other side every call fails with its reason, also waiting calls', async () => {
  const served = { never: () => new Promise<string>(() => undefined) };
  const { near } = channels(served);
  const waiting = near.remote<typeof served>().never();
  near.close(new WaybillError('internal_error', 'the thread ended'));
  await expect(waiting).rejects.toMatchObject({ code: 'internal_error' });
  await expect(near.remote<typeof served>().never()).rejects.toThrow('the thread ended');
});
