/** `waybill operations`: the changes by operators. */
import { systemClock } from '../../time/clock.ts';
import { flat } from '../../journal/operation-detail.ts';
import { operationList, type OperationItem } from '../../journal/queries/operations.ts';
import { operationHeads, operationRows } from '../../report/ledger/operations.ts';
import { right } from '../../report/text-table.ts';
import { rfc3339 } from '../../report/format-time.ts';
import { parsePeriod } from '../../settings/period.ts';
import { adminOptions, adminServer, type AdminValues } from '../admin-client.ts';
import { defineCommand, subcommand } from '../command.ts';
import { printJson, printTable, type Io } from '../io.ts';
import { jsonOption, timeOptions, type ValuesOf } from '../option.ts';
import { settingsFor, statesOf, stateOptions, type StateValues } from '../state-access.ts';

export const command = defineCommand({
  name: 'operations',
  summary: 'lists every change to the state that an operator made',
  description: `Lists every change that an operator made to the state: time, actor (not authenticated), operation, source or sink, and outcome. The text
combines consecutive operations of the same kind, on several windows or records, into one row; --json lists each.`,
  subcommands: {
    list: subcommand({
      summary: 'lists the operations of a period',
      options: { ...timeOptions, ...jsonOption, ...stateOptions, ...adminOptions },
      run: async (values, io) => {
        const found = await operations(values, io);
        if (values.json) printJson(io, { operations: found });
        else if (found.length === 0) io.stdout.write('no operations\n');
        else printOperations(found, io);
        return 0;
      },
    }),
  },
  fallback: 'list',
  examples: ['waybill operations list', 'waybill operations list --from 2026-Q3 --to 2026-Q3 --json'],
});

type Values = StateValues & AdminValues & ValuesOf<typeof timeOptions>;

async function operations(values: Values, io: Io): Promise<readonly OperationItem[]> {
  const { from, to } = parsePeriod(values, systemClock.now() * 1000);
  const server = adminServer(values, io.env);
  if (server) {
    const period = { from: from === undefined ? undefined : rfc3339(from), to: to === undefined ? undefined : rfc3339(to) };
    return (await server.get<{ readonly operations: readonly OperationItem[] }>('/operations', { operations: 'objects' }, period))
      .operations;
  }
  const { settings } = await settingsFor(values, io);
  using opened = await statesOf(settings);
  return operationList(
    opened.states.map(({ db }) => db),
    from ?? 0,
    to ?? Number.MAX_SAFE_INTEGER,
  );
}

function printOperations(found: readonly OperationItem[], io: Io): void {
  const items = found.map(({ at, actor, operation, source, sink, reason, detail }) => ({
    at,
    actor,
    operation,
    detail: flat({ source, sink, reason, ...detail }),
  }));
  const columns = ['time', ...operationHeads].map((head) => (head === 'count' ? right('COUNT') : head.toUpperCase()));
  printTable(io, columns, operationRows(items).map(({ at, cells }) => [new Date(at).toISOString(), ...cells])); // prettier-ignore
}
