/** The ECS document of an event, read from the bytes of its message. */
import { ecs } from '../../../src/encode/ecs.ts';
import type { EcsEvent } from '../../../src/record/event.ts';

const encode = ecs.encoder({ includeOriginal: true, cef: { ipv6: 'c6a2', geo: 'cfp' } });

export function documentOf(event: EcsEvent): EcsDocument {
  return JSON.parse(encode(event).toString()) as EcsDocument;
}

/** A document as parsed from the message. The fields are in this order. */
export interface EcsDocument {
  readonly '@timestamp': string;
  readonly ecs: { readonly version: string };
  readonly data_stream: { readonly type: 'logs'; readonly dataset: string; readonly namespace: string };
  readonly event: {
    /** `state`: a ledger entry. */
    readonly kind: 'event' | 'pipeline_error' | 'state';
    readonly category?: readonly string[];
    readonly type?: readonly string[];
    readonly action: string;
    readonly outcome: 'success' | 'failure' | 'unknown';
    readonly reason?: string;
    readonly code: string;
    readonly id?: string;
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
  readonly user?: EcsUser;
  readonly file?: EcsFile;
  readonly source?: EcsSource;
  readonly host?: EcsHost;
  readonly network: { readonly name?: string; readonly type: 'ipv4' | 'ipv6' | undefined } | undefined;
  readonly related:
    | {
        readonly user?: readonly string[];
        readonly ip?: readonly string[];
        readonly hosts?: readonly string[];
      }
    | undefined;
  readonly organization: { readonly id: string } | undefined;
  /** One shared object for all events of a source. */
  readonly observer: EcsObserver;
  readonly dpas: EcsDpas;
}

interface EcsUser {
  readonly id?: string;
  readonly email?: string;
  readonly full_name?: string;
  readonly name?: string;
  readonly domain?: string;
}

interface EcsFile {
  readonly name?: string;
  readonly extension?: string;
  readonly uid?: string;
  readonly owner?: string;
}

interface EcsSource {
  readonly address?: string;
  readonly ip?: string;
  readonly mac?: string;
  readonly geo: { readonly location: { readonly lat: number; readonly lon: number } } | undefined;
  readonly as: { readonly organization: { readonly name: string } } | undefined;
}

interface EcsHost {
  readonly name?: string;
  readonly hostname?: string;
  readonly domain?: string;
  readonly id?: string;
  readonly mac?: readonly string[];
  readonly type?: string;
}

interface EcsObserver {
  readonly vendor: string;
  readonly product: string;
  readonly version: string;
  readonly hostname?: string;
}

/** Fields of the record that ECS does not define. */
interface EcsDpas {
  readonly uid: string;
  readonly action_attempted?: string;
  readonly result?: string;
  readonly result_reason?: string;
  readonly log_time?: string;
  readonly payload: { readonly id?: string; readonly name: string | undefined } | undefined;
  readonly user: { readonly id?: string; readonly last_name_first_name: string | undefined } | undefined;
  readonly owner:
    | {
        readonly id?: string;
        readonly email?: string;
        readonly full_name?: string;
        readonly last_name_first_name?: string;
      }
    | undefined;
  readonly network:
    | {
        readonly id?: string;
        readonly name?: string;
        readonly address?: string;
        readonly lat_long?: string;
        readonly device_type?: string;
        readonly mac?: string;
        readonly uuid?: string;
        readonly domain_name?: string;
        readonly service_provider?: string;
      }
    | undefined;
  readonly ledger?: EcsLedger;
}

/** The statement of a ledger entry: docs/formats.md, "Ledger events". */
interface EcsLedger {
  /** Undefined for an operation on a sink or the daemon. */
  readonly source?: string;
  readonly state?: string;
  readonly revision?: number;
  readonly total?: number;
  readonly records?: number;
  readonly late?: number;
  readonly recounts?: number;
  readonly digest?: string;
  readonly operation?: string;
  /** Not authenticated. */
  readonly actor?: string;
  readonly checkpoint?: string;
}
