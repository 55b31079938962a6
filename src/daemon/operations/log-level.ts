/** The request to change the level of the log for a while. It changes no state, so it is no operation of the journal. */
import { z } from 'zod';
import { WaybillError } from '../../errors/errors.ts';
import { nearestOrAll } from '../../settings/nearest.ts';
import type { Logs } from '../../telemetry/log.ts';

/** A day: a permanent level belongs in the configuration. */
export const maxLevelMs = 86_400_000;

const logLevelSchema = z.strictObject({
  operation: z.literal('log level'),
  level: z.enum(['debug', 'info', 'warn', 'error']),
  /** Undefined: every component. */
  component: z.string().max(100).optional(),
  forMs: z.int().min(1).max(maxLevelMs),
  actor: z.string().min(1).max(200),
});

export type LogLevelRequest = z.infer<typeof logLevelSchema>;

/**
 * @returns undefined when the request is for another operation
 * @throws WaybillError `usage` when it is malformed
 */
export function logLevelRequest(given: unknown): LogLevelRequest | undefined {
  if (typeof given !== 'object' || given === null || !('operation' in given) || given.operation !== 'log level') return undefined;
  const parsed = logLevelSchema.safeParse(given);
  if (parsed.success) return parsed.data;
  throw new WaybillError('usage', `cannot read the request: ${parsed.error.issues.map(({ message }) => message).join(', ')}`);
}

/** @throws WaybillError `usage` for a component that has written no line, and whose subcomponents have written none */
export function setLogLevel({ level, component, forMs, actor }: LogLevelRequest, logs: Pick<Logs, 'setLevel' | 'components'>): void {
  const known = logs.components();
  if (component !== undefined && !known.some((each) => each === component || each.startsWith(`${component}/`)))
    throw new WaybillError('usage', `cannot set the log level of the component "${component}": ${nearestOrAll(component, known)}`);
  logs.setLevel({ level, component, forMs, actor });
}
