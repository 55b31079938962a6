/** The sinks, one file each. A new one is added here; its place in the configuration, the checks and the documents follows from that. */
import { elasticsearch } from './elasticsearch.ts';
import { file } from './file.ts';
import { kafka } from './kafka.ts';
import { splunkHec } from './splunk-hec.ts';
import { syslog } from './syslog.ts';
import { stdout } from './stdout.ts';

export const sinks = [elasticsearch, file, kafka, splunkHec, syslog, stdout] as const;
