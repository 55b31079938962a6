/** Serves the files of the status page. The browser gets its script, style and icon from here, and nothing from elsewhere. */
import { readFileSync } from 'node:fs';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';

const types = {
  'index.html': 'text/html; charset=utf-8',
  'page.css': 'text/css; charset=utf-8',
  'page.js': 'text/javascript; charset=utf-8',
  'elements.js': 'text/javascript; charset=utf-8',
  'picture.js': 'text/javascript; charset=utf-8',
  'tables.js': 'text/javascript; charset=utf-8',
  'text.js': 'text/javascript; charset=utf-8',
  'icon.svg': 'image/svg+xml',
};

const files = Object.entries(types).map(([name, type]) => ({
  name,
  type,
  bytes: readFileSync(new URL(`static/${name}`, import.meta.url)),
}));

/** Neither inline script nor inline style: what an attacker brings into a message of a sink cannot run. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ');

/** @param admit  answers a request without the token itself */
export function servePage(app: FastifyInstance, admit: (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>): void {
  for (const { name, type, bytes } of files)
    app.get(name === 'index.html' ? '/' : `/page/${name}`, { onRequest: admit }, async (_, reply) =>
      reply.header('content-security-policy', policy).type(type).send(bytes),
    );
}
