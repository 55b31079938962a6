/** `waybill setup`: prepares the receiver of a sink: what an administrator does once, and may do again. */
import { WaybillError } from '../../../errors.ts';
import type { Io } from '../../io.ts';

export const summary = 'prepares the receiver of a sink: templates and key of Elasticsearch, topics and rights of Kafka';

export const usage = `waybill setup elasticsearch --sink ID [--retention AGE [--ilm]] [--key] [--print] [--yes] [--config FILE]
       waybill setup kafka --sink ID [--print] [--config FILE]

elasticsearch
Installs the mapping, the pipeline and the index template for the data stream (or the indices) of a sink. May be run again: a data stream that is
there already takes a new mapping with its next rollover. Nothing is deleted by the server unless --retention says when.

It needs manage_index_templates, manage_ingest_pipelines and, with --ilm, manage_ilm: WAYBILL_SETUP_API_KEY, or WAYBILL_SETUP_USERNAME and
WAYBILL_SETUP_PASSWORD, are used for it in place of the key of the sink.

kafka
Makes the progress topic of a sink, if it is not there, and prints the topics and rights that an administrator of the cluster gives it, and a
consumer that reads only what was committed. May be run again.

  --sink ID         which sink
  --config FILE     the configuration
  --print           prints what would be done, and connects to nothing
  --retention AGE   (elasticsearch) events are deleted at this age, e.g. 365d: by the lifecycle of the data stream
  --ilm             (elasticsearch) the same by an index lifecycle policy, waybill-audit
  --key             (elasticsearch) makes an API key with the rights of the sink and prints it, once; needs a user, not a key
  --yes             (elasticsearch) do it without asking; needed where nobody can be asked

Examples:
  waybill setup elasticsearch --sink siem --print
  WAYBILL_SETUP_API_KEY=... waybill setup elasticsearch --sink siem --yes
  waybill setup kafka --sink lake --print > for-the-administrator.sh
`;

/** By type of sink; each is read only when it is asked for. */
const setups: Readonly<Record<string, () => Promise<{ readonly setup: (args: string[], io: Io) => Promise<number> }>>> = {
  elasticsearch: () => import('./elasticsearch.ts'),
  kafka: () => import('./kafka.ts'),
};

export async function run([type = '', ...args]: string[], io: Io): Promise<number> {
  const load = Object.hasOwn(setups, type) ? setups[type] : undefined;
  if (load) return (await load()).setup(args, io);
  const what = type === '' || type.startsWith('-') ? 'nothing' : `"${type}"`;
  throw new WaybillError(
    'usage',
    `cannot set up ${what}: name one of ${Object.keys(setups).join(', ')}, as in "waybill setup kafka --sink ID"`,
  );
}
