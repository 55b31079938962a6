/**
 * The fields and types that `content/elasticsearch/` maps, including sub-fields, and `@timestamp`
 * of the template.
 */
import component from '../../content/elasticsearch/component-template.json' with { type: 'json' };

interface Field {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Field>>;
  readonly fields?: Readonly<Record<string, Field>>;
}

function mapped(properties: Readonly<Record<string, Field>>, before: string): [string, string][] {
  return Object.entries(properties).flatMap(([name, { type, properties: inner = {}, fields = {} }]) => [
    ...(type === undefined ? [] : [[`${before}${name}`, type] satisfies [string, string]]),
    ...mapped(inner, `${before}${name}.`),
    ...mapped(fields, `${before}${name}.`),
  ]);
}

export const mappedFields: ReadonlyMap<string, string> = new Map([
  ['@timestamp', 'date'],
  ...mapped(component.template.mappings.properties, ''),
]);
