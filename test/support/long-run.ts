/** `npm run test:long` runs every scenario at full size; `npm test` runs a part of them. */
export const isLong = process.env['WAYBILL_E2E_LONG'] !== undefined;
