/**
 * Two ends of a connection in this process. It clones messages as between threads, and delivers
 * them in the next microtask.
 */
import type { Port } from '../../src/daemon/channel.ts';

/** @param isCut  true once no message arrives any more */
export function memoryPorts(isCut: () => boolean = () => false): readonly [Port, Port] {
  const handlers: ((message: unknown) => void)[] = [];
  const end = (own: number, other: number): Port => ({
    post: (message, transfer) => {
      const clone: unknown = structuredClone(message, { transfer: [...transfer] });
      queueMicrotask(() => {
        if (!isCut()) handlers[other]?.(clone);
      });
    },
    receive: (handler) => (handlers[own] = handler),
  });
  return [end(0, 1), end(1, 0)];
}
