/** The Unix socket by which commands reach the daemon. Only the owner of the state may connect: directory mode 0700, socket 0600. */
import { lstat, unlink } from 'node:fs/promises';
import { connect } from 'node:net';
import { WaybillError } from '../errors/errors.ts';

/** `sun_path` without its closing zero byte: 108 on Linux, 104 elsewhere (unix(7), unix(4)). */
const maxPathBytes = process.platform === 'linux' ? 107 : 103;

/**
 * Removes the socket file of a process that has ended.
 * @throws WaybillError `admin_listen_failed`: the path is too long, is not a socket, or another process accepts connections on it
 */
export async function clearSocketPath(path: string): Promise<void> {
  const bytes = Buffer.byteLength(path);
  if (bytes > maxPathBytes) {
    throw unusable(
      path,
      `a socket path has at most ${maxPathBytes} bytes on this system, this one has ${bytes}; choose a shorter "dataDir"`,
    );
  }
  const found = await lstat(path).catch((thrown: unknown) => {
    if (systemCode(thrown) === 'ENOENT') return undefined;
    throw unusable(path, 'cannot read its directory', thrown);
  });
  if (!found) return;
  if (!found.isSocket()) throw unusable(path, 'a file that is not a socket has this name');
  if (await accepts(path)) throw unusable(path, 'another process listens there already');
  await unlink(path).catch((thrown: unknown) => {
    throw unusable(path, 'cannot remove the socket of a process that has ended', thrown);
  });
}

function accepts(path: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', (error) => {
      if (['ECONNREFUSED', 'ENOENT'].includes(systemCode(error) ?? '')) resolve(false);
      else reject(unusable(path, 'cannot find out if another process uses it', error));
    });
  });
}

function unusable(path: string, reason: string, cause?: unknown): WaybillError {
  return new WaybillError('admin_listen_failed', `cannot listen on "${path}": ${reason}`, { cause });
}

function systemCode(thrown: unknown): string | undefined {
  return thrown instanceof Error ? (thrown as NodeJS.ErrnoException).code : undefined;
}
