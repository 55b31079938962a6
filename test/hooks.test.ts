/** The list of mutants must survive renames, new layouts and moved files: changes name parts of the syntax tree, never an identifier. */
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { applyChanges, applyToFiles } from './support/hooks.ts';

const source = `export function next(ages: readonly number[], now: number, store: { put(age: number): void; sync(): void }): number {
  // mutant: first-age
  for (const age of ages) if (age > now) return age;
  const least = /* mutant: least */ Math.min(now, ages[0] ?? 0);
  // mutant: put
  store.put(least);
  // mutant: sync
  store.sync();
  return /* mutant: late */ least < now && now > 0 ? least : now;
}
`;

/** The same code with other names in another layout. */
const renamed = `export function following(steps: readonly number[],
    present: number, keeper: { put(step: number): void; sync(): void }): number {
  /* mutant: first-age */ for (const step of steps) {
    if (step > present) return step;
  }
  const lowest =
    // mutant: least
    Math.min(
      present,
      steps[0] ?? 0,
    );
  // mutant: put
  // The comment of another author.
  keeper
    .put(lowest);
  // mutant: sync
  keeper.sync();
  return (
    // mutant: late
    lowest < present && present > 0
      ? lowest
      : present
  );
}
`;

const names: readonly (readonly [string, string])[] = [
  ['following', 'next'],
  ['steps', 'ages'],
  ['step', 'age'],
  ['present', 'now'],
  ['keeper', 'store'],
  ['lowest', 'least'],
];

const cases: readonly (readonly [string, Record<string, string>])[] = [
  ['removes a statement', { 'first-age': ';' }],
  ['replaces an expression by a literal', { least: '0' }],
  ['swaps operands', { least: '$(expression)($(arguments[1]), $(arguments[0]))' }],
  ['replaces an operator', { late: '$(condition.left.left) <= $(condition.left.right) ? $(whenTrue) : $(whenFalse)' }],
  ['swaps two statements', { put: '$(sync#)', sync: '$(put#)' }],
  ['skips a call and keeps its argument', { put: 'void ($(expression.arguments[0]));' }],
];

describe('changes at hooks', () => {
  it.each(cases)('%s, after a rename and in another layout too', (_, changes) => {
    const byHook = new Map(Object.entries(changes));
    const before = applyChanges(source, byHook);
    expect(printed(before)).not.toBe(printed(source));
    expect(printed(originalNames(applyChanges(renamed, byHook)))).toBe(printed(before));
  });

  it('finds a hook in a file that was moved', () => {
    const changes = { least: '0' };
    expect([...applyToFiles(new Map([['other/place.ts', source]]), changes).keys()]).toEqual(['other/place.ts']);
  });

  it('refuses a hook that is missing, in two files, twice in one, or without code', () => {
    const change = { least: '0' };
    expect(() => applyToFiles(new Map([['a.ts', 'export {};\n']]), change)).toThrow(/is in 0 files/);
    expect(() => applyToFiles(new Map([['a.ts', source], ['b.ts', source]]), change)).toThrow(/is in 2 files/); // prettier-ignore
    expect(() => applyChanges(source + source, new Map(Object.entries(change)))).toThrow(/two hooks share/);
    expect(() => applyChanges('export {};\n// mutant: nothing\n', new Map([['nothing', ';']]))).toThrow(/no code follows/);
  });

  it('refuses a part that is missing, hooks that overlap, and code that does not parse', () => {
    expect(() => applyChanges(source, new Map([['least', '$(left)']]))).toThrow(/no part/);
    expect(() => applyChanges('// mutant: a\nf(/* mutant: b */ 1);\n', new Map([['a', ';'], ['b', '2']]))).toThrow(/overlap/); // prettier-ignore
    expect(() => applyChanges(source, new Map([['least', '(']]))).toThrow(/cannot parse/);
  });
});

function originalNames(text: string): string {
  return names.reduce((renaming, [from, to]) => renaming.replaceAll(new RegExp(`\\b${from}\\b`, 'g'), to), text);
}

/** Without comments, layout, and the braces and parentheses that a formatter may add. */
function printed(text: string): string {
  const code = ts.transpileModule(text, { compilerOptions: { target: ts.ScriptTarget.Latest, removeComments: true } }).outputText;
  return code.replaceAll(/[(){}\s]+/g, '');
}
