/** Divides `journal.maxSize` between the pages of the file and SQLite's WAL, which share a disk. */
import { statSync } from 'node:fs';
import type { Database } from 'better-sqlite3';

export const pageBytes = 4_096;
/** Collection pauses above the first share of `maxSize` and resumes below the second. */
export const pauseAbove = 0.97;
export const resumeBelow = 0.9;
/** At most one checkpoint for every 32 MiB: each costs two syncs. */
const maxCheckpointPages = 8_000;
/** A smaller file cannot hold a state; only tests configure one. */
const minFilePages = 64;

export interface DiskBudget {
  /** Pages of the file, free pages included. */
  readonly filePages: number;
  /** WAL size, in pages, at which SQLite starts a checkpoint. */
  readonly checkpointPages: number;
  /** Reserve for the WAL: twice the checkpoint size, because the transaction that reaches the limit is written completely. */
  readonly walBytes: number;
}

/** @param maxSize  `journal.maxSize`, bytes */
export function diskBudgetOf(maxSize: number): DiskBudget {
  const pages = Math.floor(maxSize / pageBytes);
  const checkpointPages = Math.min(maxCheckpointPages, Math.max(1, Math.floor(pages / 16)));
  const walPages = 2 * checkpointPages;
  return { filePages: Math.max(minFilePages, pages - walPages), checkpointPages, walBytes: walPages * pageBytes };
}

export function walBytes(db: Database): number {
  return statSync(`${db.name}-wal`, { throwIfNoEntry: false })?.size ?? 0;
}

/**
 * The used part of `maxSize` in bytes: used pages plus the WAL, at least its reserve. The WAL exceeds the reserve when a single page of the
 * service is larger, or during a long read transaction.
 */
export function usedBytes(usedPages: number, db: Database, budget: DiskBudget): number {
  return usedPages * pageBytes + setAsideBytes(db, budget);
}

/** The part of `usedBytes` for the WAL. It is no content: SQLite empties and reuses it. */
export function setAsideBytes(db: Database, budget: DiskBudget): number {
  return Math.max(budget.walBytes, walBytes(db));
}
