import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { between, seeded } from '../support/records.ts';
import { beside, opened, temporary } from '../support/journal/opening.ts';
import { faultsOf, seenFaults, tilingFaults } from '../support/journal/recompute.ts';

const child = fileURLToPath(new URL('../support/journal/journal-killed.ts', import.meta.url));

interface Reported {
  readonly seq: number;
  readonly chain: string;
  readonly acknowledged: number;
  readonly frontier: number;
}

/**
 * Runs the child, kills it shortly after this number of reported commits, and returns its reports.
 */
async function killed(directory: string, reports: number, afterMs: number): Promise<Reported[]> {
  const running = spawn(process.execPath, [child, directory], { stdio: ['ignore', 'pipe', 'pipe'] });
  let out = '';
  let err = '';
  running.stderr.on('data', (text: Buffer) => (err += text.toString()));
  const ended = once(running, 'close');
  let timer: NodeJS.Timeout | undefined;
  running.stdout.on('data', (text: Buffer) => {
    out += text.toString();
    if (out.split('\n').length > reports) timer ??= setTimeout(() => running.kill('SIGKILL'), afterMs);
  });
  await ended;
  expect(err).toBe('');
  // The last line may be torn.
  return out
    .split('\n')
    .slice(0, -1)
    .map((line) => {
      const [seq, chain = '', acked, frontier] = line.split(' ');
      return { seq: Number(seq), chain, acknowledged: Number(acked), frontier: Number(frontier) };
    });
}

const kills = 15;

/** Starts and kills writers of one state, one after another. */
async function lives(lane: number): Promise<void> {
  const directory = temporary();
  const random = seeded(lane);
  let head = 0;
  for (let kill = 0; kill < kills; kill += 1) {
    const reports = await killed(directory, between(random, 1, 20), between(random, 0, 8));
    const db = beside(directory);
    expect(faultsOf(db)).toEqual([]);
    expect(tilingFaults(db)).toEqual([]);
    // The uids of pruned records are known, but in no segment.
    expect(seenFaults(db).filter((fault) => !fault.endsWith('is known and was not appended'))).toEqual([]);
    const last = reports.at(-1);
    if (!last) throw new Error('the child was killed before its first report');
    const now = db
      .prepare(
        'SELECT head.seq, head.pruned_seq AS pruned, acknowledged, delivered, resume_note AS note, frontier_us AS frontier FROM head, sinks, sources WHERE source_no = 1',
      )
      .get() as {
      seq: number;
      pruned: number;
      acknowledged: number;
      delivered: number;
      note: string;
      frontier: number;
    };
    expect(last.seq).toBeGreaterThan(head);
    expect(now.seq).toBeGreaterThanOrEqual(last.seq);
    expect(now.acknowledged).toBeGreaterThanOrEqual(last.acknowledged);
    expect(now.frontier).toBeGreaterThanOrEqual(last.frontier);
    expect(now.note).toBe(`at ${now.delivered}`);
    expect(now.acknowledged).toBeLessThanOrEqual(now.seq);
    expect(now.pruned).toBeLessThanOrEqual(now.acknowledged);
    const chainAt = db.prepare<[number], { chain: string }>(
      'SELECT lower(hex(chain)) AS chain FROM segments WHERE seq <= ? ORDER BY seq DESC LIMIT 1',
    );
    for (const { seq, chain } of reports) if (seq > now.pruned) expect(chainAt.get(seq)?.chain).toBe(chain);
    expect(db.pragma('integrity_check', { simple: true })).toBe('ok');
    db.close();
    head = now.seq;
  }
  const { journal } = await opened({ directory });
  expect(journal.head().seq).toBe(head);
  expect(head).toBeGreaterThan(kills * 30);
}

// A child starts in a sixth of a second on an idle machine, and takes many times longer on a busy
// one.
// promise: Every commit that was reported before `kill -9` is in the journal. Separate code computes chain and ranges again.
test(`every commit reported before kill -9 is in the journal, ${2 * kills} times`, { timeout: 300_000 }, async () => {
  await Promise.all([lives(1), lives(2)]);
});
