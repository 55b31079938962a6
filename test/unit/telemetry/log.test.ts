import { describe, expect, test } from 'vitest';
import { WaybillError } from '../../../src/errors/errors.ts';
import type { Clock } from '../../../src/model/time.ts';
import { createLog, type LogSettings, type Logs } from '../../../src/telemetry/log.ts';
import type { LogEventCode } from '../../../src/model/log-events.ts';
import { noteLine } from '../../support/telemetry/written-events.ts';

class TestClock implements Clock {
  ms = 0;
  now(): number {
    return Date.UTC(2026, 10, 20, 3, 0, 0) + this.ms;
  }
  monotonic(): number {
    return this.ms;
  }
  readonly #sleeps: { readonly due: number; readonly wake: () => void }[] = [];
  sleep(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#sleeps.push({ due: this.ms + ms, wake: resolve });
      signal.addEventListener('abort', () => reject(signal.reason as Error));
    });
  }
  async advance(ms: number): Promise<void> {
    this.ms += ms;
    for (const { due, wake } of this.#sleeps) if (due <= this.ms) wake();
    await Promise.resolve();
    await Promise.resolve();
  }
}

/** Without the types of the events: each test needs only some fields. */
interface AnyLog {
  write(event: LogEventCode, fields?: object): void;
  child(component: string): AnyLog;
}

interface Fixture extends Omit<Logs, 'root'> {
  readonly root: AnyLog;
  readonly clock: TestClock;
  readonly text: () => string;
  readonly lines: () => Record<string, unknown>[];
}

/** Notes the events of the log itself. The tests write other events with some of their fields only. */
function ofLog(line: string): string {
  if (line.includes('"event":"log.')) noteLine(line.trim());
  return line;
}

function start(settings: Partial<LogSettings> = {}, environment: Record<string, string> = {}, isTTY = false): Fixture {
  const clock = new TestClock();
  let text = '';
  const stream = { isTTY, write: (line: string) => (text += ofLog(line)) };
  const logs = createLog({ level: 'info', format: 'json', levels: {}, ...settings }, clock, stream, environment);
  const lines = () =>
    text
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  return { ...logs, root: logs.root, clock, text: () => text, lines };
}

test('a JSON line has level, time, event, component, fields and message', () => {
  const { root, lines } = start();
  root.child('collect').write('window.first_proven', { source: 'production', inWindow: 412, next: { from: '14:00' } });
  expect(lines()).toEqual([
    {
      level: 'info',
      time: '2026-11-20T03:00:00.000Z',
      event: 'window.first_proven',
      component: 'collect',
      source: 'production',
      inWindow: 412,
      next: { from: '14:00' },
      message: 'first window proven',
    },
  ]);
});

describe('levels', () => {
  test('a component has the level of the nearest component above it, else the default', () => {
    const { root, lines } = start({ level: 'warn', levels: { 'sink/kafka': 'debug', sink: 'error' } });
    root.child('sink/kafka').write('kafka.client');
    root.child('sink').child('file').write('sink.compression_failed');
    root.child('collect').write('source.recovered');
    root.child('collect').write('source.page_unreadable');
    expect(lines().map((l) => l['event'])).toEqual(['kafka.client', 'source.page_unreadable']);
  });

  test('LOG_LEVEL overrides the configured level, and a wrong one is refused', () => {
    const { root, lines } = start({ level: 'error' }, { LOG_LEVEL: 'DEBUG' });
    root.write('window.proven');
    expect(lines()).toHaveLength(1);
    expect(() => start({}, { LOG_LEVEL: 'loud' })).toThrow('cannot read LOG_LEVEL "loud": not one of debug, info, warn, error');
  });

  test('a temporary level ends after its time, and the log records both at any level', async () => {
    const { root, setLevel, clock, lines } = start({ level: 'error' });
    setLevel({ level: 'debug', forMs: 900_000, actor: 'j.doe' });
    root.write('window.proven', { source: 'a' });
    await clock.advance(899_999);
    root.write('window.proven', { source: 'b' });
    await clock.advance(1);
    root.write('window.proven', { source: 'c' });
    expect(lines().map(({ event, source }) => [event, source])).toEqual([
      ['log.level_changed', undefined],
      ['window.proven', 'a'],
      ['window.proven', 'b'],
      ['log.level_restored', undefined],
    ]);
    expect(lines()[0]).toMatchObject({ minimum: 'debug', seconds: 900, actor: 'j.doe' });
  });

  test('a temporary level of a component applies to its parts and overrides the general one; a later one replaces it and its end', async () => {
    const { root, setLevel, components, clock, lines, flush } = start({ levels: { 'sink/kafka': 'error' } });
    const [kafka, file] = [root.child('sink/kafka'), root.child('sink').child('file')];
    expect(components()).toEqual(['sink/kafka', 'sink', 'sink/file']);
    setLevel({ level: 'error', forMs: 1_000, actor: 'root' });
    setLevel({ level: 'debug', component: 'sink', forMs: 1_000, actor: 'root' });
    kafka.write('kafka.client', { name: '1' });
    root.write('source.recovered', { source: '1' });
    await clock.advance(500);
    setLevel({ level: 'warn', component: 'sink', forMs: 1_000, actor: 'root' });
    await clock.advance(500);
    kafka.write('kafka.client', { name: '2' });
    file.write('sink.compression_failed');
    root.write('source.recovered', { source: '2' });
    flush();
    await clock.advance(5_000);
    expect(lines().map(({ event, component, name, source }) => [event, component, name ?? source])).toEqual([
      ['log.level_changed', undefined, undefined],
      ['log.level_changed', 'sink', undefined],
      ['kafka.client', 'sink/kafka', '1'],
      ['log.level_changed', 'sink', undefined],
      ['log.level_restored', undefined, undefined],
      ['sink.compression_failed', 'sink/file', undefined],
      ['source.recovered', undefined, '2'],
    ]);
  });
});

describe('redaction', () => {
  const canary = 'c4n4ry-7f3a9d';

  test.each([
    ['a name like a secret', { clientSecret: canary }],
    ['a secret among plain words', { source: 'x', auth: { client_secret: canary, subscriptionKey: canary, token: canary } }],
    ['text under a name that is not on the list', { userLastNameFirstName: canary }],
    ['text of an unknown name, deep in a list', { pages: [{ payloadName: canary }] }],
    ['a number under a name like a secret', { pin: 731_942 }],
    ['a URL with credentials', { url: `https://user:${canary}@proxy.example:3128/` }],
    ['a header in the message of the other side', { detail: `401 for "Authorization: Bearer ${canary}"` }],
    ['a form in the message of the other side', { detail: `grant_type=password&client_secret=${canary}&scope=x` }],
    ['a JSON body in an error', { error: new Error(`got {"access_token":"${canary}","expires_in":3599}`) }],
    ['an unregistered token', { reason: `refused: eyJhbGciOiJub25lIn0.${canary}.` }],
    ['the cause of a cause', { error: new Error('a', { cause: new Error('b', { cause: new Error(`password=${canary}`) }) }) }],
    ['bytes', { digest: Buffer.from(canary) }],
    ['a function', { detail: () => canary }],
  ])('%s is hidden', (_, fields) => {
    for (const format of ['json', 'ecs', 'pretty'] as const) {
      const { root, text } = start({ format });
      root.write('source.calibrated', fields);
      expect(text()).toContain('source calibrated');
      expect(text()).not.toContain(canary);
      expect(text()).not.toContain('731942');
    }
  });

  test('an error is its code, its message and the messages of its causes, without a stack', () => {
    const { root, lines } = start();
    const error = new WaybillError('source_unreachable', 'cannot read page 3: no answer', {
      cause: new Error('fetch failed', { cause: Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }) }),
    });
    root.write('source.request_failing', { source: 'production', error });
    expect(lines()[0]?.['error']).toEqual({
      code: 'source_unreachable',
      message: 'cannot read page 3: no answer',
      causes: ['fetch failed', 'read ECONNRESET'],
    });
  });

  test('a field cannot replace level, time, event or message of the line', () => {
    const { root, lines, text } = start();
    root.write('source.recovered', { level: 'fatal', message: 'forged', time: 1, event: 'forged' });
    expect(lines()[0]).toMatchObject({
      level: 'info',
      event: 'source.recovered',
      message: 'source responds again',
      time: '2026-11-20T03:00:00.000Z',
      level_: '[hidden]',
      event_: '[hidden]',
      message_: '[hidden]',
    });
    expect(text().match(/"message"/g)).toHaveLength(1);
  });

  test.each(['json', 'ecs', 'pretty'] as const)('line breaks, escape sequences and direction marks stay inside one line (%s)', (format) => {
    const { root, text } = start({ format });
    root.write('source.page_unreadable', { detail: 'a\nb\r\u001b[31mred\u009b2J\u202egnp', error: new Error('x\n    at y') });
    expect(text().match(/\n/g)).toHaveLength(1);
    expect(text().trimEnd()).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e]/);
  });
});

test('a first event is written once for each source, however often the source starts', () => {
  const { root, lines } = start();
  for (const source of ['a', 'b', 'a']) root.child('collect').write('source.first_record', { source, records: 5 });
  for (const source of ['a', 'a']) root.write('source.first_token', { source, seconds: 60 });
  expect(lines().map(({ event, source }) => [event, source])).toEqual([
    ['source.first_record', 'a'],
    ['source.first_record', 'b'],
    ['source.first_token', 'a'],
  ]);
});

describe('repeated failures', () => {
  test('one line a minute for each code and id, with the number of omitted lines and the time of the last one', async () => {
    const { root, clock, lines } = start();
    for (let i = 0; i < 13; i += 1) {
      if (i > 0) await clock.advance(10_000);
      root.write('sink.delivery_failed', { code: 'sink_unavailable', sink: 'siem' });
      root.write('sink.delivery_failed', { code: 'sink_unavailable', sink: 'lake' });
    }
    for (const sink of ['siem', 'lake'])
      expect(
        lines()
          .filter((l) => l['sink'] === sink)
          .map((l) => [l['time'], l['repeated'], l['lastAt']]),
      ).toEqual([
        ['2026-11-20T03:00:00.000Z', undefined, undefined],
        ['2026-11-20T03:01:00.000Z', 5, '2026-11-20T03:00:50.000Z'],
        ['2026-11-20T03:02:00.000Z', 6, '2026-11-20T03:01:50.000Z'],
      ]);
  });

  test('failures differ by event and code; a line without a code is never omitted', () => {
    const { root, lines } = start();
    root.write('source.request_failing', { source: 'a', error: new WaybillError('source_busy', 'x') });
    root.write('source.request_failing', { source: 'a', error: new WaybillError('source_busy', 'y') });
    root.write('source.request_failing', { source: 'a', error: new WaybillError('source_unreachable', 'z') });
    root.write('source.token_refused', { source: 'a', error: new WaybillError('source_busy', 'worse') });
    root.write('source.clock_stopped', { source: 'a' });
    root.write('source.clock_stopped', { source: 'a' });
    root.write('source.request_retried', { source: 'a', code: 'source_busy' });
    root.write('source.request_retried', { source: 'a', code: 'source_busy' });
    expect(lines()).toHaveLength(7);
  });

  test('the count is written after a minute without another line, or at the end', async () => {
    const { root, clock, flush, lines } = start();
    for (let i = 0; i < 4; i += 1) root.write('sink.delivery_failed', { code: 'sink_unavailable', sink: 'siem', attempts: i });
    await clock.advance(60_000);
    expect(lines().map((l) => [l['time'], l['attempts'], l['repeated'], l['lastAt']])).toEqual([
      ['2026-11-20T03:00:00.000Z', 0, undefined, undefined],
      ['2026-11-20T03:01:00.000Z', 3, 3, '2026-11-20T03:00:00.000Z'],
    ]);
    root.write('sink.delivery_failed', { code: 'sink_unavailable', sink: 'siem' });
    flush();
    flush();
    expect(lines().slice(2)).toMatchObject([{ event: 'sink.delivery_failed', repeated: 1 }]);
  });

  test.each([
    ['source.token_refused', 'source.recovered', 'source'],
    ['source.request_failing', 'source.suspension_ended', 'source'],
    ['sink.delivery_failed', 'sink.delivery_resumed', 'sink'],
  ] as const)('no %s follows %s, which ends it', async (failure, end, kind) => {
    const { root, clock, flush, lines } = start();
    for (const subject of ['a', 'a', 'b', 'b']) root.write(failure, { [kind]: subject, code: 'token_refused' });
    await clock.advance(12_000);
    root.write(end, { [kind]: 'a' });
    const told = () => lines().map((l) => [l[kind], l['event'], l['repeated']]);
    expect(told()).toEqual([
      ['a', failure, undefined],
      ['b', failure, undefined],
      ['a', failure, 1],
      ['a', end, undefined],
    ]);
    await clock.advance(600_000);
    root.write('config.unchanged');
    expect(told().slice(4)).toEqual([
      ['b', failure, 1],
      [undefined, 'config.unchanged', undefined],
    ]);
    // A failure after the recovery is a new one.
    root.write(failure, { [kind]: 'a', code: 'token_refused' });
    expect(told().slice(6)).toEqual([['a', failure, undefined]]);
    flush();
  });
});

test('ecs: time, level, action, logger and error use ECS fields, the rest stands under waybill', () => {
  const { root, lines } = start({ format: 'ecs' });
  root.child('sink/kafka').write('sink.delivery_blocked', {
    sink: 'lake',
    error: new WaybillError('sink_unavailable', 'busy', { cause: new Error('timeout') }),
  });
  expect(lines()).toEqual([
    {
      'log.level': 'error',
      '@timestamp': '2026-11-20T03:00:00.000Z',
      'ecs.version': '9.4.0',
      'service.name': 'waybill',
      'event.action': 'sink.delivery_blocked',
      'log.logger': 'sink/kafka',
      error: { code: 'sink_unavailable', message: 'busy: timeout' },
      waybill: { sink: 'lake' },
      message: 'delivery blocked',
    },
  ]);
});

test('pretty: readable, coloured on a terminal only, and never with NO_COLOR', () => {
  const line = (environment: Record<string, string>, isTTY: boolean): string => {
    const { root, text } = start({ format: 'pretty' }, environment, isTTY);
    root.write('source.unbounded_query_accepted', { source: 'production' });
    return text();
  };
  expect(line({}, false)).toBe(
    '[2026-11-20T03:00:00.000Z] INFO: unbounded query accepted again {"event":"source.unbounded_query_accepted","source":"production"}\n',
  );
  expect(line({}, true)).toContain('\u001b[');
  expect(line({ NO_COLOR: '1' }, true)).toBe(line({}, false));
});

test('default format: pretty on a terminal, else JSON', () => {
  const line = (isTTY: boolean): string => {
    const { root, text } = start({ format: undefined }, { NO_COLOR: '1' }, isTTY);
    root.write('daemon.stopped');
    return text();
  };
  expect(line(true)).toBe('[2026-11-20T03:00:00.000Z] INFO: daemon stopped {"event":"daemon.stopped"}\n');
  expect(JSON.parse(line(false))).toMatchObject({ event: 'daemon.stopped' });
});

test('pretty: the message ends with the reasons, each once', () => {
  const { root, text } = start({ format: 'pretty' });
  const error = new WaybillError('sink_unavailable', 'cannot reach siem', { cause: new Error('connect ECONNREFUSED 127.0.0.1:9200') });
  root.child('deliver').write('sink.delivery_failed', { sink: 'siem', retryInMs: 1_115, error });
  root.write('config.warning', { detail: 'admin.listen: 0.0.0.0:9464 is not a loopback address' });
  expect(text().split('\n')).toEqual([
    '[2026-11-20T03:00:00.000Z] WARN: delivery failed, retrying: cannot reach siem: connect ECONNREFUSED 127.0.0.1:9200 {"event":"sink.delivery_failed","component":"deliver","sink":"siem","retryInMs":1115,"code":"sink_unavailable"}',
    '[2026-11-20T03:00:00.000Z] WARN: configuration warning: admin.listen: 0.0.0.0:9464 is not a loopback address {"event":"config.warning"}',
    '',
  ]);
});

describe('a stuck or closed reader', () => {
  test('lines are dropped and counted, and the count is written once the reader drains', () => {
    let [text, kept] = ['', 0];
    let drain: () => void = () => undefined;
    const stream = {
      write: (line: string) => void (text += ofLog(line)),
      once: (_: 'drain', listener: () => void) => void (drain = listener),
      get writableLength() {
        return kept;
      },
    };
    const { root, lost } = createLog({ level: 'info', format: 'json', levels: {} }, new TestClock(), stream, {});
    root.write('admin.restarted');
    kept = 2 ** 20;
    for (let i = 0; i < 1_000; i += 1) root.write('sink.delivery_resumed', { sink: 'siem' });
    expect([text.split('\n').length, lost()]).toEqual([2, 1_000]);
    kept = 0;
    drain();
    root.write('daemon.stopped');
    drain();
    expect(
      text
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as object),
    ).toMatchObject([{ event: 'admin.restarted' }, { level: 'warn', event: 'log.lines_lost', lines: 1_000 }, { event: 'daemon.stopped' }]);
    expect(lost()).toBe(1_000);
  });

  test('lines that cannot be written are counted, and the count is written once writing works', () => {
    let text = '';
    let failure: Error | undefined = Object.assign(new Error('write EPIPE'), { code: 'EPIPE' });
    const write = (line: string, done?: (error?: Error | null) => void): void => {
      if (failure === undefined) text += line;
      done?.(failure);
    };
    const { root, lost } = createLog({ level: 'info', format: 'json', levels: {} }, new TestClock(), { write }, {});
    for (let i = 0; i < 5; i += 1) root.write('sink.delivery_resumed', { sink: 'siem' });
    expect([text, lost()]).toEqual(['', 5]);
    failure = undefined;
    root.write('admin.restarted');
    expect(
      text
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as object),
    ).toMatchObject([{ lines: 5 }, { event: 'admin.restarted' }]);
  });
});
