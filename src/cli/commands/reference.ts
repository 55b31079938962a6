/** `waybill reference`: runs the reference service as a separate process, and ends it with this one. */
import { addAbortListener } from 'node:events';
import { execFileSync, spawn } from 'node:child_process';
import { constants } from 'node:os';
import { fileURLToPath } from 'node:url';
import { programFile } from '../../disk/files.ts';
import type { Command } from '../form.ts';
import type { Io } from '../io.ts';

const program = fileURLToPath(programFile('reference/main'));

/** The service parses its own options, so its own help is printed. */
export const command: Command = {
  name: 'reference',
  summary: 'runs the reference service: an implementation of the polled service, with people, credentials and records',
  get usage() {
    return execFileSync(process.execPath, [program, '--help'], { encoding: 'utf8' });
  },
  forms: [],
  run,
};

/** Runs the service on this terminal until it ends. @returns its exit code; 128 plus the number of another signal that ended it */
async function run(args: readonly string[], io: Pick<Io, 'signal'>): Promise<number> {
  // Through the IPC channel the service notices the end of this process, whatever the cause.
  const child = spawn(process.execPath, [program, ...args], { stdio: ['inherit', 'inherit', 'inherit', 'ipc'] });
  using _listener = addAbortListener(io.signal, () => child.kill('SIGTERM'));
  return await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => {
      // SIGTERM may arrive before the service handles signals.
      const asked = io.signal.aborted && signal === 'SIGTERM';
      resolve(asked ? 0 : (code ?? 128 + constants.signals[signal ?? 'SIGTERM']));
    });
  });
}
