/**
 * The reference service as a program. It imports nothing of the daemon, so that a misreading of the
 * specification there cannot be hidden by the same misreading here.
 */
import { helpText, optionsOf } from './options.ts';
import { BadValue } from './values.ts';

await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<void> {
  const end = new AbortController();
  const stop = (): void => end.abort();
  // The parent that started this process with an IPC channel has ended.
  process.once('SIGTERM', stop).once('SIGINT', stop).once('disconnect', stop);
  process.stdout.once('error', (error: Error) => {
    process.stderr.write(`cannot write to standard output: ${error.message}\n`);
    process.exitCode = 1;
    stop();
  });
  try {
    const options = optionsOf(args);
    if (options.help) process.stdout.write(helpText());
    else {
      // Loaded here so that help and errors appear quickly.
      const { serve } = await import('./serve.ts');
      await serve(options, end.signal, (text) => process.stdout.write(text));
    }
  } catch (error) {
    if (end.signal.aborted && error === end.signal.reason) return;
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = error instanceof BadValue ? 2 : 1;
  } finally {
    // An open IPC channel would keep the process alive.
    if (process.connected) process.disconnect();
  }
}
