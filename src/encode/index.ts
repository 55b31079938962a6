/** The list of formats. The type `Format`, the formats of each sink and `waybill encode` follow from it. */
import type { EcsEvent, Encode } from '../record/event.ts';
import { cef } from './cef.ts';
import type { EncodeSettings, FormatDefinition, Shape } from './define.ts';
import { ecs } from './ecs.ts';
import { leef } from './leef.ts';
import { ocsf } from './ocsf.ts';
import { raw } from './raw.ts';
import { shorten } from './shorten.ts';

const definitions = [ecs, cef, leef, ocsf, raw] as const;

export type Format = (typeof definitions)[number]['name'];

/** Formats that a sink accepts: all of one shape, all, or the named ones. */
export type AcceptedFormats = Shape | 'any' | readonly [Format, ...Format[]];

const byName = Object.fromEntries(definitions.map((each) => [each.name, each])) as Record<Format, FormatDefinition<Format>>;

/** In the order of the documentation. */
export const formats: readonly Format[] = definitions.map(({ name }) => name);

export function isFormat(name: string): name is Format {
  return Object.hasOwn(byName, name);
}

export function formatOf(name: Format): FormatDefinition<Format> {
  return byName[name];
}

/** The accepted formats, the default first. @throws RangeError when no format has the shape, or the default is not among them */
export function acceptedFormats(accepted: AcceptedFormats, preferred?: Format): readonly [Format, ...Format[]] {
  const names =
    typeof accepted === 'string'
      ? definitions.filter(({ shape }) => accepted === 'any' || shape === accepted).map(({ name }) => name)
      : accepted;
  const first = preferred ?? names[0];
  if (!names.includes(first)) throw new RangeError(`"${first}" is not one of the accepted formats`);
  return [first, ...names.filter((name) => name !== first)];
}

export function encoder(format: Format, settings: EncodeSettings): Encode {
  return formatOf(format).encoder(settings);
}

/** Encodes an event in at most `maxBytes`; undefined when that is impossible. */
export function shortener(format: Format, settings: EncodeSettings, maxBytes: number): (event: EcsEvent) => Buffer | undefined {
  const definition = formatOf(format);
  const encode = definition.encoder(settings);
  return (event) => shorten(definition.shorten, event, encode, maxBytes);
}
