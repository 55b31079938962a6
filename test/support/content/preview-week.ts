/**
 * A week of events for the previews of the dashboards: the first records of the demo, spread over
 * working hours, and one user who tries to open many files without access. The same in every run.
 */
import { cut, RecordGenerator, storedFrom } from '../../../src/reference/logs/records.ts';
import { networkOf } from '../../../src/reference/logs/network.ts';
import { organizationOf } from '../../../src/reference/people/organization.ts';
import { oneOf, randomOf, uuidOf, type Random } from '../../../src/reference/random.ts';

const day = 86_400_000;
export const weekStart = Date.parse('2026-03-02T00:00:00Z');
export const weekEnd = weekStart + 7 * day;

/** The JSON texts of records, ordered by time. */
export function weekOfRecords(): readonly string[] {
  const seed = '1';
  const random = randomOf(`${seed}/week`);
  const { people } = organizationOf(seed);
  const generator = new RecordGenerator(people, seed, 1_000_001);
  const usual = Array.from({ length: 1500 }, () => generator.next(nanos(workingTime(random))));

  const [searcher, ...owners] = people.slice(-20);
  if (!searcher) throw new Error('the organization has no people');
  const network = networkOf(random, 7);
  const begin = weekStart + 3 * day + 21 * 3_600_000;
  const search = Array.from({ length: 38 }, (_, index) => {
    const payload = { id: uuidOf(random), name: `Tender ${index + 1}.docx`, owner: oneOf(random, owners) };
    return generator.ofAction(
      { combination: ['Decrypt', 'AccessDenied', 'UserPayloadNoAccess'], user: searcher, payload, network },
      nanos(begin + index * 11_000),
    );
  });
  return [...usual, ...search]
    .toSorted((a, b) => Number(a.at - b.at))
    .map((record) => storedFrom(record))
    .map(({ head, network: shown, personal, tail }) => head + shown + personal + tail);
}

const nanos = (ms: number): bigint => cut(BigInt(Math.round(ms)) * 1_000_000n, 3);

/** Five days out of six on a weekday, most of them between 8 and 18 o'clock. */
function workingTime(random: Random): number {
  const date = random() < 0.96 ? Math.floor(random() * 5) : 5 + Math.floor(random() * 2);
  const hour = random() < 0.12 ? random() * 24 : 13 + (random() + random() + random() - 1.5) * 5;
  return weekStart + date * day + hour * 3_600_000;
}
