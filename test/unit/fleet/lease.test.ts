/** What a process knows of its lease by its own clock, and the requests to sinks that depend on it. */
import { expect, test } from 'vitest';
import { Sender } from '../../../src/deliver/sender.ts';
import { Lease } from '../../../src/fleet/lease.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const noSignal = new AbortController().signal;

test('a request to a sink waits until the lease is renewed, and fails when it is lost', async () => {
  const clock = new VirtualClock(0, 'manual');
  const lease = new Lease(clock, 15_000, 0);
  const sender = new Sender({
    id: 'siem',
    deadline: 1_000,
    clock,
    journal: { owned: (signal: AbortSignal) => lease.owned(signal) },
  } as never);
  const sent: string[] = [];
  const send = (name: string, signal = noSignal): Promise<unknown> =>
    sender.call(() => {
      sent.push(name);
      return Promise.resolve();
    }, signal);
  await clock.advance(12_999);
  await send('before its end');
  // Less than the whole lease: the request still has to arrive.
  await clock.advance(1);
  expect(lease.isValid).toBe(false);
  const waiting = send('after the renewal');
  const stop = new AbortController();
  const stopped = expect(send('stopped', stop.signal)).rejects.toThrow('the daemon stops');
  await clock.advance(60_000);
  stop.abort(new Error('the daemon stops'));
  await stopped;
  expect(sent).toEqual(['before its end']);
  lease.renewed(clock.monotonic());
  await waiting;
  expect(sent).toEqual(['before its end', 'after the renewal']);
  await clock.advance(60_000);
  const lost = expect(send('lost')).rejects.toMatchObject({ code: 'lease_lost' });
  lease.lose();
  await lost;
  await expect(send('later')).rejects.toMatchObject({ code: 'lease_lost' });
  expect(sent).toHaveLength(2);
});

test('a renewal counts from the time before its request', async () => {
  const clock = new VirtualClock(0, 'manual');
  const lease = new Lease(clock, 15_000, 0);
  // The process was stopped between the request and the answer.
  await clock.advance(20_000);
  lease.renewed(1_000);
  expect(lease.isValid).toBe(false);
});
