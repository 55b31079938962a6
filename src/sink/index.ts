/** The sinks, one file each. A new one is added here; its place in the configuration, the checks and the documents follows from that. */
import { elasticsearch } from './elasticsearch/index.ts';
import { file } from './file/index.ts';
import { kafka } from './kafka/index.ts';
import { splunkHec } from './splunk-hec/index.ts';
import { syslog } from './syslog/index.ts';
import { stdout } from './stdout.ts';

export const sinks = [elasticsearch, file, kafka, splunkHec, syslog, stdout] as const;
