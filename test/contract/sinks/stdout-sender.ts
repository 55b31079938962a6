/** A process that opens the sink `stdout` and sends what its parent says, so that its standard output can be read and the process be killed. */
import { flushCompileCache } from 'node:module';
import type { Batch, Sink } from '../../../src/model/sink.ts';
import { stdout } from '../../../src/sink/stdout.ts';
import { contextOf, ModelKept } from '../sink-batches.ts';

export type Order =
  | { readonly id: number; readonly what: 'open' | 'close' | 'abort' }
  | { readonly id: number; readonly what: 'send'; readonly batch: Batch };

let sink: Sink | undefined;
let abort = new AbortController();

async function obey(order: Order): Promise<unknown> {
  switch (order.what) {
    case 'open':
      sink = await stdout.open({}, contextOf('under-test'), new ModelKept(), abort.signal);
      return undefined;
    case 'send':
      abort = new AbortController();
      return sink?.send(order.batch, abort.signal);
    case 'abort':
      abort.abort(new Error('the grace period is over'));
      return undefined;
    case 'close':
      return sink?.[Symbol.asyncDispose]();
  }
}

process.on('message', (order: Order) => {
  obey(order).then(
    (result) => process.send?.({ id: order.id, result }),
    (error: unknown) => process.send?.({ id: order.id, error }),
  );
});
process.send?.({ id: 0 });
// Node keeps what it compiled at the end of a process, and this one is killed.
flushCompileCache();
