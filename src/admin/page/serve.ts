/** Serves the files of the status page: the browser loads nothing from another host. */
import { readFileSync } from 'node:fs';
import { codeFile } from '../../disk/files.ts';
import { ok, type AdminResponse } from '../response.ts';

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

/** Forbids inline script and style: text that an attacker puts into a sink's message cannot run. */
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

/** Each file with its path and the response to a request for it. */
export function pageFiles(): readonly { readonly path: string; readonly response: AdminResponse }[] {
  return Object.entries(types).map(([name, type]) => ({
    path: name === 'index.html' ? '/' : `/page/${name}`,
    response: ok(type, readFileSync(codeFile(`admin/page/static/${name}`)), { 'content-security-policy': policy }),
  }));
}
