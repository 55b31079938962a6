/**
 * The OTEL_ variables. The OpenTelemetry specification ("Environment Variable Specification") demands to ignore a wrong value with a
 * warning.
 */

type Variables = Readonly<Record<string, string | undefined>>;

const numbers = [
  ...['OTEL_EXPORTER_OTLP_TIMEOUT', 'OTEL_EXPORTER_OTLP_TRACES_TIMEOUT', 'OTEL_EXPORTER_OTLP_METRICS_TIMEOUT'],
  ...['OTEL_METRIC_EXPORT_INTERVAL', 'OTEL_METRIC_EXPORT_TIMEOUT'],
  ...['OTEL_BSP_SCHEDULE_DELAY', 'OTEL_BSP_MAX_QUEUE_SIZE', 'OTEL_BSP_MAX_EXPORT_BATCH_SIZE', 'OTEL_BSP_EXPORT_TIMEOUT'],
] as const;
type NumberName = (typeof numbers)[number];

const protocols = ['OTEL_EXPORTER_OTLP_PROTOCOL', 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'OTEL_EXPORTER_OTLP_METRICS_PROTOCOL'];
const samplers = ['always_on', 'always_off', 'traceidratio'] as const;
const sampler = 'OTEL_TRACES_SAMPLER';
const ratio = 'OTEL_TRACES_SAMPLER_ARG';

/** Of a timer in Node, ms: a longer one would end after 1 ms. */
const maxNumber = 2 ** 31 - 1;

/** A number from 1 to 2147483647; undefined if the variable is not set or wrong. */
export function positive(name: NumberName, environment: Variables = process.env): number | undefined {
  const value = Number(textOf(name, environment));
  return value >= 1 && value <= maxNumber ? value : undefined;
}

/** No span has a remote parent, so `parentbased_x` decides as `x` does: both decide by the trace id, which the children share. */
export function samplerName(environment: Variables = process.env): (typeof samplers)[number] | undefined {
  const given = textOf(sampler, environment).replace(/^parentbased_/, '');
  return samplers.find((name) => name === given);
}

/** The share of traces that `traceidratio` keeps, 0 to 1. */
export function samplerRatio(environment: Variables = process.env): number | undefined {
  const text = textOf(ratio, environment);
  const value = Number(text);
  return text !== '' && value >= 0 && value <= 1 ? value : undefined;
}

/** @returns a line for each variable whose value is ignored */
export function ignoredVariables(environment: Variables): readonly string[] {
  const shown = (name: string): string => JSON.stringify(textOf(name, environment).slice(0, 80));
  const wrong = (name: string, expected: string): string => `${name}: ${shown(name)} is not ${expected}; the default applies`;
  const isSet = (name: string): boolean => textOf(name, environment) !== '';
  return [
    ...protocols
      .filter((name) => isSet(name) && textOf(name, environment) !== 'http/protobuf')
      .map((name) => `${name}: ${shown(name)} is not supported; Waybill sends http/protobuf`),
    ...numbers
      .filter((name) => isSet(name) && positive(name, environment) === undefined)
      .map((name) => wrong(name, `a number from 1 to ${maxNumber}`)),
    ...(isSet(sampler) && samplerName(environment) === undefined
      ? [wrong(sampler, `one of ${samplers.join(', ')}, or one of them after parentbased_`)]
      : []),
    ...(isSet(ratio) && samplerRatio(environment) === undefined ? [wrong(ratio, 'a number from 0 to 1')] : []),
  ];
}

function textOf(name: string, environment: Variables): string {
  return environment[name]?.trim() ?? '';
}
