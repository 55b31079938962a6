/** The commands, in the order in which `waybill help` names them: one file each, read only when it is asked for. */
import type { Command } from './io.ts';

const files = {
  init: () => import('./init.ts'),
  check: () => import('./check.ts'),
  run: () => import('./run.ts'),
  demo: () => import('./demo.ts'),
  reference: () => import('./reference.ts'),
  status: () => import('./status.ts'),
  ledger: () => import('./ledger.ts'),
  gaps: () => import('./gaps.ts'),
  backfill: () => import('./backfill.ts'),
  sources: () => import('./sources.ts'),
  operations: () => import('./operations.ts'),
  compare: () => import('./compare.ts'),
  setup: () => import('./setup.ts'),
  encode: () => import('./encode.ts'),
  schema: () => import('./schema.ts'),
  help: () => import('./help.ts'),
} satisfies Record<string, () => Promise<Command>>;

export type CommandName = keyof typeof files;

export const commands = Object.keys(files) as readonly CommandName[];

export function isCommand(name: string): name is CommandName {
  return Object.hasOwn(files, name);
}

export function loadCommand(name: CommandName): Promise<Command> {
  return files[name]();
}
