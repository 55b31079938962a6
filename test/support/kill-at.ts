/**
 * Loaded with `--import`: kills this process (SIGKILL) before its `KILL_AT`th change of the archive, which is a file that gets or loses
 * its name in the folder `KILL_IN`, or a request to a bucket with PUT or DELETE.
 */
import promises from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { Socket } from 'node:net';

const at = Number(process.env['KILL_AT']);
const folder = `${process.env['KILL_IN'] ?? ''}/`;
let changes = 0;

function count(): void {
  changes += 1;
  if (changes === at) process.kill(process.pid, 'SIGKILL');
}

for (const name of ['link', 'rename'] as const) {
  const original = promises[name];
  promises[name] = (from, to) => {
    if (String(to).startsWith(folder)) count();
    return original(from, to);
  };
}
const { unlink } = promises;
promises.unlink = (path) => {
  if (String(path).startsWith(folder)) count();
  return unlink(path);
};
syncBuiltinESMExports();

// eslint-disable-next-line @typescript-eslint/unbound-method -- called with its socket
const write = Socket.prototype.write as (this: Socket, ...args: unknown[]) => boolean;
Socket.prototype.write = function (this: Socket, ...args: unknown[]): boolean {
  if (/^(PUT|DELETE) /.test(String(args[0]).slice(0, 7))) count();
  return write.apply(this, args);
};
