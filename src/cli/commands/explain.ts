/** `waybill explain`: the meaning of a code, without a network. */
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { packageFile } from '../../disk/files.ts';
import { codesIn, explanation, explanationList, type AlertFile } from '../../report/explain.ts';
import { defineCommand } from '../command.ts';

const read = (path: string): string => readFileSync(packageFile(path), 'utf8');
const documents = { operations: read('docs/operations.md'), alerts: parse(read('content/prometheus/alerts.yaml')) as AlertFile };

export const command = defineCommand({
  name: 'explain',
  summary: 'explains an error code, a state, a reason, a log event, an alert or an incident: what it means, what is lost, what to do',
  description:
    'Prints the explanation of a code from the documents of this release. CODE is an error code, a state, a reason, a log event, an alert, an HTTP status or a heading of docs/operations.md. Without CODE it lists them.',
  options: {},
  positionals: { name: 'CODE', help: 'such as source_forbidden, window.shrunk, 403 or "disk full"', choices: codesIn(documents) },
  examples: ['waybill explain sink_blocked', 'waybill explain WaybillSinkLate'],
  run: (_values, io, words) => {
    io.stdout.write(words.length === 0 ? explanationList(documents) : explanation(words.join(' '), documents));
    return 0;
  },
});
