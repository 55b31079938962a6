/** The service that a source polls. Under one id, path and tenant stay the same unless an operator moves the source; the host may change. */

/** `https://service.example/v2/api of tenant 00000000-…` */
export function destinationOf({ baseUrl, auth }: { readonly baseUrl: string; readonly auth: { readonly tenantId: string } }): string {
  const { origin, pathname } = new URL(baseUrl);
  return `${origin}${pathname.replace(/\/+$/, '')} of tenant ${auth.tenantId}`;
}
