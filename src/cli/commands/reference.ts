/**
 * `waybill reference`: starts the reference service as a program of its own and ends it when this process is to end. Only the process
 * boundary joins the two.
 */
import { execFileSync, spawn } from 'node:child_process';
import { constants } from 'node:os';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Io } from '../io.ts';

export const summary = 'runs the reference service: an implementation of the polled service, with people, credentials and records';

// Sources when this file is a source, the build when it is built.
const program = fileURLToPath(new URL(`../../reference/main${extname(import.meta.url)}`, import.meta.url));

/** The service's own help: it alone knows its switches. */
export const usage = execFileSync(process.execPath, [program, '--help'], { encoding: 'utf8' });

/**
 * Runs the service on this process's terminal until it ends or the signal is aborted.
 * @returns its exit code; 128 and the signal's number when a signal ended it that was not meant to
 */
export async function run(args: readonly string[], io: Pick<Io, 'signal'>): Promise<number> {
  // By the channel the service notices when this process is gone, however that came.
  const child = spawn(process.execPath, [program, ...args], { stdio: ['inherit', 'inherit', 'inherit', 'ipc'] });
  const end = (): void => void child.kill('SIGTERM');
  if (io.signal.aborted) end();
  io.signal.addEventListener('abort', end);
  try {
    return await new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('exit', (code, signal) => {
        // One that was ended before it could listen to signals was ended all the same.
        const asked = io.signal.aborted && signal === 'SIGTERM';
        resolve(asked ? 0 : (code ?? 128 + constants.signals[signal ?? 'SIGTERM']));
      });
    });
  } finally {
    io.signal.removeEventListener('abort', end);
  }
}
