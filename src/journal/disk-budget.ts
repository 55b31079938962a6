/**
 * How `journal.maxSize` is divided: the pages of the file, and what SQLite's WAL beside it may take. Both lie on the same disk, so both are counted.
 */
import { statSync } from 'node:fs';
import type { Database } from 'better-sqlite3';

export const pageBytes = 4_096;
/** Collecting pauses above the one share of `maxSize`, and goes on below the other. */
export const pauseAbove = 0.97;
export const resumeBelow = 0.9;
/** A checkpoint for every 32 MiB at most: each costs two syncs. */
const maxCheckpointPages = 8_000;
/** Less than this is no state: tests alone ask for so little. */
const minFilePages = 64;

export interface DiskBudget {
  /** Pages of the file, its free ones too. */
  readonly filePages: number;
  /** Pages in the WAL at which SQLite brings them into the file. */
  readonly checkpointPages: number;
  /** Set aside for the WAL: as much again, since the transaction that reaches the checkpoint still goes in whole. */
  readonly walBytes: number;
}

/** @param maxSize  `journal.maxSize`, bytes */
export function diskBudgetOf(maxSize: number): DiskBudget {
  const pages = Math.floor(maxSize / pageBytes);
  const checkpointPages = Math.min(maxCheckpointPages, Math.max(1, Math.floor(pages / 16)));
  const walPages = 2 * checkpointPages;
  return { filePages: Math.max(minFilePages, pages - walPages), checkpointPages, walBytes: walPages * pageBytes };
}

/** Bytes that the WAL of a connection takes on disk. */
export function walBytes(db: Database): number {
  return statSync(`${db.name}-wal`, { throwIfNoEntry: false })?.size ?? 0;
}

/**
 * Bytes of `maxSize` that are used: pages that hold something, and the WAL, with at least what is set aside for it. It is larger where a page
 * of the service is larger than that, or while somebody reads in one long transaction.
 */
export function usedBytes(usedPages: number, db: Database, room: DiskBudget): number {
  return usedPages * pageBytes + Math.max(room.walBytes, walBytes(db));
}

/** The part of that which the WAL may take and does not take now. */
export function setAsideBytes(db: Database, room: DiskBudget): number {
  return Math.max(0, room.walBytes - walBytes(db));
}
