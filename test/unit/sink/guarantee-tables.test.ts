/** The tables of README and docs/guarantees.md are generated from the definitions of the sinks, which `waybill check` prints too. */
import { expect, test } from 'vitest';
import { guaranteeOf } from '../../../src/sink/define.ts';
import { sinks } from '../../../src/sink/index.ts';
import { expectPart } from '../../support/generated-part.ts';

test.each(['README.md', 'docs/guarantees.md'])('%s has a row for each guarantee of each sink', async (document) => {
  const rows = sinks.flatMap(({ type, guarantees }) =>
    guarantees.map(({ settings, delivery, duplicates, losses }) => {
      const sink = settings === undefined ? `\`${type}\`` : `\`${type}\`, ${settings}`;
      return `| ${[sink, delivery, duplicates, losses].join(' | ')} |\n`;
    }),
  );
  // `npx vitest run test/unit/sink/guarantee-tables.test.ts --update` writes both.
  await expectPart(
    document,
    'guarantees',
    ['| sink | guarantee | duplicates at most | losses at most |\n|---|---|---|---|\n', ...rows].join(''),
  );
});

test.each([
  ['elasticsearch', { index: undefined }, 'data stream'],
  ['elasticsearch', { index: 'dpas-{yyyy}' }, 'time-named `index`'],
  ['kafka', { exactlyOnce: true }, '`exactlyOnce: true`'],
  ['kafka', { exactlyOnce: false }, '`exactlyOnce: false`'],
  ['syslog', { address: 'relp+tls://h:1', confirm: 'close' }, '`relp://`, `relp+tls://`'],
  ['syslog', { address: 'tcp://h:1', confirm: 'close' }, '`tcp://`, `tls://`, `confirm: close`'],
  ['syslog', { address: 'tls://h:1', confirm: 'none' }, '`tcp://`, `tls://`, `confirm: none`'],
  ['syslog', { address: 'udp://h:1', confirm: 'close' }, '`udp://`'],
  ['splunk-hec', { indexerAcknowledgement: true }, '`indexerAcknowledgement: true`'],
  ['splunk-hec', { indexerAcknowledgement: false }, '`indexerAcknowledgement: false`'],
  ['stdout', {}, undefined],
])('a sink %s with %o has the row of its settings', (name, settings, row) => {
  const definition = sinks.find(({ type }) => type === name);
  expect(definition && guaranteeOf(definition, settings).settings).toBe(row);
});
