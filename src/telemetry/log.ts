/**
 * The log: one line an event, on standard error, as JSON, as ECS JSON, or for people. What a line may show is decided in log-fields.ts.
 * The same failure of the same source or sink is written at most once a minute, with the number of times that were left out.
 */
import { pino } from 'pino';
import { prettyFactory } from 'pino-pretty';
import { WaybillError } from '../errors.ts';
import type { Log } from '../model/telemetry.ts';
import type { Clock } from '../model/time.ts';
import { presentable } from './log-fields.ts';
import { LogOutput } from './log-output.ts';
import type { LineStream } from './log-output.ts';
import { printable } from '../escape.ts';

export type Level = 'debug' | 'info' | 'warn' | 'error';

export interface LogSettings {
  readonly level: Level;
  /** Without one: `pretty` on a terminal, else `json`. */
  readonly format?: 'json' | 'pretty' | 'ecs' | undefined;
  /** By room (`sink/kafka`); a room without a level of its own has that of the nearest room above it (`sink`). */
  readonly levels: Readonly<Record<string, Level>>;
}

export interface RoomLog extends Log {
  child(room: string): RoomLog;
}

export interface Logs {
  readonly root: RoomLog;
  /** Another level for every room; with `forMs` it falls back by itself. */
  readonly setLevel: (level: Level, forMs?: number) => void;
  /** Writes what repeated failures still owe: their counts. For the end of the process. */
  readonly flush: () => void;
  /** Lines that could not be written, since the start. */
  readonly lost: () => number;
}

/** How long a repeated failure stays silent, in ms. */
const quietMs = 60_000;
const levels = ['debug', 'info', 'warn', 'error'] as const;

/**
 * @param environment  `LOG_LEVEL` in it wins over `settings.level` (not over `settings.levels`); `NO_COLOR` is obeyed
 * @throws WaybillError `config_invalid` when LOG_LEVEL is no level
 */
export function createLog(
  settings: LogSettings,
  clock: Clock,
  stream: LineStream = process.stderr,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): Logs {
  const line = formatter(settings.format ?? (stream.isTTY === true ? 'pretty' : 'json'), clock, stream.isTTY === true, environment);
  const confess = (): void => output.confess((lines) => line('warn', '', { lines }, 'log lines were lost: their reader was stuck or gone'));
  const output = new LogOutput(stream, confess);
  const write: Write = (...parts) => {
    confess();
    output.write(line(...parts));
  };
  const usual = levelOf(environment['LOG_LEVEL']) ?? settings.level;
  let chosen: { level: Level; until: number } | undefined;
  const quiet = new Map<string, Repeated>();

  const threshold = (room: string): number => {
    if (chosen && clock.monotonic() >= chosen.until) chosen = undefined;
    return levels.indexOf(chosen?.level ?? nearest(settings.levels, room) ?? usual);
  };
  const settle = (key: string, repeated: Repeated): void => {
    quiet.delete(key);
    if (repeated.count === 0) return;
    write(repeated.level, repeated.room, { ...repeated.fields, repeated: repeated.count }, repeated.phrase);
    // That was this minute's line.
    quiet.set(key, { ...repeated, since: clock.monotonic(), count: 0 });
  };
  const say = (level: Level, room: string, fields: object, phrase: string): void => {
    if (levels.indexOf(level) < threshold(room)) return;
    const now = clock.monotonic();
    const shown = presentable(fields);
    const key = level === 'warn' || level === 'error' ? failureKey(level, shown) : undefined;
    const known = key === undefined ? undefined : quiet.get(key);
    if (key !== undefined && known && now - known.since < quietMs) {
      quiet.set(key, { ...known, room, fields: shown, phrase, count: known.count + 1 });
      return;
    }
    if (key !== undefined) quiet.delete(key);
    for (const [other, repeated] of [...quiet]) if (now - repeated.since >= quietMs) settle(other, repeated);
    write(level, room, known && known.count > 0 ? { ...shown, repeated: known.count } : shown, phrase);
    if (key !== undefined) quiet.set(key, { level, room, fields: shown, phrase, since: now, count: 0 });
  };
  const roomLog = (room: string): RoomLog => ({
    debug: (fields, phrase) => say('debug', room, fields, phrase),
    info: (fields, phrase) => say('info', room, fields, phrase),
    warn: (fields, phrase) => say('warn', room, fields, phrase),
    error: (fields, phrase) => say('error', room, fields, phrase),
    child: (inner) => roomLog(room === '' ? inner : `${room}/${inner}`),
  });
  return {
    root: roomLog(''),
    setLevel: (level, forMs = Infinity) => (chosen = { level, until: clock.monotonic() + forMs }),
    flush: () => {
      for (const [key, repeated] of [...quiet]) settle(key, repeated);
    },
    lost: () => output.lost,
  };
}

interface Repeated {
  readonly level: Level;
  readonly room: string;
  readonly fields: Record<string, unknown>;
  readonly phrase: string;
  readonly since: number;
  readonly count: number;
}

type Write = (level: Level, room: string, fields: Record<string, unknown>, phrase: string) => void;
type Format = (...parts: Parameters<Write>) => string;

function formatter(
  format: NonNullable<LogSettings['format']>,
  clock: Clock,
  isTTY: boolean,
  environment: Readonly<Record<string, string | undefined>>,
): Format {
  const ecs = format === 'ecs';
  let made = '';
  const logger = pino(
    {
      level: 'debug',
      base: ecs ? { 'ecs.version': '9.4.0', 'service.name': 'waybill' } : null,
      messageKey: 'message',
      timestamp: () => `,"${ecs ? '@timestamp' : 'time'}":"${new Date(clock.now()).toISOString()}"`,
      formatters: { level: (label) => (ecs ? { 'log.level': label } : { level: label }) },
    },
    { write: (line: string) => void (made = line) },
  );
  const pretty = format === 'pretty' ? prettyLine(isTTY && !environment['NO_COLOR']) : undefined;
  return (level, room, fields, phrase) => {
    if (ecs) logger[level](ecsFields(room, fields), phrase);
    else if (pretty) logger[level](...prettyFields(room, fields, phrase));
    else logger[level](plainFields(room, fields), phrase);
    return pretty?.(made) ?? made;
  };
}

/** Made in place, not in a worker: the last line before an exit must not be lost. */
function prettyLine(colorize: boolean): (line: string) => string {
  return prettyFactory({
    colorize,
    messageKey: 'message',
    timestampKey: 'time',
    translateTime: "UTC:yyyy-mm-dd'T'HH:MM:ss.l'Z'",
    singleLine: true,
    // Nothing is an "error-like" object here: those would be spread over several lines.
    errorLikeObjectKeys: [],
  });
}

/** For people: what went wrong stands in the sentence, not in the JSON behind it. */
function prettyFields(room: string, fields: Record<string, unknown>, phrase: string): [object, string] {
  const { error, words, ...others } = plainFields(room, fields);
  const said = isErrorFields(error) ? [error.message, ...(error.causes ?? [])] : [];
  const sentence = [phrase, ...(typeof words === 'string' ? [words] : []), ...said];
  const code = failureCode(fields);
  const rest = { ...others, ...(code !== undefined && { code }), ...(error !== undefined && !isErrorFields(error) && { error }) };
  const once = sentence.filter((part, i) => !sentence.slice(0, i).some((before) => before.includes(part)));
  return [rest, printable(once.join(': '))];
}

function plainFields(room: string, fields: Record<string, unknown>): Record<string, unknown> {
  const plain: Record<string, unknown> = room === '' ? {} : { room };
  // A field may not pass itself off as a part of the line.
  for (const [name, value] of Object.entries(fields))
    plain[['level', 'time', 'room', 'message'].includes(name) ? `${name}_` : name] = value;
  return plain;
}

/** ECS keeps `error.*` for errors; everything that is ours stands under `waybill`. */
function ecsFields(room: string, fields: Record<string, unknown>): Record<string, unknown> {
  const { error, ...ours } = fields;
  const code = failureCode(fields);
  const words = isErrorFields(error) ? [error.message, ...(error.causes ?? [])].join(': ') : undefined;
  return {
    ...(room !== '' && { 'log.logger': room }),
    ...((code !== undefined || words !== undefined) && {
      error: { ...(code !== undefined && { code }), ...(words !== undefined && { message: words }) },
    }),
    waybill: error !== undefined && words === undefined ? { ...ours, error } : ours,
  };
}

/** The same code of the same source or sink (or of none) is the same failure. */
function failureKey(level: Level, fields: Record<string, unknown>): string | undefined {
  const code = failureCode(fields);
  return code === undefined ? undefined : JSON.stringify([level, code, fields['source'], fields['sink'], fields['id']]);
}

function failureCode(fields: Record<string, unknown>): string | undefined {
  if (typeof fields['code'] === 'string') return fields['code'];
  return [fields['error'], fields['cause']].find(isErrorFields)?.code;
}

function isErrorFields(value: unknown): value is { message: string; code?: string; causes?: string[] } {
  return typeof value === 'object' && value !== null && 'message' in value && typeof value.message === 'string';
}

function nearest(byRoom: Readonly<Record<string, Level>>, room: string): Level | undefined {
  for (let at = room; at !== ''; at = at.slice(0, Math.max(0, at.lastIndexOf('/')))) if (byRoom[at]) return byRoom[at];
  return undefined;
}

function levelOf(text: string | undefined): Level | undefined {
  if (text === undefined || text === '') return undefined;
  const level = levels.find((l) => l === text.toLowerCase());
  if (!level) throw new WaybillError('config_invalid', `cannot read LOG_LEVEL "${text}": not one of ${levels.join(', ')}`);
  return level;
}
