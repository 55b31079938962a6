/** The list of formats: one file each. A new one is added here, and to the sinks that take it. */
import type { Encode } from '../model.ts';
import { cef, type CefSettings } from './cef.ts';
import { ecs } from './ecs.ts';
import { raw } from './raw.ts';

export interface EncodeSettings {
  /** Whether JSON formats carry the record's text. */
  readonly original: boolean;
  readonly cef: CefSettings;
}

const encoders = {
  ecs: (settings: EncodeSettings) => ecs(settings),
  cef: (settings: EncodeSettings) => cef(settings.cef),
  raw: () => raw(),
} satisfies Record<string, (settings: EncodeSettings) => Encode>;

export type EncodedFormat = keyof typeof encoders;

/** Every format that can be written, in the order in which they are named to people. */
export const encodedFormats = Object.keys(encoders) as readonly EncodedFormat[];

export function isEncodedFormat(name: string): name is EncodedFormat {
  return Object.hasOwn(encoders, name);
}

/** Binds the settings of one sink, so that what is constant is rendered once. */
export function encoder(format: EncodedFormat, settings: EncodeSettings): Encode {
  return encoders[format](settings);
}
