/**
 * The reference service as a program: reads the command line, and serves. It imports nothing of the forwarder, so that one misreading of the
 * specification cannot cancel out another.
 */
import { helpText, optionsOf } from './options.ts';
import { BadValue } from './values.ts';

await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<void> {
  const end = new AbortController();
  const stop = (): void => end.abort();
  // Also when a parent that started this process with a channel is gone.
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
      // Help and refusals are quick: the rooms of the service are loaded when they are needed.
      const { serve } = await import('./serve.ts');
      await serve(options, end.signal);
    }
  } catch (error) {
    if (end.signal.aborted && error === end.signal.reason) return;
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = error instanceof BadValue ? 2 : 1;
  } finally {
    // An open channel would keep the process.
    if (process.connected) process.disconnect();
  }
}
