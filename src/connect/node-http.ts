/**
 * The HTTP module of Node. An `import` of `node:http` reads each of its exports, which loads a
 * WebSocket client that Waybill does not use: 40 ms of CPU and 14 MB in each thread.
 */
export const { createServer, request } = process.getBuiltinModule('node:http');
