/** `waybill setup`: prepares the receiver of a sink; may be repeated. */
import { defineCommand, subcommand } from '../../command.ts';
import { confirmOption } from '../../operation.ts';
import { parseDuration } from '../../../settings/units.ts';
import { configOption, parsed, required, text, toggle, withDefault } from '../../option.ts';

const shared = {
  sink: required(text('ID', 'sink')),
  print: toggle('print what the command would do, without connecting'),
  ...configOption,
};

function ageOf(given: string): string | undefined {
  return /^[1-9]\d{0,5}[dh]$/.test(given) ? given : undefined;
}

function shardsOf(given: string): number | undefined {
  return /^([1-9]\d{0,2}|1000)$/.test(given) ? Number(given) : undefined;
}

const shardsOption = withDefault(
  parsed('N', 'number of journals that the members of a fleet share; default 16', 'a whole number from 1 to 1000', shardsOf),
  '16',
);

function spaceOf(given: string): string | undefined {
  return /^[a-z0-9_-]{1,64}$/.test(given) ? given : undefined;
}

export const command = defineCommand({
  name: 'setup',
  summary: 'prepares Elasticsearch, Kafka or the database of a fleet; imports dashboards and rules into Kibana',
  description: `setup elasticsearch needs manage_index_templates, manage_ingest_pipelines and, with --ilm, manage_ilm. It uses WAYBILL_SETUP_API_KEY, or
WAYBILL_SETUP_USERNAME and WAYBILL_SETUP_PASSWORD, instead of the credentials of the sink. An existing data stream uses a new mapping from its
next rollover on. Elasticsearch deletes nothing unless --retention is given.

setup postgres uses the database and the user of WAYBILL_SETUP_DATABASE, an address with the password of a user that may create a schema, or
the database and the user of "fleet". You can repeat it: it changes no row.

setup kibana imports the data view, saved searches, dashboards and detection rules of content/kibana, with the same variables. A sink with
"ledger: true" also gets the dashboard and the rules on ledger events. The rules are disabled unless --enable names them. A rule that exists is
not changed, except that --enable enables it: delete it in Kibana first to import it again. A rule runs with the API key, or as the user, that
enabled it: it stops when that key expires or is deleted. The command waits for a Kibana that starts, and reports each attempt.

setup kafka prints the topics and ACLs that a cluster administrator creates for the sink, and for a consumer that reads committed messages only.
The members of a fleet do not create the progress topic: it has a partition for each of the --shards.`,
  subcommands: {
    elasticsearch: subcommand({
      summary: 'installs the pipeline, mapping and index template of the data stream or indices',
      options: {
        ...shared,
        retention: parsed(
          'AGE',
          'delete events of this age, such as 365d, by the lifecycle of the data stream',
          'an age such as 365d',
          ageOf,
        ),
        ilm: toggle('apply --retention by an index lifecycle policy, waybill-audit'),
        key: toggle('create an API key with the permissions of the sink and print it once; needs a user, not a key'),
        ...confirmOption,
      },
      run: async (values, io) => (await import('./elasticsearch.ts')).setup(values, io),
    }),
    kibana: subcommand({
      summary: 'imports data views, dashboards and detection rules; enables rules',
      options: {
        ...shared,
        url: text('URL', 'address of Kibana, such as https://kibana.example:5601'),
        space: parsed('ID', 'space of Kibana; default the default space', 'an id of a space: a-z, 0-9, _ and -', spaceOf),
        enable: text('RULES', 'rules to enable, also where they exist: ids without dpas- or numbers, separated by commas, or all'),
        threshold: toggle('import threshold rules in place of ES|QL rules, for a stack older than 8.15'),
        wait: withDefault(
          parsed(
            'TIME',
            'how long to wait for Kibana to start or to be reachable; default 5m',
            'a duration such as 30s, 5m, 0s',
            parseDuration,
          ),
          '5m',
        ),
        ...confirmOption,
      },
      run: async (values, io) => (await import('./kibana.ts')).setup(values, io),
    }),
    kafka: subcommand({
      summary: 'creates the progress topic if it does not exist; prints topics and ACLs',
      options: { ...shared, shards: shardsOption },
      run: async (values, io) => (await import('./kafka.ts')).setup(values, io),
    }),
    postgres: subcommand({
      summary: 'creates the tables of a fleet, and gives its members their rights',
      options: {
        shards: shardsOption,
        reader: text('USER', 'user of the database that may read: for status and reports'),
        print: shared.print,
        ...configOption,
        ...confirmOption,
      },
      run: async (values, io) => (await import('./postgres.ts')).setup(values, io),
    }),
  },
  examples: [
    'waybill setup elasticsearch --sink siem --print',
    'WAYBILL_SETUP_API_KEY=... waybill setup elasticsearch --sink siem --yes',
    'waybill setup kibana --sink siem --url https://kibana.example:5601 --enable open-denied-many-files,opened-many',
    'waybill setup kafka --sink lake --print > for-the-administrator.sh',
  ],
});
