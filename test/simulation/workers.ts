/** Shares tasks among processes: each process gets the next task when it has finished one. */
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { nothing } from './campaign.ts';
import type { Result, Task } from './campaign.ts';

/** Starts a program as a worker. */
export const workerArgument = '--worker';

/**
 * Starts `file` this many times with `workerArgument`, and gives each worker tasks until there are
 * no more, or `onResult` returns false. A worker that exits during a task fails that task.
 */
export async function share(
  file: string,
  tasks: Iterator<Task, unknown>,
  workers: number,
  onResult: (result: Result) => boolean,
): Promise<void> {
  let isOver = false;
  // A campaign that is stopped early still prints its results.
  const stop = (): void => void (isOver = true);
  process.once('SIGINT', stop).once('SIGTERM', stop);
  const run = (child: ChildProcess): Promise<void> =>
    new Promise((resolve, reject) => {
      let current: Task | undefined;
      const report = (result: Result): void => {
        current = undefined;
        if (!onResult(result)) isOver = true;
      };
      child.on('message', ({ result }: { readonly result?: Result }) => {
        if (result !== undefined) report(result);
        const task = isOver ? undefined : tasks.next();
        if (task && task.done !== true) {
          current = task.value;
          child.send({ task: task.value });
          return;
        }
        child.disconnect();
        resolve();
      });
      child.on('error', reject);
      child.on('exit', (code, signal) => {
        const message = `the worker ended with ${code ?? signal ?? 'no code'}`;
        if (current === undefined) {
          if (child.connected || code !== 0) reject(new Error(message));
          return;
        }
        report({ task: current, faults: [message], environment: undefined, sums: nothing() });
        isOver = true;
        resolve();
      });
    });
  await Promise.all(Array.from({ length: workers }, () => run(fork(file, [workerArgument], { execArgv: ['--max-semi-space-size=32'] }))));
  process.off('SIGINT', stop).off('SIGTERM', stop);
}

/** In a worker: performs tasks until the parent process disconnects. */
export function serve(perform: (task: Task) => Promise<Result>, leave: () => void): void {
  process.on('message', ({ task }: { readonly task: Task }) => void perform(task).then((result) => process.send?.({ result })));
  process.on('disconnect', () => {
    leave();
    process.exit();
  });
  process.send?.({});
}
