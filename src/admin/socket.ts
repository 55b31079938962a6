/**
 * The path of the Unix socket in the state directory, by which commands ask the running daemon. Only its owner may connect: the directory is
 * 0700 and the socket 0600. A socket file that a dead process left behind is taken away; one that answers is not.
 */
import { lstat, unlink } from 'node:fs/promises';
import { connect } from 'node:net';
import { WaybillError } from '../errors.ts';

/** `sun_path` without its closing zero byte: 108 on Linux, 104 elsewhere (unix(7), unix(4)). */
const pathBytesMax = process.platform === 'linux' ? 107 : 103;

/**
 * Makes the path free to listen on.
 *
 * @throws WaybillError `admin_listen_failed`: too long, not a socket, or another process answers there
 */
export async function clearSocketPath(path: string): Promise<void> {
  const bytes = Buffer.byteLength(path);
  if (bytes > pathBytesMax) {
    throw unusable(path, `the path of a socket has at most ${pathBytesMax} bytes here, this one has ${bytes}; choose a shorter "state"`);
  }
  const found = await lstat(path).catch((thrown: unknown) => {
    if (systemCode(thrown) === 'ENOENT') return undefined;
    throw unusable(path, 'its directory cannot be read', thrown);
  });
  if (!found) return;
  if (!found.isSocket()) throw unusable(path, 'something that is not a socket has this name');
  if (await answers(path)) throw unusable(path, 'another process answers there');
  await unlink(path).catch((thrown: unknown) => {
    throw unusable(path, 'a socket that nobody answers cannot be removed', thrown);
  });
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', (error) => {
      if (['ECONNREFUSED', 'ENOENT'].includes(systemCode(error) ?? '')) resolve(false);
      else reject(unusable(path, 'it cannot be asked whether it is in use', error));
    });
  });
}

function unusable(path: string, reason: string, cause?: unknown): WaybillError {
  return new WaybillError('admin_listen_failed', `cannot listen on "${path}": ${reason}`, { cause });
}

function systemCode(thrown: unknown): string | undefined {
  return thrown instanceof Error ? (thrown as NodeJS.ErrnoException).code : undefined;
}
