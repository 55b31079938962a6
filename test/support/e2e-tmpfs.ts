/** A small file system for one test, which the test can fill. */
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import type { Place } from './e2e-place.ts';

/** A mounted file system; undefined, with the reason printed, if mounting is not possible. */
export function mounted(place: Place, name: string, options: string): (AsyncDisposable & { readonly path: string }) | undefined {
  const path = place.path(name);
  mkdirSync(path, { recursive: true });
  const { status, stderr, error } = spawnSync('mount', ['-t', 'tmpfs', '-o', options, 'none', path], { encoding: 'utf8' });
  if (status !== 0) {
    process.stderr.write(`skipped, a tmpfs cannot be mounted here: ${stderr || (error?.message ?? '')}\n`);
    return undefined;
  }
  return {
    path,
    [Symbol.asyncDispose]: async () => {
      // Lazily: a daemon of a failed test may still use it.
      spawnSync('umount', ['-l', path]);
      await Promise.resolve();
    },
  };
}
