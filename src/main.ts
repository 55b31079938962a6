/**
 * The command line: finds the command, runs it, and turns what comes of it into an exit code. Whatever is thrown becomes a message on
 * standard error; a command itself never ends the process.
 */
import { once } from 'node:events';
import { fitted } from './cli/help-text.ts';
import { known } from './cli/catalog.ts';
import { exitCodeOf } from './cli/exit-code.ts';
import type { Io } from './cli/io.ts';
import { loadCommand } from './cli/registry.ts';
import { WaybillError, messageOf } from './errors.ts';
import { version } from './version.ts';

/** How long the last lines of a daemon may take to be read. */
const lastLinesMs = 1_000;

/** Runs the program for the arguments behind its name, and sets the exit code. */
export async function main(argv: readonly string[], run = dispatch): Promise<void> {
  const stop = new AbortController();
  const onSignal = (signal: NodeJS.Signals): void => {
    // The second one is from somebody who does not want to wait.
    if (stop.signal.aborted) process.exit(signal === 'SIGINT' ? 130 : 143);
    stop.abort(new WaybillError('aborted', `received ${signal}`));
  };
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal);
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    // The daemon goes on: its sink says that nobody reads, and the others are not concerned.
    if (argv[0] === 'run') return;
    // The reader of our output has what it wanted (`waybill encode … | head`).
    if (error.code === 'EPIPE') process.exit(0);
    process.stderr.write(`cannot write to standard output: ${messageOf(error)}\n`);
    process.exit(1);
  });
  // Whoever read our diagnostics is gone, or their file is full: the exit code says the rest.
  process.stderr.on('error', () => undefined);
  const { stdin, stdout, stderr, env } = process;
  process.exitCode = await run(argv, { stdin, stdout, stderr, env, signal: stop.signal });
  process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
  if (argv[0] === 'run') await endWithoutReaders();
}

/** Ends the process of a daemon whose output nobody takes: what is not written yet would keep it running. */
async function endWithoutReaders(): Promise<void> {
  const signal = AbortSignal.timeout(lastLinesMs);
  const pending = [process.stdout, process.stderr].filter(({ writableLength }) => writableLength > 0);
  const delivered = await Promise.all(pending.map((stream) => once(stream, 'drain', { signal }))).catch((thrown: unknown) => thrown);
  if (delivered instanceof Error) process.exit();
}

/** Runs one command line. @returns the exit code; nothing is thrown */
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
    return report(thrown, first, io);
  }
}

function wantsHelp(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  return args.slice(0, end < 0 ? args.length : end).some((arg) => arg === '--help' || arg === '-h');
}

function report(thrown: unknown, name: string, io: Io): number {
  if (thrown instanceof WaybillError) {
    io.stderr.write(`${[thrown.message, ...thrown.problems.map((problem) => `  ${problem}`)].join('\n')}\n`);
    return exitCodeOf(thrown);
  }
  if (isParseArgsError(thrown)) {
    const [, option = ''] = /^Unknown option '(--[\w-]+)/.exec(thrown.message) ?? [];
    const renamed = renamedOptions.get(option);
    if (renamed !== undefined) {
      io.stderr.write(`cannot use ${option}: it was renamed to ${renamed}\n`);
      return 2;
    }
    io.stderr.write(`cannot read the options of "${name}": ${thrown.message}; waybill help ${name} names them\n`);
    return 2;
  }
  io.stderr.write(`${thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown)}\n`);
  return 1;
}

/** Old names of options, and the name that replaced each; a command that still has an option of the old name never gets here. */
const renamedOptions: ReadonlyMap<string, string> = new Map([
  ['--state', '--data-dir'],
  ['--by', '--actor'],
  ['--why', '--reason'],
  ['--expect-final', '--require-final'],
  ['--expect-state', '--require-state'],
]);

/** What `parseArgs` of node:util throws for a command line that does not fit. */
function isParseArgsError(thrown: unknown): thrown is Error {
  return thrown instanceof Error && 'code' in thrown && typeof thrown.code === 'string' && thrown.code.startsWith('ERR_PARSE_ARGS_');
}
