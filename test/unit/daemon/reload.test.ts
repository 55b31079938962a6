import { expect, test } from 'vitest';
import { followConfig } from '../../../src/daemon/reload.ts';
import { WaybillError } from '../../../src/errors/errors.ts';
import type { Journal } from '../../../src/journal/journal.ts';
import type { Running } from '../../../src/daemon/running.ts';
import { load, valid } from '../../support/config/loading.ts';
import { Lines } from '../../support/collect/world.ts';

const byFile = { changed: true };
const bySignal = { changed: false };
type Step = { readonly changed: boolean; readonly isWrong?: boolean };

/** The log events of a daemon whose configuration never changes. A wrong step cannot be read. */
async function eventsOf(...steps: Step[]): Promise<readonly string[]> {
  const loaded = await load(valid());
  const lines = new Lines();
  const left = [...steps];
  let step: Step | undefined;
  const ended = new Error('no step is left');
  const configSource = {
    due: () => ((step = left.shift()) ? Promise.resolve(step) : Promise.reject(ended)),
    load: () => (step?.isWrong ? Promise.reject(new WaybillError('config_invalid', 'wrong')) : Promise.resolve(loaded)),
  };
  const running = Object.assign(Object.create(null) as Running, { config: loaded.config });
  const parts = { configSource, running, journal: Object.create(null) as Journal, log: lines, result: () => undefined };
  await expect(followConfig(parts, new AbortController().signal)).rejects.toBe(ended);
  return lines.lines.map(({ event }) => event);
}

test('a configuration without a new value is logged, but not for the check after the start, which finds a change in any case', async () => {
  expect(await eventsOf(byFile)).toEqual([]);
  expect(await eventsOf(byFile, byFile)).toEqual(['config.unchanged']);
  expect(await eventsOf(bySignal)).toEqual(['config.unchanged']);
  expect(await eventsOf({ ...byFile, isWrong: true }, byFile)).toEqual(['config.rejected', 'config.unchanged']);
});
