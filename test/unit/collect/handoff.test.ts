import { expect, test } from 'vitest';
import { Handoff } from '../../../src/collect/handoff.ts';

const always = (): boolean => true;

test('without a scheduler an offer resolves at once', async () => {
  const handoff = new Handoff();
  expect(handoff.isWanted).toBe(false);
  await handoff.offer();
});

test('work waits at each offer until the scheduler resumes it, and only while the scheduler wants control', async () => {
  const handoff = new Handoff();
  const order: string[] = [];
  let isWanted = true;
  const steps = handoff.run(
    () => isWanted,
    async () => {
      for (const name of ['a', 'b', 'c', 'd']) {
        order.push(name);
        await handoff.offer();
      }
    },
  );
  while ((await steps.next()).done !== true) {
    order.push('scheduler');
    // A request of the scheduler itself does not hand control back.
    await handoff.offer();
    isWanted = order.length < 4;
  }
  expect(order).toEqual(['a', 'scheduler', 'b', 'scheduler', 'c', 'd']);
});

test('a failure of the work reaches the scheduler, also while the scheduler is busy', async () => {
  const handoff = new Handoff();
  const steps = handoff.run(always, async () => {
    const ahead = handoff.offer();
    await Promise.resolve();
    throw new Error(`failed ${String(ahead instanceof Promise)}`);
  });
  expect((await steps.next()).done).toBe(false);
  await expect(steps.next()).rejects.toThrow('failed');
});

test('a scheduler that fails abandons the work: its offer rejects, and the scheduler waits for the end of the work', async () => {
  const handoff = new Handoff();
  let ended = 'not yet';
  const steps = handoff.run(always, async () => {
    try {
      await handoff.offer();
    } catch (thrown) {
      await Promise.resolve();
      ended = String(thrown);
      throw thrown;
    }
  });
  await steps.next();
  await steps.return();
  expect(ended).toContain('abandoned');
  expect(handoff.isWanted).toBe(false);
});
