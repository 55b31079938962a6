/**
 * The configuration of the measured daemon: sources on the page server, with a request limit so
 * high that it causes no delay.
 */

/** The tenant of each source. It is the `organization.id` of its records. */
export function tenants(sources: number): readonly string[] {
  return Array.from({ length: sources }, (_, i) => (i === 0 ? 'bench' : `bench-${i + 1}`));
}

/** @param start  start of the ledger, ms since 1970. @returns JSON, which is YAML */
export function configuration(
  port: number,
  start: number,
  sinks: readonly object[],
  { sources = 1, closeDelay = '3s' }: { readonly sources?: number; readonly closeDelay?: string } = {},
): string {
  const address = `http://127.0.0.1:${port}`;
  return JSON.stringify({
    dataDir: './state',
    sources: tenants(sources).map((tenantId) => ({
      id: tenantId,
      baseUrl: `${address}/v2/api`,
      auth: { authUrl: address, tenantId, clientId: 'bench', clientSecret: 'bench', scopeAddress: 'bench' },
      start: new Date(start).toISOString(),
      // Short, so that the service's clock is known within a second; windows of history do not
      // depend on it.
      closeDelay,
      requests: { perSecond: 1000 },
    })),
    sinks,
    admin: { listen: '127.0.0.1:0' },
    log: { level: 'error' },
  });
}
