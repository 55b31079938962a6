/** The command line: runs a command and maps its result or error to an exit code. A command never ends the process itself. */
import { fitted } from './cli/help-text.ts';
import { known } from './cli/catalog.ts';
import { exitCodeOf, signalExitCodes, StoppedError } from './cli/exit-code.ts';
import type { Io } from './cli/io.ts';
import { loadCommand } from './cli/registry.ts';
import { shareNames } from './connect/names.ts';
import { orAborted } from './time/deadline.ts';
import { WaybillError, messageOf } from './errors/errors.ts';
import { version } from './disk/version.ts';

/** How long the daemon waits for the reader of its last lines, ms. */
const lastLinesMs = 1_000;
/** A command has ended, and something still holds the process: a look-up that nobody waits for, or a connection. ms */
const lingerMs = 500;
/** How long a command may take to end after a signal, ms. The daemon has its own limit. */
const stopMs = 25_000;

/** Runs the program with the arguments after its name, and sets the exit code. */
export async function main(argv: readonly string[], run = dispatch): Promise<void> {
  shareNames();
  const stop = new AbortController();
  const onSignal = (signal: keyof typeof signalExitCodes): void => {
    // The second signal ends the process at once.
    if (stop.signal.aborted) endNow(signalExitCodes[signal]);
    stop.abort(new StoppedError(signal));
    if (argv[0] !== 'run') setTimeout(() => endNow(signalExitCodes[signal]), stopMs).unref();
  };
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal);
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    // The daemon continues: its stdout sink reports the missing reader; the other sinks are not affected.
    if (argv[0] === 'run') return;
    // The reader has closed the pipe (`waybill encode … | head`).
    if (error.code === 'EPIPE') process.exit(0);
    process.stderr.write(`cannot write to standard output: ${messageOf(error)}\n`);
    process.exit(1);
  });
  // No reader of diagnostics, or its file is full: the exit code remains.
  process.stderr.on('error', () => undefined);
  const { stdin, stdout, stderr, env } = process;
  process.exitCode = await run(argv, { stdin, stdout, stderr, env, signal: stop.signal });
  process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
  await written(argv[0] === 'run' ? AbortSignal.timeout(lastLinesMs) : new AbortController().signal);
  setTimeout(() => endNow(process.exitCode), lingerMs).unref();
}

/** Waits for the readers of the output. Without a reader, the last lines of the daemon are lost. */
async function written(signal: AbortSignal): Promise<void> {
  const streams = [process.stdout, process.stderr].filter(({ writableLength }) => writableLength > 0);
  const all = Promise.all(streams.map((stream) => new Promise((resolve) => stream.write('', resolve))));
  await orAborted(all, signal).catch(() => undefined);
}

/**
 * Ends the process at once. `process.exit` would wait for the threads of libuv's pool, and so for a silent name server or a disk that hangs:
 * another image of Node takes the place of this one, and has no such threads.
 */
function endNow(code: number | string | null | undefined): never {
  process.execve?.(process.execPath, [process.execPath, '-e', `process.exit(${Number(code ?? 0)})`], {});
  process.exit();
}

/** Runs one command line and never throws. @returns the exit code */
export async function dispatch(argv: readonly string[], io: Io): Promise<number> {
  const [first = 'help', ...args] = argv;
  try {
    if (first === '--version' || first === '-v') {
      io.stdout.write(`${version}\n`);
      return 0;
    }
    const name = first === '--help' || first === '-h' ? 'help' : known(first);
    const command = await loadCommand(name);
    if (wantsHelp(args)) {
      io.stdout.write(fitted(command.usage));
      return 0;
    }
    return await command.run(args, io);
  } catch (thrown) {
    return report(thrown, io);
  }
}

function wantsHelp(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  return args.slice(0, end < 0 ? args.length : end).some((arg) => arg === '--help' || arg === '-h');
}

function report(thrown: unknown, io: Io): number {
  if (thrown instanceof WaybillError) {
    io.stderr.write(`${[thrown.message, ...thrown.problems.map((problem) => `  ${problem}`)].join('\n')}\n`);
    return exitCodeOf(thrown);
  }
  io.stderr.write(`${thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown)}\n`);
  return 1;
}
