/**
 * A process that opens the sink `stdout` and sends batches on request of its parent, so that a test
 * can read its standard output and kill it.
 */
import { flushCompileCache } from 'node:module';
import type { Batch, Sink } from '../../../src/model/sink.ts';
import { stdout } from '../../../src/sink/stdout.ts';
import { contextOf, ModelKept } from './sink-batches.ts';

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
      abort.abort(new Error('the shutdown timeout has passed'));
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
// Node writes its compile cache at exit, and this process is killed.
flushCompileCache();
