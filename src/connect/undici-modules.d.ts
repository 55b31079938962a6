/** The modules of undici that Waybill imports; the package has types for its index only. */
declare module 'undici/lib/dispatcher/agent.js' {
  export { Agent as default } from 'undici';
}
declare module 'undici/lib/dispatcher/pool.js' {
  export { Pool as default } from 'undici';
}
declare module 'undici/lib/api/api-request.js' {
  import type { Dispatcher } from 'undici';
  export default function request(this: Dispatcher, options: Dispatcher.RequestOptions): Promise<Dispatcher.ResponseData>;
}
declare module 'undici/lib/web/fetch/headers.js' {
  export const Headers: typeof globalThis.Headers;
}
declare module 'undici/lib/web/fetch/response.js' {
  export const Response: typeof globalThis.Response;
}
