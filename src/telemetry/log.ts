/**
 * The log: one line for each event on standard error, as JSON, ECS JSON or text. The same failure of the same source or sink is written at
 * most once a minute, with the number of omitted lines and the time of the last one, and never after the line that reports its end.
 */
import { createRequire } from 'node:module';
import { pino } from 'pino';
import { WaybillError } from '../errors/errors.ts';
import { logEvents, type Level, type LogEvent, type LogEventCode } from '../model/log-events.ts';
import type { Log } from '../model/telemetry.ts';
import type { Clock } from '../model/time.ts';
import { presentable } from './log-fields.ts';
import { currentIds } from './current-span.ts';
import { LogOutput, type LineStream } from './log-output.ts';
import { printable } from '../errors/escape.ts';

export interface LogSettings {
  readonly level: Level;
  /** Default: `pretty` on a terminal, else `json`. */
  readonly format?: 'json' | 'pretty' | 'ecs' | undefined;
  /** By component (`sink/kafka`). A component inherits the level of its nearest parent (`sink`). */
  readonly levels: Readonly<Record<string, Level>>;
}

export interface ComponentLog extends Log {
  child(component: string): ComponentLog;
}

export interface Logs {
  readonly root: ComponentLog;
  /** Overrides the configured levels for a while. The log records the start and the end. */
  readonly setLevel: (chosen: TemporaryLevel) => void;
  readonly components: () => readonly string[];
  /** Writes the pending counts of repeated failures. Call before the process ends. */
  readonly flush: () => void;
  /** Since the start. */
  readonly lost: () => number;
}

export interface TemporaryLevel {
  readonly level: Level;
  /** A component with its subcomponents; undefined: all components. */
  readonly component?: string | undefined;
  readonly forMs: number;
  /** Not authenticated. */
  readonly actor: string;
}

/** How long a repeated failure is suppressed, ms. */
const quietMs = 60_000;
const levels = ['debug', 'info', 'warn', 'error'] as const;

/**
 * @param settings  `level` and `levels` are read again for each line
 * @param environment  `LOG_LEVEL` overrides `settings.level` (not `settings.levels`); `NO_COLOR` disables colors
 * @throws WaybillError `config_invalid` for an invalid LOG_LEVEL
 */
export function createLog(
  settings: LogSettings,
  clock: Clock,
  stream: LineStream = process.stderr,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): Logs {
  const line = formatter(settings.format ?? (stream.isTTY === true ? 'pretty' : 'json'), clock, stream.isTTY === true, environment);
  const reportLost = (): void => output.reportLost((lines) => line('log.lines_lost', '', { lines }));
  const output = new LogOutput(stream, reportLost);
  const write: Write = (...parts) => {
    reportLost();
    output.write(line(...parts));
  };
  const overriding = levelOf(environment['LOG_LEVEL']);
  /** By component, '' for all. */
  const chosen = new Map<string, TemporaryLevel>();
  const components = new Set<string>();
  const quiet = new Map<string, Repeated>();
  /** The events that are written once, each with its source or sink. */
  const moments = new Set<string>();
  /** Aborted by `flush`. */
  const ended = new AbortController();

  const threshold = (component: string): number => {
    const temporary = nearest((name) => chosen.get(name)?.level, component) ?? chosen.get('')?.level;
    return levels.indexOf(temporary ?? nearest((name) => settings.levels[name], component) ?? overriding ?? settings.level);
  };
  /** Writes what a key omitted, and forgets the key. */
  const release = (key: string): boolean => {
    const repeated = quiet.get(key);
    quiet.delete(key);
    if (!repeated || repeated.count === 0) return false;
    const { event, component, fields, count, lastAt } = repeated;
    write(event, component, { ...fields, repeated: count, lastAt: new Date(lastAt).toISOString() });
    return true;
  };
  const silence = (key: string, repeated: Repeated): void => {
    quiet.set(key, repeated);
    const due = (): void => {
      // The line that was just written starts a new minute.
      if (quiet.get(key)?.started === repeated.started && release(key)) silence(key, { ...repeated, started: Symbol(), count: 0 });
    };
    clock.sleep(quietMs, ended.signal).then(due, () => undefined);
  };
  const report = (event: LogEventCode, component: string, fields: object): void => {
    const { level, recovers = false, once = false }: LogEvent = logEvents[event];
    const shown = { ...presentable(fields), ...currentIds() };
    // mutant: recovery-releases
    if (recovers) for (const [key, { subject }] of [...quiet]) if (subject === subjectOf(shown)) release(key);
    if (levels.indexOf(level) < threshold(component)) return;
    const moment = JSON.stringify([event, subjectOf(shown)]);
    if (once && moments.has(moment)) return;
    if (once) moments.add(moment);
    const key = level === 'warn' || level === 'error' ? failureKey(event, shown) : undefined;
    const known = key === undefined ? undefined : quiet.get(key);
    if (key !== undefined && known) {
      quiet.set(key, { ...known, component, fields: shown, count: known.count + 1, lastAt: clock.now() });
      return;
    }
    write(event, component, shown);
    const repeated = { event, component, fields: shown, subject: subjectOf(shown), started: Symbol(), count: 0, lastAt: 0 };
    if (key !== undefined) silence(key, repeated);
  };
  const componentLog = (component: string): ComponentLog => {
    if (component !== '') components.add(component);
    return {
      write: (event, ...[fields]) => report(event, component, fields ?? {}),
      child: (inner) => componentLog(component === '' ? inner : `${component}/${inner}`),
    };
  };
  // Writes both lines whatever the level: the log must show when its level changed.
  const setLevel = (temporary: TemporaryLevel): void => {
    const { component = '', level, forMs, actor } = temporary;
    chosen.set(component, temporary);
    write('log.level_changed', component, presentable({ minimum: level, seconds: forMs / 1000, actor }));
    const restore = (): void => {
      // A later `setLevel` replaced this level.
      if (chosen.get(component) !== temporary) return;
      chosen.delete(component);
      write('log.level_restored', component, {});
    };
    clock.sleep(forMs, ended.signal).then(restore, () => undefined);
  };
  return {
    root: componentLog(''),
    setLevel,
    components: () => [...components],
    flush: () => {
      ended.abort();
      // Its failures stay quiet: the process is about to end.
      for (const [key, repeated] of [...quiet]) if (release(key)) quiet.set(key, { ...repeated, count: 0 });
    },
    lost: () => output.lost,
  };
}

interface Repeated {
  readonly event: LogEventCode;
  readonly component: string;
  /** Of the last omitted line. */
  readonly fields: Record<string, unknown>;
  /** The source or sink that fails. */
  readonly subject: unknown;
  /** Identifies the minute. */
  readonly started: symbol;
  readonly count: number;
  /** Time of the last omitted line, ms since 1970. */
  readonly lastAt: number;
}

type Write = (event: LogEventCode, component: string, fields: Record<string, unknown>) => void;
type Format = (...parts: Parameters<Write>) => string;

function formatter(
  format: NonNullable<LogSettings['format']>,
  clock: Clock,
  isTTY: boolean,
  environment: Readonly<Record<string, string | undefined>>,
): Format {
  const ecs = format === 'ecs';
  let written = '';
  const logger = pino(
    {
      level: 'debug',
      base: ecs ? { 'ecs.version': '9.4.0', 'service.name': 'waybill' } : null,
      messageKey: 'message',
      timestamp: () => `,"${ecs ? '@timestamp' : 'time'}":"${new Date(clock.now()).toISOString()}"`,
      formatters: { level: (label) => (ecs ? { 'log.level': label } : { level: label }) },
    },
    { write: (line: string) => void (written = line) },
  );
  const pretty = format === 'pretty' ? prettyLine(isTTY && !environment['NO_COLOR']) : undefined;
  return (event, component, fields) => {
    const { level, message } = logEvents[event];
    if (ecs) logger[level]({ 'event.action': event, ...ecsFields(component, fields) }, message);
    else if (pretty) logger[level](...prettyFields(event, component, fields, message));
    else logger[level]({ event, ...plainFields(component, fields) }, message);
    return pretty?.(written) ?? written;
  };
}

/** Formats in this thread, not in a worker: the last line before an exit must not be lost. */
function prettyLine(colorize: boolean): (line: string) => string {
  // Loaded only for a terminal: the log of a service is JSON.
  const { prettyFactory } = createRequire(import.meta.url)('pino-pretty') as typeof import('pino-pretty');
  return prettyFactory({
    colorize,
    messageKey: 'message',
    timestampKey: 'time',
    translateTime: "UTC:yyyy-mm-dd'T'HH:MM:ss.l'Z'",
    singleLine: true,
    // pino-pretty writes "error-like" objects on several lines.
    errorLikeObjectKeys: [],
  });
}

/** Moves error and detail into the message. */
function prettyFields(event: LogEventCode, component: string, fields: Record<string, unknown>, message: string): [object, string] {
  const { error, detail, ...others } = plainFields(component, fields);
  const reasons = isErrorFields(error) ? [error.message, ...(error.causes ?? [])] : [];
  const sentence = [message, ...(typeof detail === 'string' ? [detail] : []), ...reasons];
  const code = failureCode(fields);
  const rest = { event, ...others, ...(code !== undefined && { code }), ...(error !== undefined && !isErrorFields(error) && { error }) };
  const once = sentence.filter((part, i) => !sentence.slice(0, i).some((before) => before.includes(part)));
  return [rest, printable(once.join(': '))];
}

function plainFields(component: string, fields: Record<string, unknown>): Record<string, unknown> {
  const plain: Record<string, unknown> = component === '' ? {} : { component };
  // A field must not replace a key of the line itself.
  for (const [name, value] of Object.entries(fields))
    plain[['level', 'time', 'event', 'component', 'message'].includes(name) ? `${name}_` : name] = value;
  return plain;
}

/** ECS defines `error.*`; the fields of Waybill go under `waybill`. */
function ecsFields(component: string, fields: Record<string, unknown>): Record<string, unknown> {
  const { error, trace_id, span_id, ...ours } = fields;
  const code = failureCode(fields);
  const message = isErrorFields(error) ? [error.message, ...(error.causes ?? [])].join(': ') : undefined;
  return {
    ...(component !== '' && { 'log.logger': component }),
    ...(trace_id !== undefined && { 'trace.id': trace_id, 'span.id': span_id }),
    ...((code !== undefined || message !== undefined) && {
      error: { ...(code !== undefined && { code }), ...(message !== undefined && { message: message }) },
    }),
    waybill: error !== undefined && message === undefined ? { ...ours, error } : ours,
  };
}

/** Failures are the same by event, code, and source or sink (or none). */
function failureKey(event: LogEventCode, fields: Record<string, unknown>): string | undefined {
  const code = failureCode(fields);
  return code === undefined ? undefined : JSON.stringify([event, code, fields['source'], fields['sink'], fields['id']]);
}

function subjectOf(fields: Record<string, unknown>): unknown {
  return fields['source'] ?? fields['sink'] ?? fields['id'];
}

function failureCode(fields: Record<string, unknown>): string | undefined {
  if (typeof fields['code'] === 'string') return fields['code'];
  return [fields['error'], fields['cause']].find(isErrorFields)?.code;
}

function isErrorFields(value: unknown): value is { message: string; code?: string; causes?: string[] } {
  return typeof value === 'object' && value !== null && 'message' in value && typeof value.message === 'string';
}

function nearest(levelOfComponent: (name: string) => Level | undefined, component: string): Level | undefined {
  for (let at = component; at !== ''; at = at.slice(0, Math.max(0, at.lastIndexOf('/')))) {
    const level = levelOfComponent(at);
    if (level) return level;
  }
  return undefined;
}

function levelOf(text: string | undefined): Level | undefined {
  if (text === undefined || text === '') return undefined;
  const level = levels.find((l) => l === text.toLowerCase());
  if (!level) throw new WaybillError('config_invalid', `cannot read LOG_LEVEL "${text}": not one of ${levels.join(', ')}`);
  return level;
}
