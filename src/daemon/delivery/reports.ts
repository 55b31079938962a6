/**
 * The reports of a delivery loop in another thread: log lines, counts, and the certificates that
 * its sink has seen.
 */
import { presentable } from '../../telemetry/log-fields.ts';
import type { LogEventCode } from '../../model/log-events.ts';
import type { Log, Meters } from '../../model/telemetry.ts';
import { carried, revived, type CarriedError } from '../carried-error.ts';
import type { Notified } from '../channel.ts';
import type { LoopParts } from './loop.ts';
import type { RemoteTracer, SpanService } from './remote-tracer.ts';

export type ReportService = ReturnType<typeof reportService>;

/** In the main thread. */
export function reportService({ log, meters, shown }: Pick<LoopParts, 'log' | 'meters' | 'shown'>, spans: SpanService) {
  return {
    /** @param span  the span of the line */
    write: (event: LogEventCode, fields: object, error: CarriedError | undefined, span: number | undefined) =>
      spans.within(span, () => log.write(event, { ...fields, ...(error && { error: revived(error) }) })),
    count: (name: keyof Meters, values: readonly unknown[]) => (meters[name] as (...values: readonly unknown[]) => void)(...values),
    shown: (host: string, validTo: number) => shown?.(host, { validTo }),
  };
}

/** In the thread of the loop, which removes the secrets that it has read. */
export function remoteLog(reports: Notified<ReportService>, tracer: Pick<RemoteTracer, 'current'> | undefined): Log {
  return {
    write: (event, fields) => {
      const { error, ...others } = (fields ?? {}) as { error?: unknown };
      reports.write(event, presentable(others), error === undefined ? undefined : carried(error), tracer?.current);
    },
  };
}

export function remoteMeters(reports: Notified<ReportService>): Meters {
  const get =
    (_: object, name: string | symbol) =>
    (...values: readonly unknown[]) =>
      reports.count(name as keyof Meters, values);
  return new Proxy({}, { get }) as Meters;
}
