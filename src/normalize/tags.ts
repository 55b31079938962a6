/** The tags for what is unexpected in a record: docs/formats.md, "Unexpected records". */
import { fieldNumbers, fieldPaths } from '../record/fields.ts';
import type { RecordFields } from '../model/record.ts';
import { kinds } from '../record/walk.ts';

const { logId, logTimestamp, userNetwork } = fieldNumbers;

const regular: readonly string[] = [];
const noObject: readonly string[] = ['not_an_object'];

/** In the order of the documentation. @param known  the outcome is in the table. @param dropped  by privacy rules: no unexpected absence */
export function tagsOf(record: RecordFields, known: boolean, dropped: ReadonlySet<string>): readonly string[] {
  if (!record.isObject) return noObject;
  let isMissing = false;
  let isOddType = false;
  for (let field = 0; field < fieldPaths.length; field += 1) {
    const kind = record.kind(field);
    if (field === userNetwork) isOddType ||= kind !== kinds.object && !record.isAbsent(field);
    else if (kind > kinds.escaped) isOddType ||= field !== logId || (kind !== kinds.integer && kind !== kinds.number);
    // The numbers up to `logTimestamp` are the nine main fields, which every record should have.
    else if (field <= logTimestamp && record.isAbsent(field)) isMissing ||= !dropped.has(fieldPaths[field] ?? '');
  }
  const isUndated = record.timestamp === undefined;
  if (known && !isMissing && !isOddType && !isUndated) return regular;
  const tags: string[] = [];
  if (!known) tags.push('unknown_combination');
  if (isMissing) tags.push('missing_field');
  if (isOddType) tags.push('unexpected_type');
  if (isUndated) tags.push('invalid_timestamp');
  return tags;
}
