/** The list of sink types. Configuration, checks and generated documents use it. */
import { elasticsearch } from './elasticsearch/index.ts';
import { file } from './file/index.ts';
import { kafka } from './kafka/index.ts';
import { splunkHec } from './splunk-hec/index.ts';
import { syslog } from './syslog/index.ts';
import { stdout } from './stdout.ts';

export const sinks = [elasticsearch, file, kafka, splunkHec, syslog, stdout] as const;
