/** The HTTP module of Node without the WebSocket client that an `import` loads with it: 40 ms of CPU and 14 MB in each thread. */
export const { createServer, request } = process.getBuiltinModule('node:http');
