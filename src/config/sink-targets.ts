/** Rules that tie settings of one type of sink together: what needs something else, and what has no effect beside it. */
import type { Document, Fault } from './document.ts';
import { memberOf } from './schema-walk.ts';

/** Of sinks of the type `elasticsearch`: one way to name the servers, one way to say who we are, one place to write to. */
export function sinkTargetFaults({ value }: Document): readonly Fault[] {
  const sinks = memberOf(value, 'sinks');
  return (Array.isArray(sinks) ? sinks : []).flatMap((sink: unknown, index) => {
    if (memberOf(sink, 'type') !== 'elasticsearch') return [];
    const has = (key: string): boolean => memberOf(sink, key) !== undefined;
    const fault = (key: string, words: string): Fault => ({ path: ['sinks', index, key], words });
    return [
      ...(has('nodes') || has('cloudId') ? [] : [fault('nodes', 'is missing: it takes the addresses of the cluster, or "cloudId"')]),
      ...(has('nodes') && has('cloudId') ? [fault('cloudId', 'is not used: "nodes" names the addresses')] : []),
      ...(has('apiKey') && has('username') ? [fault('username', 'is not used: "apiKey" says who we are')] : []),
      ...(has('username') && !has('password') ? [fault('password', 'is missing: "username" needs it')] : []),
      ...(has('password') && !has('username') ? [fault('username', 'is missing: "password" needs it')] : []),
      ...(has('index') ? ['dataset', 'namespace'].filter(has).map((key) => fault(key, 'is not used: "index" names the target')) : []),
    ];
  });
}
