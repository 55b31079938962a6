/** The sinks, one file each. A new one is added here; its place in the configuration, the checks and the documents follows from that. */
import { file } from './file.ts';
import { kafka } from './kafka.ts';
import { syslog } from './syslog.ts';
import { stdout } from './stdout.ts';

export const sinks = [file, kafka, syslog, stdout] as const;
