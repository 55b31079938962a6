import type { LookupAddress } from 'node:dns';
import { expect, test } from 'vitest';
import { Names } from '../../../src/connect/names.ts';

type Addresses = (thrown: NodeJS.ErrnoException | null, found?: readonly LookupAddress[]) => void;

/** A resolver that answers when the test says so, on a clock of the test. */
function resolver(slots: number) {
  const running = new Map<string, Addresses>();
  const asked: string[] = [];
  let now = 0;
  const names = new Names(
    (name, _options, answered) => {
      asked.push(name);
      running.set(name, answered);
    },
    slots,
    () => now,
  );
  return {
    names,
    asked,
    running,
    look: (...hosts: string[]) => {
      for (const host of hosts) names.lookup(host, { all: true }, () => undefined);
    },
    answer: (name: string, afterMs = 0) => {
      now += afterMs;
      const answered = running.get(name);
      running.delete(name);
      answered?.(null, [{ address: '192.0.2.1', family: 4 }]);
    },
    fail: (name: string) => {
      const answered = running.get(name);
      running.delete(name);
      answered?.(Object.assign(new Error(`getaddrinfo EAI_AGAIN ${name}`), { code: 'EAI_AGAIN' }), []);
    },
  };
}

const numbered = (name: string, count: number): string[] => Array.from({ length: count }, (_, i) => `${name}${i}`);

test('a name is looked up once at a time, and every request gets the answer in the form that it asked for', () => {
  const { names, asked, answer } = resolver(4);
  const answers: unknown[] = [];
  names.lookup('siem.example', { all: true }, (...given) => answers.push(given));
  names.lookup('siem.example', {}, (...given) => answers.push(given));
  names.lookup('siem.example', (...given: unknown[]) => answers.push(given));
  expect([asked, names.pending()]).toEqual([['siem.example'], ['siem.example']]);
  answer('siem.example');
  expect(answers).toEqual([
    [null, [{ address: '192.0.2.1', family: 4 }]],
    [null, '192.0.2.1', 4],
    [null, '192.0.2.1', 4],
  ]);
  expect(names.pending()).toEqual([]);
  names.lookup('siem.example', {}, () => undefined);
  expect(asked).toEqual(['siem.example', 'siem.example']);
});

test('a failed look-up fails every request for the name', () => {
  const { names, fail } = resolver(4);
  const codes: unknown[] = [];
  for (let i = 0; i < 2; i += 1) names.lookup('siem.example', {}, (thrown) => codes.push(thrown?.code));
  fail('siem.example');
  expect(codes).toEqual(['EAI_AGAIN', 'EAI_AGAIN']);
});

test('an address is never queued', () => {
  const { asked, look } = resolver(2);
  look('a.example', 'b.example', 'c.example', '192.0.2.7', '2001:db8::7');
  expect(asked.slice(-2)).toEqual(['192.0.2.7', '2001:db8::7']);
});

test('names that no server answers for leave slots for those that have resolved, and for new ones', () => {
  const at = resolver(8);
  at.look('good.example');
  at.answer('good.example');
  const dead = numbered('dead', 20);
  at.look(...dead);
  // One slot of eight stays free for names that have resolved.
  expect(at.running.size).toBe(7);
  at.look('good.example');
  expect(at.running.has('good.example')).toBe(true);
  at.answer('good.example');

  for (let i = 0; i < 20; i += 1) at.fail(`dead${i}`);
  at.look(...dead);
  expect(at.running.size).toBe(4);
  at.look('new.example', 'good.example');
  expect([...at.running.keys()].slice(4)).toEqual(['new.example', 'good.example']);
});

test('an answer that comes late counts as a failure, and one in time makes the name good again', () => {
  const at = resolver(2);
  at.look('slow.example');
  at.answer('slow.example', 15_000);
  at.look('slow.example', 'other.example');
  at.answer('other.example');
  at.fail('slow.example');
  at.look('slow.example', 'other.example');
  expect([...at.running.keys()]).toEqual(['slow.example', 'other.example']);
  at.answer('slow.example');
  at.look('slow.example');
  expect(at.running.has('slow.example')).toBe(true);
});
