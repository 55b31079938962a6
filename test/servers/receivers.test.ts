/**
 * The recipes of docs/receivers.md: each sends every outcome, with the settings of the page, to the receiver's own parser where one can be had.
 * The column "run with" of the page is compared with this list.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import type { Format } from '../../src/encode/index.ts';
import { normalizer } from '../../src/normalize/normalizer.ts';
import { syslog } from '../../src/sink/syslog/index.ts';
import { inPlace, until } from '../support/e2e-place.ts';
import { readStrictly } from '../support/encode/cef-strict.ts';
import { encoder } from '../support/encode/texts.ts';
import { fullest, network, recordOf, settings, shapes } from '../support/normalize/records.ts';
import { freePort } from '../support/servers/ports.ts';
import { cacheFolder, notAsked } from '../support/servers/programs.ts';
import { rsyslog, rsyslogMissing } from '../support/servers/rsyslog.ts';
import { SyslogReceiver } from '../support/servers/syslog-receiver.ts';
import { batchOf, contextOf, message, ModelKept } from '../support/sinks/sink-batches.ts';

const page = readFileSync(join(import.meta.dirname, '../../docs/receivers.md'), 'utf8');
const never = new AbortController().signal;
const pem = (text: string) => ({ read: () => [text], describe: () => 'a file of the test' });

/** The first sink that the page shows for a receiver. */
interface Recipe {
  readonly format?: Format;
  readonly cef?: { readonly ipv6?: 'c6a2' | 'src' };
  readonly [setting: string]: unknown;
}

function recipeOf(receiver: string): Recipe {
  const [, block = ''] = new RegExp(`^## ${receiver}$[^]*?^\`\`\`yaml\n([^]*?)^\`\`\``, 'm').exec(page) ?? [];
  const { sinks } = parse(block) as { sinks: readonly [Recipe] };
  return sinks[0];
}

const records = [
  ...shapes.map(({ text }) => text),
  JSON.stringify({ ...fullest, userNetwork: { ...network, ipAddress: '2001:db8::7' } }),
  JSON.stringify({ ...fullest, payloadName: 'x=y CEF|z \\ "q" ]: Ж€𝄞', userNetwork: { ...network, ipAddress: '::ffff:192.0.2.9' } }),
];

/** Sends all records by a recipe to another address. @returns their lines and times */
async function sendBy(recipe: Recipe, address: string, tls?: object): Promise<readonly { readonly line: string; readonly ms: number }[]> {
  const { format = 'cef', cef, ...others } = recipe;
  const own = Object.fromEntries(Object.entries(others).filter(([name]) => !['id', 'type', 'tls'].includes(name)));
  const encode = encoder(format, { includeOriginal: false, cef: { ipv6: cef?.ipv6 ?? 'c6a2', geo: 'cfp' } });
  const events = records.map((text) => normalizer(settings)(recordOf(text)));
  const lines = events.map((event) => ({ line: encode(event), ms: Math.floor(event.time / 1_000) }));
  const given = syslog.config.parse({ hostname: 'gateway-1', ...own, address });
  const context = contextOf('recipe', tls === undefined ? {} : { ca: pem((tls as { ca: string }).ca) });
  const client = tls as { cert: string; key: string } | undefined;
  const secured = client && ({ cert: pem(client.cert), key: pem(client.key) } as unknown as (typeof given)['tls']);
  await using sink = await syslog.open({ ...given, tls: secured }, context, new ModelKept(), never);
  const sent = lines.map(({ line, ms }, i) => ({ ...message(i + 1, line), time: ms * 1_000 }));
  expect(await sink.send(batchOf(sent), never)).toEqual({ rejections: [] });
  return lines;
}

/** Reads all lines that arrive on a port. */
async function linesBy(send: (address: string) => Promise<unknown>): Promise<string[]> {
  let text = '';
  const server = createServer({ allowHalfOpen: true }, (socket) => socket.setEncoding('utf8').on('data', (part: string) => (text += part)).on('end', () => socket.end())); // prettier-ignore
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  await send(`tcp://127.0.0.1:${(server.address() as AddressInfo).port}`);
  server.close();
  return text.split('\n').filter((line) => line !== '');
}

const cefParser = join(cacheFolder(), 'cef-parser-0.0.1.10');
const collector = join(cacheFolder(), 'otelcol-0.160.0/otelcol');
const decoded = (text: string): string => Buffer.from(text, 'base64url').toString();

interface Run {
  readonly receiver: string;
  /** As the page says: the program that reads the messages here. */
  readonly runWith: string;
  readonly missing?: () => string | undefined;
  readonly run?: (recipe: Recipe) => Promise<void>;
}

const runs: readonly Run[] = [
  {
    receiver: 'Microsoft Sentinel',
    runWith: 'rsyslog 8.2302',
    missing: rsyslogMissing,
    async run(recipe) {
      await using receiver = await SyslogReceiver.start(rsyslog());
      const { authority, client } = receiver;
      const sent = await sendBy(recipe, receiver.address('relp+tls'), { ca: authority.cert, ...client });
      const found = receiver.received('relp+tls');
      expect(found.map(({ msg }) => msg)).toEqual(sent.map(({ line }) => line));
      expect(found.map(({ ts }) => Date.parse(ts))).toEqual(sent.map(({ ms }) => ms));
      expect(new Set(found.map(({ host, app, pri }) => `${host} ${app} ${Number(pri) >> 3}`))).toEqual(new Set(['gateway-1 waybill 20']));
    },
  },
  { receiver: 'IBM QRadar', runWith: 'not run' },
  { receiver: 'ArcSight', runWith: 'not run' },
  { receiver: 'Splunk Connect for Syslog', runWith: 'syslog-ng 3.38 with our parser' },
  {
    receiver: 'Graylog',
    runWith: 'cef-parser 0.0.1.10',
    missing: () => (existsSync(cefParser) ? undefined : `no ${cefParser} (test/servers/install.sh cef-parser)`),
    async run(recipe) {
      let sent: Awaited<ReturnType<typeof sendBy>> = [];
      const frames = await linesBy(async (address) => (sent = await sendBy(recipe, address)));
      const { stdout, stderr } = spawnSync('java', ['-cp', `${cefParser}/lib/*:${cefParser}/classes`, 'CefLines'], {
        input: frames.join('\n'),
        encoding: 'utf8',
      });
      const found = stdout.split('\n').filter((line) => line !== '').map((line) => line.split(' ')); // prettier-ignore
      expect(found, stderr).toHaveLength(sent.length);
      for (const [i, [host = '', ms, name = '', ...fields]] of found.entries()) {
        const { line, ms: wantedMs } = sent[i] ?? { line: '', ms: 0 };
        const wanted = readStrictly(line);
        const values = new Map(fields.map((field) => field.split(':').map(decoded) as [string, string]));
        expect([decoded(host), Number(ms), decoded(name)]).toEqual(['gateway-1', wantedMs, wanted.name]);
        for (const [key, value] of wanted.values) {
          // It does not undo the escape of a backslash.
          expect(values.get(key)?.replaceAll('\\\\', '\\'), key).toBe(value);
          // The pattern of Graylog's Message: a field with another name is dropped.
          if (key.endsWith('Label')) expect(value).toMatch(/^[\w.@-]+$/);
        }
      }
    },
  },
  { receiver: 'Cribl Stream', runWith: 'not run' },
  { receiver: 'CrowdStrike Falcon LogScale', runWith: 'not run' },
  { receiver: 'OpenSearch', runWith: 'Kafka 4.4; the consumer is not run' },
  {
    receiver: 'OpenTelemetry Collector and Google SecOps',
    runWith: 'OpenTelemetry Collector 0.160',
    missing: () => (existsSync(collector) ? undefined : `no ${collector}: "install.sh otelcol" builds it`),
    run: (recipe) =>
      inPlace('collector', async (place) => {
        const port = await freePort();
        const config = {
          receivers: { syslog: { protocol: 'rfc5424', tcp: { listen_address: `127.0.0.1:${port}`, max_log_size: '1MiB' } } },
          exporters: { file: { path: place.path('out.json') } },
          service: { pipelines: { logs: { receivers: ['syslog'], exporters: ['file'] } }, telemetry: { metrics: { level: 'none' } } },
        };
        writeFileSync(place.path('collector.yaml'), JSON.stringify(config));
        const child = spawn(collector, ['--config', place.path('collector.yaml')], { stdio: ['ignore', 'ignore', 'pipe'] });
        let output = '';
        child.stderr.setEncoding('utf8').on('data', (text: string) => (output += text));
        try {
          await until(() => `a ready collector\n${output}`, 30_000, () => output.includes('Everything is ready') || undefined); // prettier-ignore
          const sent = await sendBy(recipe, `tcp://127.0.0.1:${port}`);
          const found = await until(
            () => `${sent.length} logs\n${output}`,
            30_000,
            () => {
              const logs = existsSync(place.path('out.json')) ? logsIn(readFileSync(place.path('out.json'), 'utf8')) : [];
              return logs.length >= sent.length ? logs : undefined;
            },
          );
          expect(found.map(({ text }) => text)).toEqual(sent.map(({ line }) => line));
          expect(found.map(({ ms }) => ms)).toEqual(sent.map(({ ms }) => ms));
          expect(new Set(found.map(({ host }) => host))).toEqual(new Set(['gateway-1']));
        } finally {
          child.kill('SIGTERM');
          await once(child, 'exit');
        }
      }),
  },
];

interface OtlpAttribute {
  readonly key: string;
  readonly value: { readonly stringValue?: string };
}
interface OtlpLine {
  readonly resourceLogs: readonly {
    readonly scopeLogs: readonly {
      readonly logRecords: readonly { readonly timeUnixNano: string; readonly attributes: readonly OtlpAttribute[] }[];
    }[];
  }[];
}

/** The logs of the file exporter. */
function logsIn(text: string): { readonly text: string | undefined; readonly ms: number; readonly host: string | undefined }[] {
  const lines = text.split('\n').filter((line) => line.endsWith('}'));
  return lines
    .flatMap((line) => (JSON.parse(line) as OtlpLine).resourceLogs)
    .flatMap(({ scopeLogs }) => scopeLogs.flatMap(({ logRecords }) => logRecords))
    .map(({ timeUnixNano, attributes }) => {
      const of = (name: string): string | undefined => attributes.find(({ key }) => key === name)?.value.stringValue;
      return { text: of('message'), ms: Number(BigInt(timeUnixNano) / 1_000_000n), host: of('hostname') };
    });
}

test('the page says for each recipe with which program it is run', () => {
  const rows = [...page.matchAll(/^\| \[(.+?)\]\(#.+?\) \|.*\| (.+?) \|$/gm)].map(([, name = '', runWith]) => [
    name.replace(',', ' and'),
    runWith?.trim(),
  ]);
  expect(rows).toEqual(runs.map(({ receiver, runWith }) => [receiver, runWith]));
});

test.for(runs)('$receiver: $runWith', { timeout: 120_000 }, async ({ receiver, runWith, missing, run }, { skip }) => {
  const recipe = recipeOf(receiver);
  expect(recipe['type']).toMatch(/^(syslog|splunk-hec|kafka)$/);
  if (run === undefined)
    return skip(runWith === 'not run' ? 'its parser cannot be had: the recipe is not run' : 'other tests of this folder run it');
  const why = notAsked() ?? missing?.();
  if (why !== undefined) return skip(why);
  return run(recipe);
});
