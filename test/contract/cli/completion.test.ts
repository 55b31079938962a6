import { execFileSync } from 'node:child_process';
import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { commands } from '../../../src/cli/catalog.ts';
import { loadCommand } from '../../../src/cli/registry.ts';
import { commandIo } from '../../support/command-io.ts';

async function script(shell: string): Promise<string> {
  const stdout = new PassThrough({ highWaterMark: 2 ** 20 });
  expect(await (await loadCommand('completion')).run([shell], commandIo({ stdout }))).toBe(0);
  return String(stdout.read());
}

/** The completions of bash for the last, unfinished word. */
async function offered(...words: string[]): Promise<string[]> {
  const line = ['waybill', ...words].map((word) => `'${word}'`).join(' ');
  const run = `COMP_WORDS=(${line}); COMP_CWORD=${words.length}; _waybill; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const text = execFileSync('bash', ['-c', `${await script('bash')}\n${run}`], { encoding: 'utf8' });
  return text.split('\n').filter((word) => word !== '');
}

test('bash completes commands, subcommands, options and values', async () => {
  expect(await offered('')).toEqual([...commands]);
  expect(await offered('s')).toEqual(['status', 'sources', 'sinks', 'setup', 'schema']);
  expect(await offered('sinks', 're')).toEqual(['retry', 'retire', 'reconcile']);
  expect(await offered('sinks', 'reconcile', '--f')).toEqual(['--from']);
  expect(await offered('sinks', 'retry', '--f')).toEqual([]);
  expect(await offered('ledger', '--format', '')).toEqual(['text', 'csv', 'html', 'json']);
  expect(await offered('encode', '--format', 'c')).toEqual(['cef']);
  expect(await offered('status', '--config', '/etc/pass')).toContain('/etc/passwd');
  expect(await offered('replay', '--sink', '')).toEqual([]);
  expect(await offered('init', 's')).toEqual(['syslog', 'splunk']);
  expect(await offered('explain', 'sink_bl')).toEqual(['sink_blocked']);
  expect(await offered('explain', 'window.shr')).toEqual(['window.shrunk']);
});

test.each(['zsh', 'fish'])('%s: the script names every command, subcommand and option', async (shell) => {
  const text = await script(shell);
  for (const { name, forms } of await Promise.all(commands.map(loadCommand))) {
    expect(text).toMatch(new RegExp(`\\b${name}\\b`));
    for (const { subcommand, options } of forms)
      for (const word of [subcommand ?? name, ...Object.keys(options)]) expect(text, name).toMatch(new RegExp(`[ '-]${word}\\b`));
  }
});

test('an unknown shell is refused', async () => {
  await expect(script('fihs')).rejects.toMatchObject({
    code: 'usage',
    message: 'no completion script for the shell "fihs": the nearest is "fish"',
  });
});
