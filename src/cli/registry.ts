/** Loads a command by its name. */
import { files, type CommandName } from './catalog.ts';
import type { Command } from './form.ts';

export async function loadCommand(name: CommandName): Promise<Command> {
  if (name === 'help') return (await import('./help.ts')).helpCommand(loadCommand);
  if (name === 'completion') return (await import('./completion.ts')).completionCommand(loadCommand);
  return (await files[name]()).command;
}
