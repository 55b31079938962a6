/**
 * Splunk's text for the codes of its rejections (HTTP Event Collector, "Troubleshoot"); other sinks have textual codes. None quotes a
 * record, so the log may show it.
 */
const refusals: ReadonlyMap<string, string> = new Map([
  ['6', 'Invalid data format'],
  ['12', 'Event field is required'],
  ['13', 'Event field cannot be blank'],
  ['15', 'Error in handling indexed fields'],
]);

/** The code of a rejection, for people: a number is followed by its meaning. */
export function rejectionCode(code: string): string {
  const meaning = refusals.get(code);
  return meaning === undefined ? code : `${code} (${meaning})`;
}
