/** The configuration of the daemon that is measured: sources on the page server, without a limit of requests that would delay them. */

/** @param start  ms since 1970, where the ledger begins. @returns JSON, which is YAML */
export function configuration(
  port: number,
  start: number,
  sinks: readonly object[],
  { deliveryThread = 'off', sources = 1 }: { readonly deliveryThread?: 'auto' | 'off'; readonly sources?: number } = {},
): string {
  const address = `http://127.0.0.1:${port}`;
  return JSON.stringify({
    dataDir: './state',
    sources: Array.from({ length: sources }, (_, i) => ({
      id: i === 0 ? 'bench' : `bench-${i + 1}`,
      baseUrl: `${address}/v2/api`,
      auth: { authUrl: address, tenantId: 'bench', clientId: 'bench', clientSecret: 'bench', scopeAddress: 'bench' },
      start: new Date(start).toISOString(),
      // Short only so that the service's clock is known within a second; windows of history do not depend on it.
      closeDelay: '3s',
      requests: { perSecond: 1000 },
    })),
    sinks,
    deliveryThread,
    admin: { listen: '127.0.0.1:0' },
    log: { level: 'error' },
  });
}
