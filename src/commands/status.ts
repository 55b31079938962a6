/** `waybill status`: a verdict in words, then sources, sinks and journal. Asks the running daemon, else reads what the state knows. */
import { request } from 'node:http';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { systemClock } from '../clock.ts';
import { loadConfig } from '../config/load.ts';
import type { Config } from '../config/load.ts';
import { WaybillError } from '../errors.ts';
import { snapshotOf, withCoverage } from '../journal/report.ts';
import { lastWrite, openReadOnly } from '../journal/state.ts';
import type { Snapshot } from '../model.ts';
import { reportSettings, wantedBy } from '../daemon/views.ts';
import { statusJson } from '../observe/verdict.ts';
import { version } from '../version.ts';
import type { Io } from './io.ts';
import { parseZone } from '../config/period.ts';
import { statusText } from './status-text.ts';

export const summary = 'says whether the trail is whole, and who needs you';

export const usage = `waybill status [--config FILE] [--source PATTERN] [--tz ZONE] [--json]

A verdict in words first, then sources, sinks and the journal, and last what to do about the worst trouble.

  --source PATTERN    only these sources; * stands for anything, as in 'acme-*'
  --tz ZONE           zone of the times in text; default UTC

Examples:
  waybill status
  waybill status --source 'acme-*' --json
`;

export async function run(args: string[], io: Io): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      config: { type: 'string' },
      source: { type: 'string' },
      tz: { type: 'string', default: 'UTC' },
      json: { type: 'boolean', default: false },
    },
  });
  const tz = parseZone(values.tz);
  const { config } = await loadConfig(values.config, io.env, { requireSecrets: false });
  const whole = await currentSnapshot(config);
  const wanted = values.source === undefined ? () => true : glob(values.source);
  const snapshot = { ...whole, sources: whole.sources.filter(({ id }) => wanted(id)) };
  if (values.source !== undefined && snapshot.sources.length === 0) {
    throw new WaybillError('usage', `cannot find a source "${values.source}": there are ${whole.sources.map(({ id }) => id).join(', ')}`);
  }
  if (values.json) {
    io.stdout.write(`${JSON.stringify(statusJson(snapshot), null, 2)}\n`);
    return 0;
  }
  const terminal = 'isTTY' in io.stdout && io.stdout.isTTY === true;
  const width = 'columns' in io.stdout && typeof io.stdout.columns === 'number' ? io.stdout.columns : 120;
  const text = statusText(snapshot, { color: terminal && !io.env['NO_COLOR'], tz, width });
  io.stdout.write(text.endsWith('\n') ? text : `${text}\n`);
  return 0;
}

/** The moment as the running daemon knows it, else as the state does. */
export async function currentSnapshot(config: Config): Promise<Snapshot> {
  return (await running(config)) ?? stopped(config);
}

/** What the running daemon says through its socket; undefined when none runs. */
async function running(config: Config): Promise<Snapshot | undefined> {
  return new Promise((resolve, reject) => {
    const asking = request({ socketPath: join(config.state, 'waybill.sock'), path: '/snapshot', timeout: 5_000 }, (answer) => {
      const parts: Buffer[] = [];
      answer.on('data', (part: Buffer) => parts.push(part));
      answer.on('error', reject);
      answer.on('end', () => {
        if (answer.statusCode === 200) resolve(JSON.parse(Buffer.concat(parts).toString('utf8')) as Snapshot);
        else resolve(undefined);
      });
    });
    asking.on('timeout', () => asking.destroy(new WaybillError('state_unusable', 'cannot ask the running daemon: no answer within 5 s')));
    asking.on('error', (thrown: NodeJS.ErrnoException) => {
      // No socket, or one that a dead process left: nobody runs.
      if (thrown.code === 'ENOENT' || thrown.code === 'ECONNREFUSED') resolve(undefined);
      else reject(thrown);
    });
    asking.end();
  });
}

function stopped(config: Config): Snapshot {
  const db = openReadOnly(config.state);
  try {
    const settle = new Map(config.sources.map((source) => [source.id, source.settle / 1000]));
    const snapshot = snapshotOf(db, version, systemClock.now() * 1000, {
      source: () => ({ trouble: 'the daemon does not run' }),
      sink: () => undefined,
      settleSeconds: (id) => settle.get(id) ?? 0,
      paused: undefined,
      quota: config.journal.quota,
      configured: config.sources.map(({ id }) => id),
      wanted: wantedBy(config),
      stopped: { since: lastWrite(config.state) },
    });
    return withCoverage(db, snapshot, reportSettings(config));
  } finally {
    db.close();
  }
}

function glob(pattern: string): (id: string) => boolean {
  const parts = pattern.split('*').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  const expression = new RegExp(`^${parts.join('.*')}$`);
  return (id) => expression.test(id);
}
