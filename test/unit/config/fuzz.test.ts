/**
 * Any text as a configuration is accepted, or every error names a place, and nothing else is ever
 * thrown. Half of the texts are a changed valid configuration, to reach deeper rules. WAYBILL_SEED
 * repeats a run.
 */
import { expect, test } from 'vitest';
import { stringify } from 'yaml';
import { problemsOf } from '../../support/config/loading.ts';
import { sized } from '../../support/long-run.ts';

const seed = Number(process.env['WAYBILL_SEED'] ?? 20261121);
const runs = sized(120, 400);

/** Numbers in [0, 1) from a seed (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const whole = () => ({
  dataDir: './state',
  journal: { maxSize: '1GiB', retention: '1d' },
  tls: { ca: ['/a.pem'] },
  proxy: { url: 'http://proxy.example:1', noProxy: ['.svc'] },
  sources: [
    {
      id: 'production',
      baseUrl: 'https://service.example/api',
      auth: {
        authUrl: 'https://login.example',
        tenantId: 't',
        clientId: 'c',
        clientSecret: 'canary-secret',
        scopeAddress: 's',
        tls: { ca: '/c' },
      },
      subscriptionKey: 'canary-key',
      start: '2026-01-01T00:00:00Z',
      recountAfter: ['1h', '2h'],
      pageSize: 100,
      requests: { perSecond: 1, timeout: '3s', group: 'g' },
      observer: { vendor: 'V' },
      privacy: { rules: [{ fields: ['userId'], action: 'drop' }], key: 'canary-privacy-key' },
    },
  ],
  mapping: { severity: { 'Decrypt:AccessDenied:TimeEmbargoFailed': 3 }, names: { 'Audit:AuthorChanged:Changed': 'New owner' } },
  sinks: [
    { id: 'a', type: 'file', path: '/a', filter: { result: ['x'], not: { userId: ['u'] }, any: [{ userId: ['v'] }] } },
    { id: 'b', type: 'stdout', batch: { maxRecords: 5 }, sources: ['production'], failReadinessAfter: 'never' },
  ],
  admin: { listen: ['127.0.0.1:0', '[::1]:0'], token: 'canary-token', tls: { cert: '/c', key: '/k' } },
  log: { levels: { sink: 'debug' } },
});

const scalars = [
  ...[
    null,
    true,
    0,
    -1,
    1.5,
    2 ** 53,
    Infinity,
    NaN,
    '',
    ' ',
    '10s',
    '5GiB',
    'none',
    'now',
    'never',
    'file',
    'production',
    '\n',
    '\0',
    'é',
    '1e3',
  ],
  ...[
    '__proto__',
    'constructor',
    'toString',
    'https://x',
    'http://[',
    '${env:A}',
    '${env:',
    '${file:/}',
    '$${',
    '*a',
    '&a',
    '!x',
    '<<',
    '- a',
    '{',
    ']',
  ],
];

function generator(random: () => number) {
  const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)] as Item;
  const keys = [
    'id',
    'type',
    'sources',
    'sinks',
    'auth',
    'tls',
    'ca',
    'constructor',
    'toString',
    'length',
    'x y',
    '',
    'rules',
    'fields',
    '0',
  ];
  const value = (depth: number): unknown => {
    const kind = random();
    if (depth === 0 || kind < 0.5) return pick(scalars);
    if (kind < 0.7) return Array.from({ length: Math.floor(random() * 4) }, () => value(depth - 1));
    return Object.fromEntries(Array.from({ length: Math.floor(random() * 4) }, () => [pick(keys), value(depth - 1)]));
  };
  /** Replaces, removes, adds or duplicates a value at a random place. */
  const change = (root: object): void => {
    let at = root as Record<string, unknown>;
    for (;;) {
      const key = pick(Object.keys(at));
      const inside = at[key];
      if (typeof inside === 'object' && inside !== null && Object.keys(inside).length > 0 && random() < 0.75) {
        at = inside as Record<string, unknown>;
        continue;
      }
      const way = random();
      if (way < 0.5) at[key] = value(2);
      else if (way < 0.7) Reflect.deleteProperty(at, key);
      else if (way < 0.85) at[`${key}x`] = inside;
      else if (Array.isArray(at)) at.push(structuredClone(inside));
      else at[pick(keys)] = value(1);
      return;
    }
  };
  const noise = (text: string): string => {
    const at = Math.floor(random() * text.length);
    return (
      text.slice(0, at) +
      pick(['', ':', '\n', '- ', '  ', '"', '{', '[', '#', '\t', '&a ', '*a', '!env ', '!file ', '? ', '\u{FEFF}', '%', '---\n']) +
      text.slice(at + 1)
    );
  };
  return (): string => {
    const changed = whole();
    if (random() < 0.2) return stringify(value(4));
    for (let changes = Math.floor(random() * 3.5); changes > 0; changes -= 1) change(changed);
    const text = stringify(changed, { aliasDuplicateObjects: false });
    return random() < 0.3 ? noise(text) : text;
  };
}

const problem = /^(line \d+, column \d+: |the file is nested|(the configuration|\S[^\n]*?( \(line \d+\))?): )\S/;

test(`any text is accepted or refused with places (seed ${seed})`, async () => {
  const next = generator(randomFrom(seed));
  const outcomes = { accepted: 0, refused: 0, lines: new Set<string>() };
  for (let run = 0; run < runs; run += 1) {
    const text = next();
    const problems = await problemsOf(text, { A: 'canary-variable' });
    outcomes[problems.length === 0 ? 'accepted' : 'refused'] += 1;
    for (const line of problems) {
      const context = `${line}\n\nin run ${run} of seed ${seed}:\n${text}`;
      expect(line, context).toMatch(problem);
      expect(line, context).not.toContain('\n');
      expect(line, context).not.toContain('canary');
      expect(line, context).not.toMatch(/undefined|\[object|NaN is not NaN/);
      outcomes.lines.add(line.replace(/^[^ ]* /, ''));
    }
  }
  // A generator of only invalid or only valid texts would prove nothing.
  expect(outcomes.accepted).toBeGreaterThan(runs / 20);
  expect(outcomes.refused).toBeGreaterThan(runs / 2);
  expect(outcomes.lines.size).toBeGreaterThan(sized(50, 100));
});

test('the valid configuration that the texts derive from is valid', async () => {
  expect(await problemsOf(stringify(whole()))).toEqual([]);
});
