/**
 * The HTTP module of Node. An `import` of `node:http` reads each of its exports, which loads a
 * WebSocket client that the service does not use: 40 ms of CPU at each start.
 */
export const { createServer, STATUS_CODES } = process.getBuiltinModule('node:http');
