/**
 * A parser of the Prometheus text format 0.0.4, written from its description: the metrics as a
 * user's server sees them.
 */
interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Exposition {
  readonly samples: readonly Sample[];
  /** By family name: counter, gauge, histogram. */
  readonly types: ReadonlyMap<string, string>;
}

export function parseExposition(text: string): Exposition {
  const samples: Sample[] = [];
  const types = new Map<string, string>();
  for (const line of text.split('\n')) {
    if (line === '') continue;
    const type = /^# TYPE (\S+) (\S+)$/.exec(line);
    if (type?.[1] !== undefined && type[2] !== undefined) types.set(type[1], type[2]);
    if (line.startsWith('#')) continue;
    const sample = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (sample?.[1] === undefined || sample[3] === undefined) throw new Error(`not a sample: ${line}`);
    samples.push({ name: sample[1], labels: parseLabels(sample[2] ?? ''), value: sample[3] === '+Inf' ? Infinity : Number(sample[3]) });
  }
  return { samples, types };
}

function parseLabels(text: string): Record<string, string> {
  const labels: Record<string, string> = {};
  const one = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\["\\n])*)"(?:,|$)/y;
  while (one.lastIndex < text.length) {
    const at = one.lastIndex;
    const found = one.exec(text);
    if (found?.[1] === undefined || found[2] === undefined) throw new Error(`not labels at ${at}: ${text}`);
    labels[found[1]] = found[2].replace(/\\(.)/g, (_, c: string) => (c === 'n' ? '\n' : c));
  }
  return labels;
}
