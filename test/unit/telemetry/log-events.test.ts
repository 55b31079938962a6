import { readFileSync, readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { logEvents } from '../../../src/model/log-events.ts';
import type { Log } from '../../../src/model/telemetry.ts';
import { presentable } from '../../../src/telemetry/log-fields.ts';
import { expectPart } from '../../support/generated-part.ts';

const root = new URL('../../../', import.meta.url);
const sources = readdirSync(new URL('src/', root), { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts'))
  .map((path) => ({ path: `src/${path}`, text: readFileSync(new URL(`src/${path}`, root), 'utf8') }));

test('the type rejects a line without an event, an unknown event, a missing field, and a field that the event does not list', () => {
  const written: unknown[] = [];
  const log: Log = { write: (...parts) => void written.push(parts) };
  const listed = { sink: 'siem', attempts: 1, retryInMs: 5, error: undefined };
  const unlisted = { ...listed, waitMs: 5 };
  const perhaps: { attempts: number | undefined } = { attempts: undefined };
  // `npm run typecheck` fails when a line below a directive compiles.
  // @ts-expect-error the event is missing
  log.write({ sink: 'siem' });
  // @ts-expect-error unknown event
  log.write('sink.delivery_delayed', { sink: 'siem' });
  // @ts-expect-error unlisted field in a literal
  log.write('sink.delivery_failed', { ...listed, waitMs: 5 });
  // @ts-expect-error unlisted field in a variable
  log.write('sink.delivery_failed', unlisted);
  // @ts-expect-error unlisted field in a spread
  log.write('sink.delivery_failed', { ...unlisted, code: 'sink_unavailable' });
  // @ts-expect-error required fields are missing
  log.write('sink.delivery_failed', { sink: 'siem', retryInMs: 5 });
  // @ts-expect-error no fields at all
  log.write('sink.delivery_failed');
  // @ts-expect-error a required field may have no value
  log.write('sink.delivery_failed', { ...listed, ...perhaps });
  log.write('sink.delivery_failed', listed);
  log.write('sink.delivery_failed', { ...listed, code: 'sink_unavailable' });
  log.write('daemon.stopped');
  expect(written).toHaveLength(11);
});

test('only src/telemetry writes log lines: no other file imports pino or uses the console', () => {
  const others = sources.filter(({ path }) => !path.startsWith('src/telemetry/'));
  expect(others.filter(({ text }) => /from 'pino|\bconsole\.\w+\(/.test(text)).map(({ path }) => path)).toEqual([]);
  expect(sources.filter(({ text }) => text.includes("from 'pino'")).map(({ path }) => path)).toEqual(['src/telemetry/log.ts']);
});

test('the code writes every event of the table', () => {
  const writers = sources.filter(({ path }) => path !== 'src/model/log-events.ts').map(({ text }) => text);
  expect(Object.keys(logEvents).filter((event) => !writers.some((text) => text.includes(`'${event}'`)))).toEqual([]);
});

test('fields of the table are unique, not reserved, and not redacted', () => {
  for (const [event, { fields }] of Object.entries(logEvents)) {
    const names = fields.split(' ').flatMap((name) => (name === '' ? [] : [name.replace('?', '')]));
    expect(new Set(names).size, event).toBe(names.length);
    expect(
      names.filter((name) => ['level', 'time', 'event', 'component', 'message'].includes(name)),
      event,
    ).toEqual([]);
    expect(presentable(Object.fromEntries(names.map((name) => [name, 'text']))), event).toEqual(
      Object.fromEntries(names.map((name) => [name, 'text'])),
    );
  }
});

test('docs/logs.md lists every event', async () => {
  const groups = Map.groupBy(Object.entries(logEvents), ([event]) => event.slice(0, event.indexOf('.')));
  const row = ([event, { level, message, fields, meaning }]: [string, (typeof logEvents)[keyof typeof logEvents]]): string => {
    const names =
      fields === ''
        ? ''
        : fields
            .split(' ')
            .map((name) => (name.endsWith('?') ? `\`${name.slice(0, -1)}\`?` : `\`${name}\``))
            .join(' ');
    return `| \`${event}\` | ${level} | ${message} | ${names} | ${meaning} |\n`;
  };
  const tables = [...groups].map(
    ([group, events]) =>
      `## ${group}\n\n| event | level | message | fields | meaning |\n| --- | --- | --- | --- | --- |\n${events.map(row).join('')}`,
  );
  // `npx vitest run test/unit/telemetry/log-events.test.ts --update` writes the file.
  await expectPart('docs/logs.md', 'events', tables.join('\n'));
});
