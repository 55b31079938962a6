/** The parts of a command that its help, completion and parser share. */
import type { Io } from './io.ts';
import type { Argument, Options } from './option.ts';

/** Arguments without a hyphen, and how many of them the command accepts. */
export interface Positionals {
  /** Placeholder in the help, such as `WINDOW…`. */
  readonly name: string;
  readonly help: string;
  /** For completion. */
  readonly choices?: readonly string[];
  readonly min?: number;
  readonly max?: number;
}

/** One way to call a command: the command itself, or one of its subcommands. */
export interface Form {
  /** Undefined for the command itself. */
  readonly subcommand: string | undefined;
  readonly summary: string;
  readonly options: Options;
  readonly positionals: Positionals | undefined;
  readonly run: (given: Given, io: Io) => Promise<number>;
}

export interface Given {
  readonly values: Readonly<Record<string, Argument>>;
  readonly positionals: readonly string[];
}

export interface Command {
  readonly name: string;
  /** One line for the list of commands. */
  readonly summary: string;
  /** The whole text of `waybill help COMMAND`. */
  readonly usage: string;
  readonly forms: readonly Form[];
  /** @returns the exit code. @throws WaybillError, which becomes a message and an exit code */
  run(args: readonly string[], io: Io): Promise<number>;
}

/** The words that call a form, in help and errors. */
export function wordsOf(name: string, form: Pick<Form, 'subcommand'>): string {
  return form.subcommand === undefined ? name : `${name} ${form.subcommand}`;
}
