/** What a command gets from the process that runs it: streams, environment, and the wish to stop. A test gives its own. */

export interface Io {
  readonly stdin: NodeJS.ReadableStream;
  /** Results. */
  readonly stdout: NodeJS.WritableStream;
  /** Diagnostics. */
  readonly stderr: NodeJS.WritableStream;
  readonly env: NodeJS.ProcessEnv;
  /** Aborted by SIGINT and SIGTERM. */
  readonly signal: AbortSignal;
}

/** One command: one file of this directory. */
export interface Command {
  /** One line for the list of commands. */
  readonly summary: string;
  /** The whole text of `waybill help COMMAND`, with two examples. */
  readonly usage: string;
  /** @returns the exit code. @throws WaybillError, which becomes a message and an exit code */
  run(args: string[], io: Io): Promise<number>;
}
