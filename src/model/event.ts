/** A record after normalization: the ECS document that every format is encoded from. */
import type { AuditRecord } from './record.ts';
import type { Micros } from './time.ts';

/**
 * One ECS 9.4.0 document (docs/formats.md), with what an envelope needs without parsing the
 * document.
 */
export interface EcsEvent {
  readonly document: EcsDocument;
  /** A constant short text without user or file: `Protected file open denied`. */
  readonly name: string;
  /** `logTimestamp` in µs, or the time of receipt when it is unreadable. */
  readonly time: Micros;
  /** 0-10. */
  readonly severity: number;
  /** actionAttempted as received; `Unknown` when absent. */
  readonly action: string;
  /** payloadId after the privacy settings; undefined when absent or masked. */
  readonly key: string | undefined;
  /** Tags for what is unexpected in the record (`missing_field`, …), each once; usually empty. */
  readonly unexpected: readonly string[];
}

/**
 * The document that the formats write. An absent field is undefined, so that `JSON.stringify` omits
 * it; never null, "" or an empty list or object. The keys are written in the order of this type.
 */
export interface EcsDocument {
  readonly '@timestamp': string;
  readonly ecs: { readonly version: string };
  readonly data_stream: { readonly type: 'logs'; readonly dataset: string; readonly namespace: string };
  readonly event: {
    /** `state`: a ledger entry. */
    readonly kind: 'event' | 'pipeline_error' | 'state';
    readonly category: readonly string[] | undefined;
    readonly type: readonly string[] | undefined;
    readonly action: string;
    readonly outcome: 'success' | 'failure' | 'unknown';
    readonly reason: string | undefined;
    readonly code: string;
    readonly id: string | undefined;
    readonly provider: string;
    readonly module: string;
    readonly dataset: string;
    readonly severity: number;
    readonly timezone: string;
    readonly created: string;
    /** The period of a ledger entry. */
    readonly start?: string;
    readonly end?: string;
    readonly original: string;
    readonly hash: string;
  };
  readonly message: string;
  readonly tags: readonly string[];
  readonly user: EcsUser | undefined;
  readonly file: EcsFile | undefined;
  readonly source: EcsSource | undefined;
  readonly host: EcsHost | undefined;
  readonly network: { readonly name: string | undefined; readonly type: 'ipv4' | 'ipv6' | undefined } | undefined;
  readonly related:
    | {
        readonly user: readonly string[] | undefined;
        readonly ip: readonly string[] | undefined;
        readonly hosts: readonly string[] | undefined;
      }
    | undefined;
  readonly organization: { readonly id: string } | undefined;
  /** One shared object for all events of a source. */
  readonly observer: EcsObserver;
  readonly dpas: EcsDpas;
}

export interface EcsUser {
  readonly id: string | undefined;
  readonly email: string | undefined;
  readonly full_name: string | undefined;
  readonly name: string | undefined;
  readonly domain: string | undefined;
}

export interface EcsFile {
  readonly name: string | undefined;
  readonly extension: string | undefined;
  readonly uid: string | undefined;
  readonly owner: string | undefined;
}

export interface EcsSource {
  readonly address: string | undefined;
  readonly ip: string | undefined;
  readonly mac: string | undefined;
  readonly geo: { readonly location: { readonly lat: number; readonly lon: number } } | undefined;
  readonly as: { readonly organization: { readonly name: string } } | undefined;
}

export interface EcsHost {
  readonly name: string | undefined;
  readonly hostname: string | undefined;
  readonly domain: string | undefined;
  readonly id: string | undefined;
  readonly mac: readonly string[] | undefined;
  readonly type: string | undefined;
}

export interface EcsObserver {
  readonly vendor: string;
  readonly product: string;
  readonly version: string;
  readonly hostname: string | undefined;
}

/** Fields of the record that ECS does not define. */
export interface EcsDpas {
  readonly uid: string;
  readonly action_attempted: string | undefined;
  readonly result: string | undefined;
  readonly result_reason: string | undefined;
  readonly log_time: string | undefined;
  readonly payload: { readonly id: string | undefined; readonly name: string | undefined } | undefined;
  readonly user: { readonly id: string | undefined; readonly last_name_first_name: string | undefined } | undefined;
  readonly owner:
    | {
        readonly id: string | undefined;
        readonly email: string | undefined;
        readonly full_name: string | undefined;
        readonly last_name_first_name: string | undefined;
      }
    | undefined;
  readonly network:
    | {
        readonly id: string | undefined;
        readonly name: string | undefined;
        readonly address: string | undefined;
        readonly lat_long: string | undefined;
        readonly device_type: string | undefined;
        readonly mac: string | undefined;
        readonly uuid: string | undefined;
        readonly domain_name: string | undefined;
        readonly service_provider: string | undefined;
      }
    | undefined;
  readonly ledger?: EcsLedger;
}

/** The statement of a ledger entry: docs/formats.md, "Ledger events". */
export interface EcsLedger {
  /** Undefined for an operation on a sink or the daemon. */
  readonly source: string | undefined;
  readonly state: string | undefined;
  readonly revision: number | undefined;
  readonly total: number | undefined;
  readonly records: number | undefined;
  readonly late: number | undefined;
  readonly recounts: number | undefined;
  readonly digest: string | undefined;
  readonly operation: string | undefined;
  /** Not authenticated. */
  readonly actor: string | undefined;
}

/** The dataset of the ledger entries of a sink whose records have this dataset: `dpas.audit` gives `dpas.ledger`. */
export function ledgerDataset(dataset: string): string {
  return `${dataset.replace(/\.audit$/, '')}.ledger`;
}

/** A ledger entry as an event, with its period in µs: [from, to), or one moment. */
export interface LedgerEvent extends EcsEvent {
  readonly from: Micros;
  readonly to: Micros;
}

/** Pure and total: an unexpected record yields a tag, never an exception. */
export type Normalize = (record: AuditRecord) => EcsEvent;

/** Pure and total. `text` is the ledger entry as the journal stores it. */
export type NormalizeLedger = (entry: Pick<AuditRecord, 'text' | 'uid' | 'received'>) => LedgerEvent;

/** Pure and total. Returns one well-formed line without a line break. */
export type Encode = (event: EcsEvent) => string;
