/** Parts of a format's definition: name, content type, encoder. The list in index.ts assembles them. */
import type { EcsEvent, Encode } from '../record/event.ts';
import { roomFor } from './reused-memory.ts';
import type { CefSettings } from './settings.ts';

/** Settings of a sink that encoders read. */
export interface EncodeSettings {
  /** ECS and OCSF carry the record's text; its hash is always included. */
  readonly includeOriginal: boolean;
  readonly cef: CefSettings;
}

/** `line`: delimited text. `document`: one JSON value, which a sink may embed in an envelope. */
export type Shape = 'line' | 'document';

/** What `shorten` may cut: fields of a text line, fields of a JSON document, or the record's own text. */
export type ShortenKind = 'line' | 'document' | 'record';

export interface FormatDefinition<Name extends string = string> {
  readonly name: Name;
  /** Media type of one message, for sinks that declare it. */
  readonly contentType: string;
  readonly shape: Shape;
  readonly shorten: ShortenKind;
  /** Called once per sink: the encoder renders constants once. */
  encoder(settings: EncodeSettings): Encode;
}

/** Keeps the literal type of the name for the union `Format`. */
export function defineFormat<const Name extends string>(name: Name, parts: Omit<FormatDefinition<Name>, 'name'>): FormatDefinition<Name> {
  return { name, ...parts };
}

export type Render = (event: EcsEvent) => string;

/** UTF-8 needs at most three bytes for a UTF-16 code unit. */
const maxBytesPerUnit = 3;

/** An encoder that writes each text into the same buffer, which grows when needed. */
export function textEncoder(render: Render): Encode {
  let bytes: Buffer = Buffer.alloc(0);
  return (event) => {
    const text = render(event);
    bytes = roomFor(text.length * maxBytesPerUnit, bytes);
    return bytes.subarray(0, bytes.write(text));
  };
}
