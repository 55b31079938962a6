/**
 * The measured program: the package that `npm pack` builds of this checkout, unpacked, as users
 * install it.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
/** Under `node_modules`, so that the package finds its dependencies. */
const cache = join(root, 'node_modules/.cache/waybill-bench');

/**
 * @returns the path of `bin/waybill.js` in the package, which is built again only if a source is
 * newer
 */
export function waybill(): string {
  const program = join(cache, 'package/bin/waybill.js');
  const sources = ['src', 'bin', 'config', 'content', 'package.json', 'package-lock.json'];
  const madeAt = statSync(join(cache, 'package'), { throwIfNoEntry: false })?.ctimeMs ?? 0;
  if (Math.max(...sources.map((name) => newest(join(root, name)))) < madeAt) return program;
  process.stderr.write('packing the program\n');
  const work = join(cache, `new-${process.pid}`);
  mkdirSync(work, { recursive: true });
  const tarball =
    execFileSync('npm', ['pack', '--silent', '--pack-destination', work], { cwd: root, encoding: 'utf8' }).trim().split('\n').at(-1) ?? '';
  execFileSync('tar', ['-xzf', join(work, tarball), '-C', work]);
  rmSync(join(cache, 'package'), { recursive: true, force: true });
  renameSync(join(work, 'package'), join(cache, 'package'));
  rmSync(work, { recursive: true });
  return program;
}

function newest(path: string): number {
  const { mtimeMs } = statSync(path);
  if (!statSync(path).isDirectory()) return mtimeMs;
  return Math.max(mtimeMs, ...readdirSync(path).map((name) => newest(join(path, name))));
}
