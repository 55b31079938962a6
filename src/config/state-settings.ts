/** The settings that a report on a state needs, stored in it: `--data-dir DIR` gives the same report without a configuration. */
import { z } from 'zod';
import type { FleetSettings } from '../fleet/settings.ts';
import type { PemFiles } from '../settings/pem.ts';
import type { Start } from '../source/settings.ts';

export interface StateSettings {
  readonly dataDir: string;
  /** The state is in the database of a fleet. `tls` is for its certificate. */
  readonly fleet?: FleetSettings | undefined;
  readonly tls?: { readonly ca?: PemFiles | undefined };
  /** Bytes. */
  readonly journal: { readonly maxSize: number };
  /** `closeDelay` and `recountAfter` in ms. Reports name the service by its address and tenant. */
  readonly sources: readonly {
    readonly id: string;
    readonly start: Start;
    readonly closeDelay: number;
    readonly recountAfter: readonly number[];
    readonly baseUrl?: string | undefined;
    readonly auth?: { readonly tenantId?: string | undefined } | undefined;
  }[];
  /** `sources`: undefined for all. `filter`: set if the sink has a filter. */
  readonly sinks: readonly {
    readonly id: string;
    readonly sources?: readonly string[] | undefined;
    readonly filter?: unknown;
  }[];
}

const start = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('instant'), at: z.number() }),
  z.object({ kind: z.enum(['now', 'earliest']) }),
  z.object({ kind: z.literal('ago'), ms: z.number() }),
]);
const named = { baseUrl: z.string().optional(), auth: z.object({ tenantId: z.string().optional() }).optional() };
const stored = z.object({
  journal: z.object({ maxSize: z.number() }),
  sources: z.array(z.object({ id: z.string(), start, closeDelay: z.number(), recountAfter: z.array(z.number()), ...named })),
  sinks: z.array(z.object({ id: z.string(), sources: z.array(z.string()).optional(), filtered: z.boolean() })),
});

/** JSON for the state, without secrets. */
export function settingsText({ journal, sources, sinks }: StateSettings): string {
  return JSON.stringify({
    journal: { maxSize: journal.maxSize },
    sources: sources.map(({ id, start, closeDelay, recountAfter, baseUrl, auth }) => ({
      id,
      start,
      closeDelay,
      recountAfter,
      baseUrl,
      auth: { tenantId: auth?.tenantId },
    })),
    sinks: sinks.map(({ id, sources: only, filter }) => ({ id, ...(only && { sources: only }), filtered: filter !== undefined })),
  });
}

/** @returns undefined for a text in an unknown format, which another release may have written */
export function settingsFrom(text: string, directory: string): StateSettings | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { success, data } = stored.safeParse(value);
  if (!success) return undefined;
  const sinks = data.sinks.map(({ id, sources, filtered }) => ({ id, sources, ...(filtered && { filter: true }) }));
  return { dataDir: directory, journal: data.journal, sources: data.sources, sinks };
}
