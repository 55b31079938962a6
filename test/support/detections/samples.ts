/** The samples of the detection rules as events, by the fields of their ECS documents. */
import type { DetectionEvent } from '../../../src/detections/evaluate.ts';
import type { Act, Rule } from '../../../src/detections/rule.ts';

/** A Wednesday. */
const sampleStart = Date.parse('2026-03-04T00:00:00Z');

export function eventsOf(acts: readonly Act[], { dataset }: Pick<Rule, 'dataset'>): readonly DetectionEvent[] {
  const events = acts.flatMap((act, number) =>
    Array.from({ length: act.times }, (_, i): DetectionEvent => {
      const named = (value: string): string => (value === 'each' ? String(i) : value);
      const [latitude, longitude] = act.place?.split(',') ?? [];
      const audit = {
        ...fieldsOfCode(act.code),
        'user.id': named(act.user),
        'dpas.payload.id': named(act.file),
        'file.uid': named(act.owner),
        'host.hostname': act.host,
        'source.as.organization.name': act.provider,
        'source.geo.location.lat': latitude,
        'source.geo.location.lon': longitude,
        tags: act.code.startsWith('Print:') ? 'unknown_combination' : undefined,
      };
      const fields = dataset === 'ledger' ? { 'event.action': act.code, 'dpas.ledger.source': 'production' } : audit;
      return { at: sampleStart + act.at + i * act.every, uid: `${String(number)}-${String(i)}`, fields };
    }),
  );
  return events.sort((a, b) => a.at - b.at);
}

/** `event.code` and the fields that it is made of. */
export function fieldsOfCode(code: string): DetectionEvent['fields'] {
  const [action, result, reason] = code.split(':');
  return { 'event.code': code, 'dpas.action_attempted': action, 'dpas.result': result, 'event.reason': reason };
}
