/** The list of sink types. Configuration, checks and generated documents use it. */
import { archive } from './archive/index.ts';
import { elasticsearch } from './elasticsearch/index.ts';
import { file } from './file/index.ts';
import { kafka } from './kafka/index.ts';
import { splunkHec } from './splunk-hec/index.ts';
import { syslog } from './syslog/index.ts';
import { stdout } from './stdout.ts';

export const sinks = [archive, elasticsearch, file, kafka, splunkHec, syslog, stdout] as const;
