/**
 * Calls across a connection that clones messages: order, results, errors, transfer, and the end of
 * the other side.
 */
import { expect, test } from 'vitest';
import { Channel, Transferred } from '../../../src/daemon/channel.ts';
import type { Port } from '../../../src/daemon/channel.ts';
import { WaybillError } from '../../../src/errors/errors.ts';
import { quiet } from '../../support/delivery-clock.ts';
import { memoryPorts } from '../../support/memory-ports.ts';

function channels(): { near: Channel; far: Channel; failures: unknown[]; posts: unknown[] } {
  const failures: unknown[] = [];
  const posts: unknown[] = [];
  const [one, other] = memoryPorts();
  const counted: Port = {
    post: (message, transfer) => {
      posts.push(message);
      one.post(message, transfer);
    },
    receive: (handler) => one.receive(handler),
  };
  return {
    near: new Channel(counted, (thrown) => failures.push(thrown)),
    far: new Channel(other, (thrown) => failures.push(thrown)),
    failures,
    posts,
  };
}

test('calls with and without a result start in the order of sending, and one turn is one message', async () => {
  const { near, far, posts } = channels();
  const performed: string[] = [];
  const served = {
    slow: async (name: string) => {
      performed.push(name);
      await quiet();
      return `${name} done`;
    },
    note: (name: string) => void performed.push(name),
  };
  far.serve('it', served);
  const [remote, notified] = [near.remote<typeof served>('it'), near.notified<typeof served>('it')];
  notified.note('first');
  const answer = remote.slow('second');
  notified.note('third');
  expect(await answer).toBe('second done');
  expect(performed).toEqual(['first', 'second', 'third']);
  expect(posts).toHaveLength(1);
});

test("an error keeps its code, the system's code and its causes; an unknown object is an error", async () => {
  const { near, far } = channels();
  const served = {
    full: () => {
      throw new WaybillError('journal_full', 'cannot write', { cause: Object.assign(new Error('no space'), { code: 'ENOSPC' }) });
    },
  };
  far.serve('it', served);
  const thrown = await near
    .remote<typeof served>('it')
    .full()
    .then(
      () => undefined,
      (error: unknown) => error,
    );
  expect(thrown).toBeInstanceOf(WaybillError);
  expect(thrown).toMatchObject({ code: 'journal_full', message: 'cannot write', cause: { message: 'no space', code: 'ENOSPC' } });
  await expect(near.remote<typeof served>('another').full()).rejects.toThrow('does not serve "another"');
});

test('an error of a call without a result is reported where it occurs', async () => {
  const { near, far, failures } = channels();
  const served = {
    fails: () => {
      throw new WaybillError('internal_error', 'goes back');
    },
  };
  far.serve('it', served);
  near.notified<typeof served>('it').fails();
  await quiet();
  expect(failures).toMatchObject([{ code: 'internal_error' }]);
});

test('the memory of a result is transferred', async () => {
  const { near, far } = channels();
  const bytes = Uint8Array.of(1, 2, 3);
  far.serve('it', { bytes: () => new Transferred({ bytes }, [bytes.buffer]) });
  const answer = await near.remote<{ bytes: () => Transferred<{ bytes: Uint8Array }> }>('it').bytes();
  expect([...answer.bytes]).toEqual([1, 2, 3]);
  expect(bytes.byteLength).toBe(0);
});

test('after the end of the other side every call fails with its reason, also waiting calls', async () => {
  const { near, far } = channels();
  const served = { never: () => new Promise<string>(() => undefined) };
  far.serve('it', served);
  const waiting = near.remote<typeof served>('it').never();
  near.close(new WaybillError('internal_error', 'the thread ended'));
  await expect(waiting).rejects.toMatchObject({ code: 'internal_error' });
  await expect(near.remote<typeof served>('it').never()).rejects.toThrow('the thread ended');
});
