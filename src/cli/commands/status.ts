/** `waybill status`: from the running daemon, local or remote, else from the state. */
import { parseZone } from '../../settings/period.ts';
import { problems } from '../../report/advice.ts';
import { statusJson } from '../../report/status-json.ts';
import { adminOptions } from '../admin-client.ts';
import { defineCommand } from '../command.ts';
import { printJson, usesColor, widthOf, type Io } from '../io.ts';
import { notFound } from '../not-found.ts';
import { jsonOption, text, toggle, withDefault, type ValuesOf } from '../option.ts';
import { currentSnapshot } from '../snapshot.ts';
import { stateOptions } from '../state-access.ts';
import { statusText } from '../../report/status-text.ts';

const options = {
  source: text('PATTERN', "only these sources; * matches any text, as in 'acme-*'"),
  tz: withDefault(text('ZONE', 'time zone of the text; default UTC'), 'UTC'),
  'exit-code': toggle('exit with 3 when something needs attention: whenever the text ends with "To do"'),
  ...jsonOption,
  ...stateOptions,
  ...adminOptions,
};

export const command = defineCommand({
  name: 'status',
  summary: 'shows completeness, and what needs attention',
  description: 'Shows a summary, then sources, sinks and the journal, then the action for the worst problem.',
  options,
  examples: [
    'waybill status',
    "waybill status --source 'acme-*' --json",
    'waybill status --exit-code --admin https://waybill.example:9464 --admin-ca ca.pem',
  ],
  run,
});

async function run(values: ValuesOf<typeof options>, io: Io): Promise<number> {
  const tz = parseZone(values.tz);
  const whole = await currentSnapshot(values, io);
  const requested = values.source === undefined ? () => true : glob(values.source);
  const snapshot = { ...whole, sources: whole.sources.filter(({ id }) => requested(id)) };
  if (values.source !== undefined && snapshot.sources.length === 0)
    throw notFound(
      'source',
      values.source,
      whole.sources.map(({ id }) => id),
    );
  if (values.json) printJson(io, statusJson(snapshot));
  else {
    // A program or a file gets whole lines.
    const shown = statusText(snapshot, { color: usesColor(io), tz, width: widthOf(io.stdout, Infinity) });
    io.stdout.write(shown.endsWith('\n') ? shown : `${shown}\n`);
  }
  return values['exit-code'] && problems(snapshot).length > 0 ? 3 : 0;
}

function glob(pattern: string): (id: string) => boolean {
  const parts = pattern.split('*').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  const expression = new RegExp(`^${parts.join('.*')}$`);
  return (id) => expression.test(id);
}
