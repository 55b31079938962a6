import { describe, expect, test } from 'vitest';
import { WaybillError } from '../../../src/errors.ts';
import type { Clock } from '../../../src/model/time.ts';
import { createLog, type LogSettings, type Logs } from '../../../src/telemetry/log.ts';

class TestClock implements Clock {
  ms = 0;
  now(): number {
    return Date.UTC(2026, 10, 20, 3, 0, 0) + this.ms;
  }
  monotonic(): number {
    return this.ms;
  }
  async sleep(): Promise<void> {
    throw new Error('the log never sleeps');
  }
}

interface Fixture extends Logs {
  readonly clock: TestClock;
  readonly text: () => string;
  readonly lines: () => Record<string, unknown>[];
}

function start(settings: Partial<LogSettings> = {}, environment: Record<string, string> = {}, isTTY = false): Fixture {
  const clock = new TestClock();
  let text = '';
  const stream = { isTTY, write: (line: string) => (text += line) };
  const logs = createLog({ level: 'info', format: 'json', levels: {}, ...settings }, clock, stream, environment);
  const lines = () =>
    text
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  return { ...logs, clock, text: () => text, lines };
}

test('a line is one JSON object: level, time by the clock, component, message and fields', () => {
  const { root, lines } = start();
  root.child('collect').info({ source: 'production', records: 412, window: { from: '14:00' } }, 'window.proven');
  expect(lines()).toEqual([
    {
      level: 'info',
      time: '2026-11-20T03:00:00.000Z',
      component: 'collect',
      source: 'production',
      records: 412,
      window: { from: '14:00' },
      message: 'window.proven',
    },
  ]);
});

describe('levels', () => {
  test('a component has the level of the nearest one above it, else the usual one', () => {
    const { root, lines } = start({ level: 'warn', levels: { 'sink/kafka': 'debug', sink: 'error' } });
    root.child('sink/kafka').debug({}, 'a');
    root.child('sink').child('file').warn({}, 'b');
    root.child('collect').info({}, 'c');
    root.child('collect').warn({}, 'd');
    expect(lines().map((l) => l['message'])).toEqual(['a', 'd']);
  });

  test('LOG_LEVEL wins over the file, and is refused when it is none', () => {
    const { root, lines } = start({ level: 'error' }, { LOG_LEVEL: 'DEBUG' });
    root.debug({}, 'a');
    expect(lines()).toHaveLength(1);
    expect(() => start({}, { LOG_LEVEL: 'loud' })).toThrow('cannot read LOG_LEVEL "loud": not one of debug, info, warn, error');
  });

  test('a level set for a while falls back by itself', () => {
    const { root, setLevel, clock, lines } = start();
    setLevel('debug', 900_000);
    root.debug({}, 'a');
    clock.ms = 899_999;
    root.debug({}, 'b');
    clock.ms = 900_000;
    root.debug({}, 'c');
    expect(lines().map((l) => l['message'])).toEqual(['a', 'b']);
  });
});

describe('what may appear', () => {
  const canary = 'c4n4ry-7f3a9d';

  test.each([
    ['a name like a secret', { clientSecret: canary }],
    ['a secret beside plain words', { source: 'x', auth: { client_secret: canary, subscriptionKey: canary, token: canary } }],
    ['text under a name that is not on the list', { userLastNameFirstName: canary }],
    ['text of an unknown name, deep in a list', { pages: [{ payloadName: canary }] }],
    ['a number under a name like a secret', { pin: 731_942 }],
    ['a URL with credentials', { url: `https://user:${canary}@proxy.example:3128/` }],
    ['a header in the message of the other side', { message: `401 for "Authorization: Bearer ${canary}"` }],
    ['a form in the message of the other side', { message: `grant_type=password&client_secret=${canary}&scope=x` }],
    ['a JSON body in an error', { error: new Error(`got {"access_token":"${canary}","expires_in":3599}`) }],
    ['a token that nobody announced', { reason: `refused: eyJhbGciOiJub25lIn0.${canary}.` }],
    ['the cause of a cause', { error: new Error('a', { cause: new Error('b', { cause: new Error(`password=${canary}`) }) }) }],
    ['bytes', { digest: Buffer.from(canary) }],
    ['a function', { message: () => canary }],
  ])('%s is hidden', (_, fields) => {
    for (const format of ['json', 'ecs', 'pretty'] as const) {
      const { root, text } = start({ format });
      root.info(fields, 'seen');
      expect(text()).toContain('seen');
      expect(text()).not.toContain(canary);
      expect(text()).not.toContain('731942');
    }
  });

  test('an error is its code, its message and those of its causes, without a stack', () => {
    const { root, lines } = start();
    const error = new WaybillError('source_unreachable', 'cannot read page 3: no answer', {
      cause: new Error('fetch failed', { cause: Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }) }),
    });
    root.error({ source: 'production', error }, 'request failed');
    expect(lines()[0]?.['error']).toEqual({
      code: 'source_unreachable',
      message: 'cannot read page 3: no answer',
      causes: ['fetch failed', 'read ECONNRESET'],
    });
  });

  test('a field cannot pass itself off as a part of the line', () => {
    const { root, lines, text } = start();
    root.info({ level: 'fatal', message: 'forged', time: 1 }, 'true');
    expect(lines()[0]).toMatchObject({
      level: 'info',
      message: 'true',
      time: '2026-11-20T03:00:00.000Z',
      level_: 'fatal',
      message_: 'forged',
    });
    expect(text().match(/"message"/g)).toHaveLength(1);
  });

  test.each(['json', 'ecs', 'pretty'] as const)('line breaks, escapes and marks of direction stay inside one line (%s)', (format) => {
    const { root, text } = start({ format });
    root.warn({ message: 'a\nb\r\u001b[31mred\u009b2J\u202egnp', error: new Error('x\n    at y') }, 'odd');
    expect(text().match(/\n/g)).toHaveLength(1);
    expect(text().trimEnd()).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e]/);
  });
});

describe('repeated failures', () => {
  test('one line a minute for a code and an id, with the number left out', () => {
    const { root, clock, lines } = start();
    for (let i = 0; i < 13; i += 1) {
      clock.ms = i * 10_000;
      root.warn({ code: 'sink_unavailable', sink: 'siem' }, 'delivery failed');
      root.warn({ code: 'sink_unavailable', sink: 'lake' }, 'delivery failed');
    }
    const of = (sink: string) => lines().filter((l) => l['sink'] === sink);
    expect(of('siem').map((l) => [l['time'], l['repeated']])).toEqual([
      ['2026-11-20T03:00:00.000Z', undefined],
      ['2026-11-20T03:01:00.000Z', 5],
      ['2026-11-20T03:02:00.000Z', 5],
    ]);
    // A failure that comes right after another one's line owes its count there, and then waits its own minute.
    expect(of('lake').map((l) => [l['time'], l['repeated']])).toEqual([
      ['2026-11-20T03:00:00.000Z', undefined],
      ['2026-11-20T03:01:00.000Z', 5],
      ['2026-11-20T03:02:00.000Z', 6],
    ]);
  });

  test('the code of an error counts, another code is another failure, and news without a code is never left out', () => {
    const { root, lines } = start();
    root.warn({ source: 'a', error: new WaybillError('source_busy', 'x') }, 'request failed');
    root.warn({ source: 'a', error: new WaybillError('source_busy', 'y') }, 'request failed');
    root.warn({ source: 'a', error: new WaybillError('source_unreachable', 'z') }, 'request failed');
    root.error({ source: 'a', error: new WaybillError('source_busy', 'worse') }, 'request failed');
    root.warn({ source: 'a' }, 'window slow');
    root.warn({ source: 'a' }, 'window slow');
    root.info({ source: 'a', code: 'source_busy' }, 'state changed');
    root.info({ source: 'a', code: 'source_busy' }, 'state changed');
    expect(lines()).toHaveLength(7);
  });

  test('what is owed is said with the next line after the minute, or at the end', () => {
    const { root, clock, flush, lines } = start();
    for (let i = 0; i < 4; i += 1) root.warn({ code: 'sink_unavailable', sink: 'siem', records: i }, 'delivery failed');
    clock.ms = 61_000;
    root.info({}, 'something else');
    expect(lines().map((l) => [l['message'], l['records'], l['repeated']])).toEqual([
      ['delivery failed', 0, undefined],
      ['delivery failed', 3, 3],
      ['something else', undefined, undefined],
    ]);
    root.warn({ code: 'sink_unavailable', sink: 'siem' }, 'delivery failed');
    root.warn({ code: 'sink_unavailable', sink: 'siem' }, 'delivery failed');
    flush();
    flush();
    expect(lines().slice(3)).toMatchObject([{ message: 'delivery failed', repeated: 2 }]);
    expect(lines()).toHaveLength(4);
  });
});

test('ecs: times, level, logger and error stand where ECS has them, the rest under waybill', () => {
  const { root, lines } = start({ format: 'ecs' });
  root
    .child('sink/kafka')
    .error({ sink: 'lake', error: new WaybillError('sink_unavailable', 'busy', { cause: new Error('timeout') }) }, 'delivery failed');
  expect(lines()).toEqual([
    {
      'log.level': 'error',
      '@timestamp': '2026-11-20T03:00:00.000Z',
      'ecs.version': '9.4.0',
      'service.name': 'waybill',
      'log.logger': 'sink/kafka',
      error: { code: 'sink_unavailable', message: 'busy: timeout' },
      waybill: { sink: 'lake' },
      message: 'delivery failed',
    },
  ]);
});

test('pretty: readable, coloured on a terminal only, and never with NO_COLOR', () => {
  const line = (environment: Record<string, string>, isTTY: boolean): string => {
    const { root, text } = start({ format: 'pretty' }, environment, isTTY);
    root.info({ source: 'production' }, 'first token');
    return text();
  };
  expect(line({}, false)).toBe('[2026-11-20T03:00:00.000Z] INFO: first token {"source":"production"}\n');
  expect(line({}, true)).toContain('\u001b[');
  expect(line({ NO_COLOR: '1' }, true)).toBe(line({}, false));
});

test('without a format: pretty on a terminal, else JSON', () => {
  const line = (isTTY: boolean): string => {
    const { root, text } = start({ format: undefined }, { NO_COLOR: '1' }, isTTY);
    root.info({}, 'first token');
    return text();
  };
  expect(line(true)).toBe('[2026-11-20T03:00:00.000Z] INFO: first token\n');
  expect(JSON.parse(line(false))).toMatchObject({ message: 'first token' });
});

test('pretty: what went wrong stands in the sentence, each reason once', () => {
  const { root, text } = start({ format: 'pretty' });
  const error = new WaybillError('sink_unavailable', 'cannot reach siem', { cause: new Error('connect ECONNREFUSED 127.0.0.1:9200') });
  root.child('deliver').warn({ sink: 'siem', retryInMs: 1_115, error }, 'delivery failed, retrying');
  root.warn({ detail: 'admin.listen: 0.0.0.0:9464 is not a loopback address' }, 'configuration');
  expect(text().split('\n')).toEqual([
    '[2026-11-20T03:00:00.000Z] WARN: delivery failed, retrying: cannot reach siem: connect ECONNREFUSED 127.0.0.1:9200 {"component":"deliver","sink":"siem","retryInMs":1115,"code":"sink_unavailable"}',
    '[2026-11-20T03:00:00.000Z] WARN: configuration: admin.listen: 0.0.0.0:9464 is not a loopback address',
    '',
  ]);
});

describe('a reader that is stuck or gone', () => {
  test('costs lines and no memory; they are counted, and the log says how many once there is room', () => {
    let [text, kept] = ['', 0];
    let drain: () => void = () => undefined;
    const stream = {
      write: (line: string) => void (text += line),
      once: (_: 'drain', listener: () => void) => void (drain = listener),
      get writableLength() {
        return kept;
      },
    };
    const { root, lost } = createLog({ level: 'info', format: 'json', levels: {} }, new TestClock(), stream, {});
    root.info({}, 'one');
    kept = 2 ** 20;
    for (let i = 0; i < 1_000; i += 1) root.info({}, 'nobody reads this');
    expect([text.split('\n').length, lost()]).toEqual([2, 1_000]);
    kept = 0;
    drain();
    root.info({}, 'two');
    drain();
    expect(
      text
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as object),
    ).toMatchObject([
      { message: 'one' },
      { level: 'warn', message: 'log lines were lost: their reader was stuck or gone', lines: 1_000 },
      { message: 'two' },
    ]);
    expect(lost()).toBe(1_000);
  });

  test('lines that cannot be written are counted, and said when writing works again', () => {
    let text = '';
    let failure: Error | undefined = Object.assign(new Error('write EPIPE'), { code: 'EPIPE' });
    const write = (line: string, done?: (error?: Error | null) => void): void => {
      if (failure === undefined) text += line;
      done?.(failure);
    };
    const { root, lost } = createLog({ level: 'info', format: 'json', levels: {} }, new TestClock(), { write }, {});
    for (let i = 0; i < 5; i += 1) root.info({}, 'nobody reads this');
    expect([text, lost()]).toEqual(['', 5]);
    failure = undefined;
    root.info({}, 'again');
    expect(
      text
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as object),
    ).toMatchObject([{ lines: 5 }, { message: 'again' }]);
  });
});
