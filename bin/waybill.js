#!/usr/bin/env -S node --disable-sigusr1 --max-semi-space-size=16 --max-old-space-size=1024 --v8-pool-size=1
// Plain JavaScript on purpose: a Node that is too old must read this file to the end and say so in one line.
const major = Number(process.versions.node.split('.')[0]);
if (major < 24) {
  process.stderr.write(`waybill needs Node 24 or newer; this is ${process.versions.node} (${process.execPath})\n`);
  process.exit(2);
}
const { existsSync } = await import('node:fs');
// In a checkout the sources run as they are; the package holds the build.
const source = new URL('../src/main.ts', import.meta.url);
const built = new URL('../dist/main.js', import.meta.url);
const { main } = await import(existsSync(source) ? source.href : built.href);
await main(process.argv.slice(2));
