/** Work that is shared among processes: each is given the next task as soon as it is done with its last. */
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import type { Said, Task } from './campaign.ts';

/** The argument with which a program knows that it is one of those that work. */
export const workerArgument = '--worker';

/**
 * Runs `file` so many times with `workerArgument`, and gives each the tasks it asks for, until there are no more, or `heard` returns false.
 * What a task comes to is told to `heard`.
 */
export async function share(file: string, tasks: Iterator<Task, unknown>, workers: number, heard: (said: Said) => boolean): Promise<void> {
  let isOver = false;
  // Stopped early, it still says what it has seen.
  const stop = (): void => void (isOver = true);
  process.once('SIGINT', stop).once('SIGTERM', stop);
  const run = (child: ChildProcess): Promise<void> =>
    new Promise((resolve, reject) => {
      child.on('message', (message: { readonly said?: Said }) => {
        if (message.said !== undefined && !heard(message.said)) isOver = true;
        const task = isOver ? undefined : tasks.next();
        if (task && task.done !== true) {
          child.send({ task: task.value });
          return;
        }
        child.disconnect();
        resolve();
      });
      child.on('error', reject);
      child.on('exit', (code) => {
        if (child.connected || code !== 0) reject(new Error(`a worker ended with ${code ?? 'a signal'}`));
      });
    });
  await Promise.all(Array.from({ length: workers }, () => run(fork(file, [workerArgument], { execArgv: ['--max-semi-space-size=32'] }))));
  process.off('SIGINT', stop).off('SIGTERM', stop);
}

/** The other side: does what it is given, one task after another, until nobody is there any more. */
export function serve(perform: (task: Task) => Promise<Said>, leave: () => void): void {
  process.on('message', ({ task }: { readonly task: Task }) => void perform(task).then((said) => process.send?.({ said })));
  process.on('disconnect', () => {
    leave();
    process.exit();
  });
  process.send?.({});
}
