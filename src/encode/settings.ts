/** Settings of a sink that control the encoding of its messages. */
import { z } from 'zod';

/** `sinks[].cef` */
export const cefSettings = z
  .strictObject({
    ipv6: z
      .enum(['c6a2', 'src'])
      .default('c6a2')
      .describe('Key of an IPv6 source address: `c6a2` (CEF standard) or `src` (read by Microsoft Sentinel, Splunk and Elastic)'),
    geo: z
      .enum(['cfp', 'slat'])
      .default('cfp')
      .describe(
        'Keys of the position: `cfp` for cfp1 and cfp2 with labels, or `slat` for slat and slong, which the standard reserves for consumers',
      ),
  })
  .prefault({})
  .describe('Keys of CEF lines; no effect on other formats');

export type CefSettings = z.output<typeof cefSettings>;

/** `sinks[].includeOriginal` */
export function originalSettings(usual: boolean) {
  return z.boolean().default(usual).describe('Include the text of the record in ecs and ocsf; its SHA-256 is always included');
}
