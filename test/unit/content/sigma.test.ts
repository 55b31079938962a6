/**
 * content/sigma: valid by the specification, with only fields and values of the service, and each
 * rule fires on its outcomes.
 */
import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, test } from 'vitest';
import { encoder } from '../../../src/encode/index.ts';
import { normalizer } from '../../../src/normalize/normalizer.ts';
import { fieldPaths } from '../../../src/record/fields.ts';
import { fullest, recordOf, rows, settings } from '../../support/normalize/records.ts';
import { recordFor } from '../../support/content/events.ts';
import { mappedFields } from '../../../tools/content/mapped-fields.ts';
import { allCodes, bursts, burstSequences, deniedThenAllowed, singleEvents } from '../../support/content/sequences.ts';
import { basesOf, fieldsOf, matchesOf, readSigma, sigmaRule, sigmaRules } from '../../support/content/sigma.ts';

const schema = (name: string): object => {
  const document = JSON.parse(readFileSync(new URL(`../../fixtures/${name}`, import.meta.url), 'utf8')) as {
    $schema: string;
  };
  // Ajv contains this version, under a URL without the `#`.
  return { ...document, $schema: undefined };
};
const ajv = new Ajv2020({ strict: false, validateFormats: false });
const isDetection = ajv.compile(schema('sigma-detection-rule-schema.json'));
const isCorrelation = ajv.compile(schema('sigma-correlation-rules-schema.json'));

describe('the files', () => {
  test.each(sigmaRules.map((rule) => [rule.path, rule] as const))('%s follows the schema of the specification', (path, rule) => {
    const document = { ...rule, path: undefined };
    const validate = rule.correlation ? isCorrelation : isDetection;
    expect(validate(document), JSON.stringify(validate.errors)).toBe(true);
    expect(path).toMatch(new RegExp(`/${rule.name}\\.yml$`));
    expect(rule.id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    if (!rule.correlation) expect(rule.logsource).toEqual({ product: 'dpas', service: 'audit' });
  });

  test('have unique ids and names', () => {
    expect(new Set(sigmaRules.map(({ id }) => id)).size).toBe(sigmaRules.length);
    expect(new Set(sigmaRules.map(({ name }) => name)).size).toBe(sigmaRules.length);
  });

  test('use only fields of the record, and values of the specification', () => {
    const known = {
      actionAttempted: rows.map(({ triple }) => triple[0]),
      result: rows.map(({ triple }) => triple[1]),
      resultReason: rows.map(({ triple }) => triple[2]),
    };
    for (const rule of sigmaRules) {
      for (const field of fieldsOf(rule)) expect(fieldPaths, rule.name).toContain(field);
      for (const [field, values] of Object.entries(rule.detection?.selection ?? {}))
        for (const value of [values].flat()) expect(known[field as keyof typeof known], rule.name).toContain(value);
    }
  });

  test('have the techniques and tactics of ATT&CK for what they detect, and a harmless cause', () => {
    // Tactics as SigmaHQ/sigma assigns them.
    const tactics = {
      t1530: ['collection'],
      t1222: ['defense-impairment'],
      t1098: ['persistence', 'privilege-escalation'],
      t1078: ['initial-access', 'persistence', 'privilege-escalation', 'stealth'],
    };
    const [opens, control, owner] = [['t1530'], ['t1222'], ['t1098', 't1222']] as const;
    const techniques: Readonly<Record<string, readonly (keyof typeof tactics)[]>> = {
      ...{ any_denied: [], protect_denied_geo: [], open_allowed: [] },
      ...{ open_denied_country: opens, open_denied_no_access: opens, open_denied_geo: opens, open_denied_time: opens },
      ...{ open_denied_many_files: opens, open_denied_repeatedly: opens, open_outside_time: opens, opened_many: opens },
      ...{ authorized: control, authorized_many: control, revocation_changed: control, revocation_changed_many: control },
      ...{ owner_changed: owner, owner_changed_many: owner, open_denied_then_allowed: ['t1530', 't1078'] },
    };
    for (const { name, tags = [], falsepositives } of sigmaRules) {
      const used = techniques[name.replace(/^dpas_/, '')] ?? [];
      const expected = new Set(used.flatMap((each) => [`attack.${each}`, ...tactics[each].map((tactic) => `attack.${tactic}`)]));
      expect(tags.toSorted(), name).toEqual([...expected].toSorted());
      expect(falsepositives.length, name).toBeGreaterThan(0);
    }
  });

  test('refer to rules that exist', () => {
    const names = new Set(sigmaRules.map(({ name }) => name));
    expect(sigmaRules.flatMap(({ correlation }) => correlation?.rules ?? []).filter((name) => !names.has(name))).toEqual([]);
  });

  test('have a test', () => {
    const tested = [...Object.keys(singleEvents), ...Object.keys(bursts), 'open_denied_repeatedly', 'open_denied_then_allowed'];
    expect(sigmaRules.map(({ name }) => name).toSorted()).toEqual(tested.map((name) => `dpas_${name}`).toSorted());
  });
});

describe('the rules', () => {
  test.each(Object.entries(singleEvents))('%s fires on its outcomes and no other', (name, codes) => {
    const found = allCodes.filter((code) => matchesOf(sigmaRule(`dpas_${name}`), [recordFor({ code, at: 0 })]).length > 0);
    expect(found).toEqual(codes);
  });

  const sequences = Object.entries(bursts).flatMap(([name, burst]) =>
    burstSequences(burst, burst.window).map((sequence) => [name, sequence.name, sequence] as const),
  );
  test.each(sequences)('%s: %s', (name, _, { happenings, fires }) => {
    expect(matchesOf(sigmaRule(`dpas_${name}`), happenings.map(recordFor)).length > 0).toBe(fires);
  });

  test.each(deniedThenAllowed.map((sequence) => [sequence.name, sequence] as const))(
    'open_denied_then_allowed: %s',
    (_, { happenings, fires, firesInSigma = fires }) => {
      expect(matchesOf(sigmaRule('dpas_open_denied_then_allowed'), happenings.map(recordFor)).length > 0).toBe(firesInSigma);
    },
  );
});

interface Transformation {
  readonly type: string;
  readonly mapping?: Readonly<Record<string, string>>;
  readonly conditions?: Readonly<Record<string, string>>;
  readonly rule_conditions: readonly ({ readonly type: 'logsource' } | { readonly type: 'tag'; readonly tag: string })[];
}

describe('the pipelines', () => {
  const mappingFor = (pipeline: string, tags: readonly string[]): Readonly<Record<string, string>> => {
    const { transformations } = readSigma(`pipelines/${pipeline}.yml`) as { transformations: readonly Transformation[] };
    const applied = transformations.filter(({ rule_conditions }) =>
      rule_conditions.every((condition) => condition.type === 'logsource' || tags.includes(condition.tag)),
    );
    // The first mapping of a field applies: after it the field has another name.
    return applied.reduce<Record<string, string>>((all, { mapping }) => ({ ...mapping, ...all }), {});
  };

  test('select the events of Waybill by a value that each of them has', () => {
    const conditionOf = (pipeline: string): readonly (readonly [string, string])[] => {
      const { transformations } = readSigma(`pipelines/${pipeline}.yml`) as { transformations: readonly Transformation[] };
      return transformations.flatMap(({ type, conditions = {} }) => (type === 'add_condition' ? Object.entries(conditions) : []));
    };
    // The source type that the sink `splunk-hec` sends by default.
    expect(conditionOf('splunk')).toEqual([['sourcetype', 'dpas:audit']]);
    for (const pipeline of ['ecs', 'ocsf'] as const) {
      const conditions = conditionOf(pipeline);
      expect(conditions).toHaveLength(1);
      const encode = encoder(pipeline, { includeOriginal: false, cef: { ipv6: 'c6a2', geo: 'cfp' } });
      for (const code of allCodes) {
        const text = encode(normalizer(settings)(recordOf(JSON.stringify(recordFor({ code, at: 0 }))))).toString();
        for (const [path, value] of conditions) expect(at(JSON.parse(text))(path), `${pipeline}: ${code}`).toBe(value);
      }
    }
  });

  test.each(['ecs', 'splunk'])('%s renames every field of a rule to a mapped field with the same value', (pipeline) => {
    const mapping = mappingFor(pipeline, []);
    for (const rule of sigmaRules)
      for (const field of fieldsOf(rule)) expect(mappedFields.has(mapping[field] ?? ''), `${rule.name} ${field}`).toBe(true);
    const written = at(JSON.parse(encoder('ecs', { includeOriginal: false, cef: { ipv6: 'c6a2', geo: 'cfp' } })(normalizer(settings)(recordOf(JSON.stringify(fullest)))).toString())); // prettier-ignore
    for (const [field, path] of Object.entries(mapping)) expect(written(path), path).toBe(at(fullest)(field));
  });

  test('ocsf renames every field of a rule to an attribute of its class with its value', () => {
    const encode = encoder('ocsf', { includeOriginal: false, cef: { ipv6: 'c6a2', geo: 'cfp' } });
    const normalize = normalizer(settings);
    for (const rule of sigmaRules) {
      const mapping = mappingFor('ocsf', rule.tags ?? []);
      const codes = allCodes.filter((code) => basesOf(rule.name).some((base) => matchesOf(sigmaRule(base), [recordFor({ code, at: 0 })]).length > 0)); // prettier-ignore
      expect(codes.length, rule.name).toBeGreaterThan(0);
      for (const code of codes) {
        const [actionAttempted, result, resultReason] = code.split(':');
        const record = { ...fullest, actionAttempted, result, resultReason };
        const written = at(JSON.parse(encode(normalize(recordOf(JSON.stringify(record)))).toString()));
        for (const field of fieldsOf(rule)) expect(written(mapping[field] ?? ''), `${rule.name} ${field}`).toBe(at(record)(field));
      }
    }
  });
});

/** Reads a dotted path. */
function at(document: unknown): (path: string) => unknown {
  return (path) => path.split('.').reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], document);
}
