/** `waybill setup`: prepares the receiver of a sink; may be repeated. */
import { defineCommand, subcommand } from '../../command.ts';
import { confirmOption } from '../../operation.ts';
import { parsed, required, text, toggle } from '../../option.ts';
import { configOption } from '../../state-access.ts';

const shared = {
  sink: required(text('ID', 'sink')),
  print: toggle('print what the command would do, without connecting'),
  ...configOption,
};

function ageOf(given: string): string | undefined {
  return /^[1-9]\d{0,5}[dh]$/.test(given) ? given : undefined;
}

export const command = defineCommand({
  name: 'setup',
  summary: 'prepares the receiver of a sink: templates and API key of Elasticsearch, topics and ACLs of Kafka',
  description: `setup elasticsearch needs manage_index_templates, manage_ingest_pipelines and, with --ilm, manage_ilm. It uses WAYBILL_SETUP_API_KEY, or
WAYBILL_SETUP_USERNAME and WAYBILL_SETUP_PASSWORD, instead of the credentials of the sink. An existing data stream uses a new mapping from its
next rollover on. Elasticsearch deletes nothing unless --retention is given.

setup kafka prints the topics and ACLs that a cluster administrator creates for the sink, and for a consumer that reads committed messages only.`,
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
    kafka: subcommand({
      summary: 'creates the progress topic if it does not exist; prints topics and ACLs',
      options: shared,
      run: async (values, io) => (await import('./kafka.ts')).setup(values, io),
    }),
  },
  examples: [
    'waybill setup elasticsearch --sink siem --print',
    'WAYBILL_SETUP_API_KEY=... waybill setup elasticsearch --sink siem --yes',
    'waybill setup kafka --sink lake --print > for-the-administrator.sh',
  ],
});
