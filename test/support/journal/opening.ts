/**
 * A journal on real SQLite in a separate directory, released when the test ends, and small helpers
 * for its tests.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, onTestFinished, type TestContext } from 'vitest';
import { codeOf } from '../../../src/errors/errors.ts';
import { Journal } from '../../../src/journal/journal.ts';
import type { JournalOptions } from '../../../src/journal/journal.ts';
import type { CollectedPage, CollectedRecord } from '../../../src/model/journal.ts';
import type { WindowStep, Verdict, Window } from '../../../src/model/ledger.ts';
import type { Micros } from '../../../src/model/time.ts';
import { base, day, second } from '../records.ts';
import { contentOf, contentOfCopy, ModelDatabase } from './model-database.ts';
import { VirtualClock } from '../virtual-clock.ts';

export const source = 'production';
export const lastAge = 30 * day;

export function temporary(): string {
  const directory = mkdtempSync(join(tmpdir(), 'waybill-journal-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

export interface Opened {
  readonly journal: Journal;
  readonly directory: string;
  readonly clock: VirtualClock;
  /** A separate connection to the file. */
  readonly beside: () => Database.Database;
  readonly close: () => Promise<void>;
}

/** With WAYBILL_TEST_SHARD each journal is the working copy of a shard, on a model of its database. */
const isShard = process.env['WAYBILL_TEST_SHARD'] !== undefined;
/** Directories whose file a test may have changed itself. */
const changedByTest = new Set<string>();
/** The model of each directory: a journal that is opened again in it takes the shard over. */
const models = new Map<string, ModelDatabase>();

/** Skips a test of something that only the file of a state has. */
export function onlyInFile(context: Pick<TestContext, 'skip'>, reason: string): void {
  context.skip(isShard, `a shard: ${reason}`);
}

/** The model for a directory. A state that a test has made or changed in the directory becomes its content first. */
function modelFor(directory: string): ModelDatabase {
  const model = models.get(directory) ?? new ModelDatabase();
  models.set(directory, model);
  model.loadsAll = true;
  if (existsSync(join(directory, 'waybill.db'))) {
    const db = new Database(join(directory, 'waybill.db'), { readonly: true });
    model.replace(db);
    db.close();
  }
  return model;
}

/** Opens a journal whose source starts at `base`. */
export async function opened(options: Partial<JournalOptions> & { clock?: VirtualClock } = {}): Promise<Opened> {
  const { clock = new VirtualClock(base / 1000), directory = temporary(), ...others } = options;
  const model = isShard ? modelFor(directory) : undefined;
  const database = model?.take();
  const journal = await Journal.open(
    { directory, maxSize: 2 ** 30, retention: 30 * 86_400_000, version: '0.1.0', expectState: false, lockWait: 0, database, ...others },
    clock,
    new AbortController().signal,
  );
  let isOpen = true;
  const close = async (): Promise<void> => {
    if (!isOpen) return;
    isOpen = false;
    if (model && journal.db.open) {
      try {
        await journal.flush();
        // One more transaction also sends what a test has changed through the connection of the journal.
        journal.storeSettings(`{ "closed": ${clock.now()} }`);
        await journal.settled();
      } catch (thrown) {
        // A full journal, and one that a fault has ended, accept no more. What they stored before is compared all the same.
        if (codeOf(thrown) === undefined) throw thrown;
      }
      // What a test changed beside the journal, through another connection, is no change of the journal.
      if (!changedByTest.has(directory)) expect(contentOf(model.rows)).toEqual(contentOfCopy(journal.db, model.rows));
    }
    await journal[Symbol.asyncDispose]();
  };
  onTestFinished(close);
  journal.registerSource(source, 'tenant', base);
  return { journal, directory, clock, close, beside: () => beside(directory) };
}

export function beside(directory: string, readonly = false): Database.Database {
  const db = new Database(join(directory, 'waybill.db'), { readonly });
  if (!readonly) changedByTest.add(directory);
  onTestFinished(() => {
    db.close();
  });
  return db;
}

export function pageOf(records: readonly CollectedRecord[], more: Partial<CollectedPage> = {}): CollectedPage {
  return { source, records, received: base + 7, serverNow: base, ...more };
}

/** A window of whole seconds relative to `base`. */
export function span(from: number, to: number): Window {
  return { from: base + from * second, to: base + to * second };
}

const query = { startTime: '2026-11-20T01:59:59.00', endTime: '2026-11-20T02:00:11.00' };

export function proven(total = 0, at: Micros = base + day, next?: Micros): WindowStep {
  const digest = createHash('sha256').digest();
  return {
    verdict: { proven: true, proof: { query, total, inWindow: total, digest, passes: 1, requests: 2, first: at, last: at } },
    next,
    at,
    recount: false,
  };
}

export function gap(
  more: Partial<Verdict & { proven: false }> = {},
  next: Micros | undefined = base + day,
  at: Micros = base + day,
): WindowStep {
  const verdict: Verdict = {
    proven: false,
    reason: 'count',
    message: 'received 2, the service counted 3',
    query,
    total: 3,
    inWindow: 2,
    seen: 2,
    digest: createHash('sha256').digest(),
    passes: 6,
    requests: 12,
    ...more,
  };
  return { verdict, next, at, recount: false };
}
