/** Reads JSON of other programs, which may have any form. */

/** The members of the object in a JSON text; an empty object for any other text. */
export function objectIn(text: string): Readonly<Record<string, unknown>> {
  try {
    return membersOf(JSON.parse(text));
  } catch {
    return {};
  }
}

/** The members of an object; an empty object for any other value. */
export function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Readonly<Record<string, unknown>>) : {};
}
