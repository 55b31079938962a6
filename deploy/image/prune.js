#!/usr/bin/env node
/** Deletes the files below a directory `node_modules` that Node never loads on this platform: `prune.js node_modules`. Licences stay. */
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const [root] = process.argv.slice(2);
if (root === undefined) throw new Error('usage: prune.js NODE_MODULES');

/** C sources of the SQLite binding. */
const directories = ['better-sqlite3/deps', 'better-sqlite3/src'];
/** Types, source maps and documents. */
const unloaded = /\.(d\.[cm]?ts|[cm]?ts|map|flow|markdown|md|yml|tsbuildinfo)$/;
const licence = /licen[cs]e|notice|copying/i;
const binding = `${process.platform}-${process.arch}.node`;

for (const directory of directories) rmSync(join(root, directory), { recursive: true, force: true });
for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
  const foreign = entry.parentPath.endsWith('better-sqlite3/prebuilds') && entry.name !== binding;
  if (entry.isFile() && (foreign || (unloaded.test(entry.name) && !licence.test(entry.name)))) rmSync(join(entry.parentPath, entry.name));
}
