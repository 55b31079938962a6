/** The tables of README and docs/guarantees.md, and what `waybill check` prints of each sink, say the same. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { sinks } from '../../../src/sink/index.ts';

const read = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');
const rowsOf = (document: string): string[] =>
  document.slice(document.indexOf('| sink | guarantee |')).split('\n\n', 1)[0]?.split('\n').slice(2) ?? [];
const plain = (text: string): string => text.replaceAll(/`|\[|\]\([^)]*\)/g, '').trim();
const documented = rowsOf(read('docs/guarantees.md'));

test('README has the table of docs/guarantees.md', () => {
  expect(documented.length).toBeGreaterThan(10);
  expect(rowsOf(read('README.md')).map(plain)).toEqual(documented.map(plain));
});

/** Of each row: the sink, its settings, and the parts of the answer that the row has word for word. */
const variants: [row: string, type: string, settings: object, same: ('duplicates' | 'losses')[]][] = [
  ['elasticsearch, data stream', 'elasticsearch', {}, ['losses']],
  ['elasticsearch, time-named index', 'elasticsearch', { index: 'dpas-{yyyy}' }, ['duplicates', 'losses']],
  ['archive', 'archive', {}, ['duplicates', 'losses']],
  ['file', 'file', {}, ['duplicates', 'losses']],
  ['kafka', 'kafka', { exactlyOnce: true }, []],
  ['kafka, exactlyOnce: false', 'kafka', { exactlyOnce: false }, ['duplicates']],
  ['syslog, relp://, relp+tls://', 'syslog', { address: 'relp://h:1' }, ['duplicates', 'losses']],
  ['syslog, tcp://, tls://, confirm: close', 'syslog', { address: 'tcp://h:1', confirm: 'close' }, ['duplicates']],
  ['syslog, tcp://, tls://, confirm: none', 'syslog', { address: 'tls://h:1', confirm: 'none' }, ['duplicates', 'losses']],
  ['syslog, udp://', 'syslog', { address: 'udp://h:1' }, ['duplicates']],
  ['splunk-hec, indexerAcknowledgement: true', 'splunk-hec', { indexerAcknowledgement: true }, ['duplicates', 'losses']],
  ['splunk-hec, indexerAcknowledgement: false', 'splunk-hec', { indexerAcknowledgement: false }, ['duplicates']],
  ['stdout', 'stdout', {}, ['duplicates', 'losses']],
];

test('each row is that of one sink with its settings', () => {
  expect(documented.map((row) => plain(row.split(' | ')[0]?.slice(1) ?? '')).toSorted()).toEqual(variants.map(([row]) => row).toSorted());
});

test.each(variants)('%s: the guarantee that check prints is that of its row', (name, type, settings, same) => {
  const definition = sinks.find((each) => each.type === type);
  const stated = (definition?.guarantee as ((settings: object) => Record<string, string>) | undefined)?.(settings) ?? {};
  const row = documented.find((each) => plain(each.split(' | ')[0]?.slice(1) ?? '') === name) ?? '';
  const [, delivery = '', duplicates, losses] = row.slice(2, -2).split(' | ').map(plain);
  expect(delivery.startsWith(stated['delivery'] ?? 'none'), `${delivery} is "${stated['delivery'] ?? ''}"`).toBe(true);
  const [shown, promised] = [{ duplicates, losses }, stated];
  for (const part of same) expect(promised[part]).toBe(shown[part]);
});
