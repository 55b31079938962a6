/** `waybill explain`: the meaning of a code, without a network. */
import { readFileSync } from 'node:fs';
import { packageFile } from '../../files.ts';
import { codesIn, explanation } from '../../report/explain.ts';
import { defineCommand } from '../command.ts';

const operations = readFileSync(packageFile('docs/operations.md'), 'utf8');

export const command = defineCommand({
  name: 'explain',
  summary: 'explains an error code, a log event or an incident: what it means, what is lost, what to do',
  description:
    'Prints the explanation of a code from the documents of this release. CODE is an error code, a log event or a heading of docs/operations.md.',
  options: {},
  positionals: { name: 'CODE', help: 'such as source_forbidden, window.shrunk or "disk full"', choices: codesIn(operations), min: 1 },
  examples: ['waybill explain sink_blocked', 'waybill explain source.suspended'],
  run: (_values, io, words) => {
    io.stdout.write(explanation(words.join(' '), operations));
    return 0;
  },
});
