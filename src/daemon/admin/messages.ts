/** The calls between the main thread of the daemon and the thread of the admin server. */
import type { Snapshot } from '../../model/snapshot.ts';
import type { LogEventCode } from '../../model/log-events.ts';
import type { CarriedError } from '../carried-error.ts';
import type { ReportQuery } from '../../journal/queries/ledger.ts';
import type { DatabaseValues } from './report-thread.ts';
import type { ReportedService } from '../../report/ledger/html.ts';

/** The part of the configuration that reports use. A reload replaces it. */
export interface Reported {
  readonly settings: Pick<ReportQuery, 'sinkSources' | 'filteredSinks' | 'configured' | 'recountAges'>;
  /** By source: the facts for the head of a report. */
  readonly services: Readonly<Record<string, ReportedService>>;
}

export interface AdminThreadData extends Reported {
  /** The state directory; undefined: the state of a fleet is in its database. */
  readonly state: string | undefined;
  readonly version: string;
  /** The main thread writes it, at the indexes of `pulse`. */
  readonly pulse: Int32Array;
}

/** Indexes of `AdminThreadData.pulse`. `beat`: a counter that advances while the main thread responds. `isOpen`: 1 once the state is open. */
export const pulse = { beat: 0, isOpen: 1 } as const;

/** Addresses of the configuration, or the socket in the state directory. */
export type Listen =
  | {
      readonly place: 'network';
      readonly listen: string | readonly string[];
      readonly tls: { readonly cert: string; readonly key: string } | undefined;
      readonly tokens: readonly TokenName[];
    }
  | { readonly place: 'socket'; readonly path: string };

export const tokenNames = ['token', 'readToken'] as const;
export type TokenName = (typeof tokenNames)[number];

/** The calls that the main thread answers. */
export interface DaemonService {
  /** Undefined while the state is not open. */
  snapshot(): Snapshot | undefined | Promise<Snapshot | undefined>;
  metricsText(): Promise<string>;
  operate(request: unknown): Promise<unknown>;
  /** The database of a fleet. */
  database(): Promise<DatabaseValues>;
  /** The last readable value; '' if the token is not configured. */
  token(name: TokenName): string;
  log(event: LogEventCode, fields: object, error: CarriedError | undefined): void;
}

/** The calls that the thread of the admin server answers. */
export interface AdminService {
  /** @returns the addresses listened on */
  listen(listen: Listen): Promise<readonly string[]>;
  follow(reported: Reported): void;
  close(): Promise<void>;
}
