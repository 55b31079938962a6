/** Loads a command by its name. `help` describes the others from their catalog, so it is not in that catalog itself. */
import { files } from './catalog.ts';
import type { CommandName } from './catalog.ts';
import type { Command } from './io.ts';

export function loadCommand(name: CommandName): Promise<Command> {
  return name === 'help' ? import('./help.ts') : files[name]();
}
