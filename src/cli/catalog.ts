/** Every command, in the order in which `waybill help` lists them; each file is loaded only when its command is used. */
import { WaybillError } from '../errors/errors.ts';
import { nearest } from '../settings/nearest.ts';
import type { Command } from './form.ts';

/** All but `completion` and `help`, which describe the others. */
export const files = {
  init: () => import('./commands/init.ts'),
  check: () => import('./commands/check/index.ts'),
  run: () => import('./commands/run.ts'),
  demo: () => import('./commands/demo/index.ts'),
  reference: () => import('./commands/reference.ts'),
  status: () => import('./commands/status.ts'),
  ledger: () => import('./commands/ledger.ts'),
  gaps: () => import('./commands/gaps.ts'),
  backfill: () => import('./commands/backfill/index.ts'),
  sources: () => import('./commands/sources.ts'),
  sinks: () => import('./commands/sinks.ts'),
  'dead-letters': () => import('./commands/dead-letters.ts'),
  replay: () => import('./commands/replay.ts'),
  operations: () => import('./commands/operations.ts'),
  log: () => import('./commands/log.ts'),
  explain: () => import('./commands/explain.ts'),
  backup: () => import('./commands/backup.ts'),
  compare: () => import('./commands/compare/index.ts'),
  archive: () => import('./commands/archive/index.ts'),
  detections: () => import('./commands/detections/index.ts'),
  fleet: () => import('./commands/fleet.ts'),
  setup: () => import('./commands/setup/index.ts'),
  encode: () => import('./commands/encode.ts'),
  schema: () => import('./commands/schema.ts'),
} satisfies Record<string, () => Promise<{ readonly command: Command }>>;

export type CommandName = keyof typeof files | 'completion' | 'help';

export const commands: readonly CommandName[] = [...(Object.keys(files) as (keyof typeof files)[]), 'completion', 'help'];

/** @throws WaybillError `usage` that names the nearest command */
export function known(name: string): CommandName {
  const found = commands.find((each) => each === name);
  if (found !== undefined) return found;
  const meant = nearest(name, commands);
  throw new WaybillError(
    'usage',
    `cannot find the command "${name}"${meant === undefined ? '' : `: the nearest is "${meant}"`}; waybill help lists all`,
  );
}
