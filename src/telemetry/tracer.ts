/** Creates spans with the OpenTelemetry API. The secret filter of the log removes secrets from every text attribute. */
import { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import type { Attributes, Context, Tracer as OtelTracer } from '@opentelemetry/api';
import { codeOf } from '../errors/errors.ts';
import type { Span, SpanAttributes, SpanOptions, Tracer } from '../model/telemetry.ts';
import { currentSpan } from './current-span.ts';
import { scrubbed } from './log-fields.ts';

const kinds = { client: SpanKind.CLIENT, producer: SpanKind.PRODUCER } as const;

export function tracerOf(tracer: OtelTracer): Tracer {
  return {
    start: (name, attributes, options) => start(tracer, name, attributes, options, currentSpan.getStore()?.context ?? ROOT_CONTEXT),
  };
}

function start(tracer: OtelTracer, name: string, attributes: SpanAttributes = {}, options: SpanOptions = {}, parent: Context): Span {
  const { kind, startTime } = options;
  const span = tracer.startSpan(
    name,
    {
      kind: kind === undefined ? SpanKind.INTERNAL : kinds[kind],
      attributes: shown(attributes),
      ...(startTime !== undefined && { startTime }),
    },
    parent,
  );
  const context = trace.setSpan(parent, span);
  const { traceId, spanId } = span.spanContext();
  const current = { context, ids: { trace_id: traceId, span_id: spanId } };
  return {
    child: (childName, childAttributes, childOptions) => start(tracer, childName, childAttributes, childOptions, context),
    set: (more) => void span.setAttributes(shown(more)),
    run: (work) => currentSpan.run(current, work),
    end: (thrown, endTime) => {
      if (thrown !== undefined) {
        // Only the code: a message may quote a record.
        span.setAttribute('error.type', codeOf(thrown) ?? (thrown instanceof Error ? thrown.name : '_OTHER'));
        span.setStatus({ code: SpanStatusCode.ERROR });
      }
      span.end(endTime);
    },
  };
}

function shown(attributes: SpanAttributes): Attributes {
  const result: Attributes = {};
  for (const [name, value] of Object.entries(attributes))
    if (value !== undefined) result[name] = typeof value === 'string' ? scrubbed(value) : value;
  return result;
}
