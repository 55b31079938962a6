/**
 * The scanner compared with JSON.parse: for any bytes, both find the same items, or both refuse.
 */
import { expect, test } from 'vitest';
import { WaybillError } from '../../../src/errors/errors.ts';
import { scanPage } from '../../../src/source/scan.ts';
import { sized } from '../../support/long-run.ts';

const seed = Number(process.env['SEED'] ?? 20261121);
const runs = Number(process.env['FUZZ'] ?? sized(3_000, 25_000));

test(`the scanner agrees with JSON.parse on ${runs} mutated pages (SEED=${seed})`, { timeout: 30_000 + runs / 5 }, () => {
  const random = generator(seed);
  const seen = { accepted: 0, refused: 0 };
  for (let run = 0; run < runs; run += 1) {
    const body = mutate(makePage(random), random);
    const expected = plainly(body);
    const got = scanned(body);
    if (expected === undefined) seen.refused += 1;
    else seen.accepted += 1;
    if (JSON.stringify(got) !== JSON.stringify(expected)) {
      expect.fail(
        `SEED=${seed} run ${run}: expected ${JSON.stringify(expected)}, got ${JSON.stringify(got)}: ${JSON.stringify(text(body))}`,
      );
    }
  }
  // The generator produces both kinds.
  expect(Math.min(seen.accepted, seen.refused)).toBeGreaterThan(runs / 100);
});

interface Found {
  readonly items: readonly unknown[];
  readonly pagination: unknown;
}

function plainly(body: Uint8Array): Found | undefined {
  try {
    const value = JSON.parse(text(body)) as { data?: unknown; pagination?: unknown } | null;
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, 'data')) return undefined;
    const items = value.data === null ? [] : value.data;
    if (!Array.isArray(items)) return undefined;
    return { items: items as unknown[], pagination: Object.hasOwn(value, 'pagination') ? value.pagination : undefined };
  } catch {
    return undefined;
  }
}

function scanned(body: Uint8Array): Found | undefined {
  let page;
  try {
    page = scanPage(body, 'page 1');
  } catch (thrown) {
    if (thrown instanceof WaybillError && thrown.code === 'page_malformed') return undefined;
    throw thrown;
  }
  return { items: page.items.map(({ received }) => JSON.parse(text(received)) as unknown), pagination: page.pagination };
}

function text(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}

type Chance = () => number;

function makePage(random: Chance): string {
  const pick = <T>(of: readonly T[]): T => of[Math.floor(random() * of.length)] as T;
  const space = () => (random() < 0.8 ? '' : pick([' ', '\n', '\t', '\r', '  ']));
  const string = () =>
    `"${Array.from({ length: Math.floor(random() * 4) }, () => pick(['a', '\\"', '\\\\', '\\u0000', 'é', '😀', ']', '}', ',', '\\n', '\\ud800', '[', '{', ':'])).join('')}"`;
  const scalar = () => pick([string, string, () => pick(['0', '-1', '1.5e3', '9007199254740993', 'true', 'false', 'null'])])();
  const value = (depth: number): string => {
    const kind = depth > 4 ? 1 : random();
    if (kind > 0.5) return scalar();
    const count = Math.floor(random() * 3);
    if (kind > 0.25) return `[${space()}${Array.from({ length: count }, () => value(depth + 1)).join(`${space()},${space()}`)}${space()}]`;
    const members = Array.from(
      { length: count },
      () => `${pick([string(), '"__proto__"', '"data"'])}${space()}:${space()}${value(depth + 1)}`,
    );
    return `{${space()}${members.join(`${space()},`)}${space()}}`;
  };
  const data = () =>
    `[${space()}${Array.from({ length: Math.floor(random() * 4) }, () => value(1)).join(`${space()},${space()}`)}${space()}]`;
  const members = [`"data"${space()}:${random() < 0.95 ? data() : value(1)}`];
  if (random() < 0.8) members.unshift(`"pagination":${space()}${value(2)}`);
  if (random() < 0.2)
    members.push(`${pick(['"data"', '"pagination"', '"__proto__"', '"\\u0064ata"', string()])}:${random() < 0.5 ? data() : value(2)}`);
  return `${space()}${random() < 0.02 ? '\ufeff' : ''}{${members.join(`${space()},${space()}`)}}${space()}`;
}

function mutate(page: string, random: Chance): Uint8Array {
  const bytes = [...new TextEncoder().encode(page)];
  const times = random() < 0.3 ? 0 : 1 + Math.floor(random() * 2);
  for (let time = 0; time < times; time += 1) {
    const at = Math.floor(random() * bytes.length);
    const byte = random() < 0.8 ? '"\\{}[]:, \n0-1etnx'.charCodeAt(Math.floor(random() * 17)) : Math.floor(random() * 256);
    const how = random();
    if (how < 0.3) bytes.splice(at, 1);
    else if (how < 0.55) bytes.splice(at, 0, byte);
    else if (how < 0.8) bytes[at] = byte;
    else if (how < 0.9) bytes.length = at;
    else bytes.splice(at, 0, ...bytes.slice(at, at + Math.floor(random() * 20)));
  }
  return Uint8Array.from(bytes);
}

/** mulberry32 */
function generator(from: number): Chance {
  let state = from >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
