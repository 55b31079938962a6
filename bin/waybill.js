#!/usr/bin/env node
// Plain JavaScript without options in the first line: an old Node must parse this file and report its version in one line.
const major = Number(process.versions.node.split('.')[0]);
if (major < 24) {
  process.stderr.write(`waybill needs Node 24 or newer; this is ${process.versions.node} (${process.execPath})\n`);
  process.exit(2);
}
// A debugger that another process opens with SIGUSR1 could read every secret; the limits bound the memory of the daemon. The heap may double
// before the next full collection: V8 would let a heap of 30 MB grow by a third, and mark it several times a second under load. At rest the
// daemon collects by itself (collect-when-idle.ts).
// A young generation of 16 MiB holds a page and its batch until they are garbage; with 2 MiB most of them were promoted, and marked at a high cost.
// The HTTP parser is WebAssembly: within the first second V8 would optimize it. That takes memory that malloc does not return, and the parser
// becomes no faster.
const flags = [
  '--disable-sigusr1',
  '--max-semi-space-size=16',
  '--heap-growing-percent=100',
  '--max-old-space-size=1024',
  '--v8-pool-size=1',
  '--expose-gc',
  '--wasm-tiering-budget=1000000000',
];
// glibc (mallopt(3)): large buffers return to the system when they are freed. By default its threshold grows up to 32 MiB, and the heap with it.
const allocator = { MALLOC_ARENA_MAX: '2', MALLOC_MMAP_THRESHOLD_: '262144', MALLOC_TRIM_THRESHOLD_: '262144' };
// A look-up of a name holds a thread of libuv's pool while a name server is silent, and libuv lets look-ups use half of the pool (connect/names.ts).
const pool = { UV_THREADPOOL_SIZE: '128' };
if (!process.execArgv.includes(flags[0]) && process.platform !== 'win32') {
  // Replaces the process image: signals and exit code need no parent process.
  process.execve(process.execPath, [process.execPath, ...flags, ...process.execArgv, ...process.argv.slice(1)], {
    ...allocator,
    ...pool,
    ...process.env,
  });
}
if (process.argv[2] === 'run') {
  // While the modules load, SIGHUP must not end the daemon. The configuration is read afterwards.
  process.on('SIGHUP', () => undefined);
  // Before this line it would: Node sets every signal to its default action. systemd sends a reload only after this message (sd_notify(3)).
  if (process.env['NOTIFY_SOCKET']) {
    const { spawnSync } = await import('node:child_process');
    const { error, stderr } = spawnSync('systemd-notify', ['--ready'], { encoding: 'utf8' });
    if (error || stderr) process.stderr.write(`cannot tell systemd that the daemon has started: ${error?.message ?? stderr.trim()}\n`);
  }
}
const { existsSync } = await import('node:fs');
// In a checkout the sources run as they are; the package holds the build.
const source = new URL('../src/main.ts', import.meta.url);
const built = new URL('../dist/main.js', import.meta.url);
const { main } = await import(existsSync(source) ? source.href : built.href);
await main(process.argv.slice(2));
