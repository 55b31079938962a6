/**
 * The endpoints of the log. The page is assembled as bytes, so that a
 * large one is cheap.
 */
import { endpoint, type Endpoint } from '../http/endpoint.ts';
import type { Logs } from './logs.ts';
import { logsQuery } from './query.ts';
import { fullPayloadLog, payloadLog } from './shapes.ts';

/** The logs parse the query, after a check of permissions; switches affect both. */
const query = { schema: logsQuery.schema, read: (text: string) => text };
const headers = { 'content-type': 'application/json; charset=utf-8' };

export function logsEndpoints(logs: Logs): Endpoint[] {
  return [
    endpoint({
      method: 'GET',
      path: '/logs/payload',
      summary: 'The events of protect, open and audit actions, without personal data',
      permissions: ['logs.read', 'logs.read.all'],
      query,
      answers: { 200: payloadLog },
      answer: (call) => ({ status: 200, headers, body: logs.answer(call.caller, false, call.query) }),
    }),
    endpoint({
      method: 'GET',
      path: '/logs/full-payload',
      summary: 'The events of protect, open and audit actions, with personal data',
      permissions: ['logs.read.all'],
      query,
      answers: { 200: fullPayloadLog },
      answer: (call) => ({ status: 200, headers, body: logs.answer(call.caller, true, call.query) }),
    }),
  ];
}
