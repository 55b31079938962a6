/** Settings of a sink that control the encoding of its messages. */
import { z } from 'zod';

/** `sinks[].cef` */
export const cefSettings = z
  .strictObject({
    ipv6: z
      .enum(['c6a2', 'src'])
      .default('c6a2')
      .describe(
        'Key of an IPv6 source address: `c6a2`, as the CEF standard has it, or `src`, where Microsoft Sentinel, Splunk and Elastic look',
      ),
    geo: z
      .enum(['cfp', 'slat'])
      .default('cfp')
      .describe(
        'Keys of the position: `cfp` for cfp1 and cfp2 with labels, or `slat` for slat and slong, which the standard leaves to consumers',
      ),
  })
  .prefault({})
  .describe('How CEF lines are written; has no effect on other formats');

export type CefSettings = z.output<typeof cefSettings>;

/** `sinks[].includeOriginal` */
export function originalSettings(usual: boolean) {
  return z.boolean().default(usual).describe("Whether ecs and ocsf carry the record's text; its SHA-256 is always there");
}
