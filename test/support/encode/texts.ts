/** Messages as text, for tests that read them. */
import * as bytes from '../../../src/encode/index.ts';
import type { EncodeSettings } from '../../../src/encode/define.ts';
import type { EcsEvent } from '../../../src/record/event.ts';

export function encoder(format: bytes.Format, settings: EncodeSettings): (event: EcsEvent) => string {
  const encode = bytes.encoder(format, settings);
  return (event) => encode(event).toString();
}

export function shortener(format: bytes.Format, settings: EncodeSettings, maxBytes: number): (event: EcsEvent) => string | undefined {
  const shorten = bytes.shortener(format, settings, maxBytes);
  return (event) => shorten(event)?.toString();
}
