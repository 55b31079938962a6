/** The span of the asynchronous call that runs now. The log reads its ids; nothing is stored while traces are off. */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Context } from '@opentelemetry/api';

interface CurrentSpan {
  readonly context: Context;
  readonly ids: { readonly trace_id: string; readonly span_id: string };
}

export const currentSpan = new AsyncLocalStorage<CurrentSpan>();

export function currentIds(): CurrentSpan['ids'] | undefined {
  return currentSpan.getStore()?.ids;
}
