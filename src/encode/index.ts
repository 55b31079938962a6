/** The list of formats: one file each. A new one is added here, and to the sinks that take it. */
import type { EcsEvent, Encode } from '../model/event.ts';
import { cef, type CefSettings } from './cef.ts';
import { ecs } from './ecs.ts';
import { leef } from './leef.ts';
import { ocsf } from './ocsf.ts';
import { raw } from './raw.ts';
import { shorten } from './shorten.ts';

export interface EncodeSettings {
  /** Whether JSON formats carry the record's text. */
  readonly includeOriginal: boolean;
  readonly cef: CefSettings;
}

const encoders = {
  ecs: { encode: (settings: EncodeSettings) => ecs(settings), kind: 'document' },
  cef: { encode: (settings: EncodeSettings) => cef(settings.cef), kind: 'line' },
  leef: { encode: () => leef(), kind: 'line' },
  ocsf: { encode: (settings: EncodeSettings) => ocsf(settings), kind: 'document' },
  raw: { encode: () => raw(), kind: 'record' },
} as const satisfies Record<string, { encode: (settings: EncodeSettings) => Encode; kind: Parameters<typeof shorten>[0] }>;

export type EncodedFormat = keyof typeof encoders;

/** Every format that can be written, in the order in which they are named to people. */
export const encodedFormats = Object.keys(encoders) as readonly EncodedFormat[];

export function isEncodedFormat(name: string): name is EncodedFormat {
  return Object.hasOwn(encoders, name);
}

/** Binds the settings of one sink, so that what is constant is rendered once. */
export function encoder(format: EncodedFormat, settings: EncodeSettings): Encode {
  return encoders[format].encode(settings);
}

/** Writes an event in at most so many bytes; undefined when it cannot be made so short. */
export function shortener(format: EncodedFormat, settings: EncodeSettings, most: number): (event: EcsEvent) => string | undefined {
  const { encode, kind } = encoders[format];
  const bound = encode(settings);
  return (event) => shorten(kind, event, bound, most);
}
