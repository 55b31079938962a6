/** The messages between the main thread of the daemon and the thread of the admin server; all can be structured-cloned. */
import type { LogEventCode } from '../../model/log-events.ts';
import type { CarriedError } from '../carried-error.ts';
import type { ReportQuery } from '../../journal/queries/ledger.ts';
import type { ReportedService } from '../../report/ledger/html.ts';

/** The part of the configuration that reports use. A reload changes it. */
export interface Reported {
  readonly settings: Pick<ReportQuery, 'sinkSources' | 'filteredSinks' | 'configured' | 'recountAges'>;
  /** For the head of a report, by source. */
  readonly services: Readonly<Record<string, ReportedService>>;
}

export interface AdminThreadData extends Reported {
  /** The state directory. */
  readonly state: string;
  readonly version: string;
  /** Written by the main thread; `pulse` has the indexes. */
  readonly pulse: Int32Array;
}

/** Indexes of `AdminThreadData.pulse`: a counter that advances while the main thread responds, and 1 once the state is open. */
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

export type TokenName = 'token' | 'readToken';

export type Question = { readonly what: 'snapshot' | 'metrics' | TokenName } | { readonly what: 'operate'; readonly request: unknown };

export type ToThread =
  | { readonly kind: 'listen'; readonly listen: Listen }
  | { readonly kind: 'follow'; readonly reported: Reported }
  | { readonly kind: 'answer'; readonly id: number; readonly value: unknown }
  | { readonly kind: 'failed'; readonly id: number; readonly thrown: CarriedError }
  | { readonly kind: 'close' };

export type FromThread =
  | { readonly kind: 'question'; readonly id: number; readonly question: Question }
  | { readonly kind: 'listens'; readonly addresses: readonly string[] }
  | { readonly kind: 'refused'; readonly thrown: CarriedError }
  | {
      readonly kind: 'log';
      readonly event: LogEventCode;
      readonly fields: object;
      readonly error: CarriedError | undefined;
    };
