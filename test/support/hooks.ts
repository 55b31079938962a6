/**
 * Breaks source code at hooks. A hook is a comment `mutant: name`. It names the largest syntax node that begins at the next token: after
 * `// mutant: name` the statement on the next line, after an inline block comment an expression or a property. A change is the text that
 * replaces the node:
 *
 *   $(left)           the text of a part of the node, by its path in the syntax tree of TypeScript
 *   $()               the text of the node
 *   $(name#left)      the text of a part of the node at another hook of the same file
 *
 * A change names no identifier of the code, so a rename or a new layout needs no edit of the list of mutants.
 */
import ts from 'typescript';

const hookPattern = /mutant: ([a-z][a-z0-9-]*)/g;
const partPattern = /\$\((?:([a-z][a-z0-9-]*)#)?([A-Za-z0-9.[\]]*)\)/g;

/** The nodes that hooks name. Throws if two hooks share a name, or if no node follows a hook. */
function hooksOf(text: string): ReadonlyMap<string, ts.Node> {
  const source = ts.createSourceFile('hooked.ts', text, ts.ScriptTarget.Latest, true);
  const hooks = new Map<string, ts.Node>();
  const visit = (node: ts.Node): void => {
    if (node.kind === ts.SyntaxKind.EndOfFileToken) return;
    const trivia = text.slice(node.getFullStart(), node.getStart(source));
    for (const [, name = ''] of trivia.matchAll(hookPattern)) {
      const known = hooks.get(name);
      if (known && known.getStart(source) !== node.getStart(source)) throw new Error(`two hooks share the name "${name}"`);
      // A parent is visited before its children: the first node that begins here is the largest.
      if (!known) hooks.set(name, node);
    }
    ts.forEachChild(node, visit);
  };
  ts.forEachChild(source, visit);
  for (const [, name = ''] of text.matchAll(hookPattern)) if (!hooks.has(name)) throw new Error(`no code follows hook "${name}"`);
  return hooks;
}

/**
 * The changed files of a mutant.
 * @param texts  by path
 * @param changes  by the name of the hook; a hook that is in no file, or in two, is an error
 */
export function applyToFiles(texts: ReadonlyMap<string, string>, changes: Readonly<Record<string, string>>): Map<string, string> {
  const byFile = new Map<string, Map<string, string>>();
  for (const [name, change] of Object.entries(changes)) {
    const hook = `mutant: ${name}`;
    const paths = [...texts].filter(([, text]) => text.includes(hook) && namesIn(text).includes(name)).map(([path]) => path);
    const [path] = paths;
    if (path === undefined || paths.length > 1) throw new Error(`hook "${name}" is in ${paths.length} files: ${paths.join(', ')}`);
    byFile.set(path, (byFile.get(path) ?? new Map<string, string>()).set(name, change));
  }
  return new Map([...byFile].map(([path, ofFile]) => [path, applyChanges(texts.get(path) ?? '', ofFile)]));
}

/** The names of the hooks in a source text. */
export function namesIn(text: string): string[] {
  return [...text.matchAll(hookPattern)].map(([, name = '']) => name);
}

/** The names of the other hooks that a change refers to. */
export function namesInChange(change: string): string[] {
  return [...change.matchAll(partPattern)].flatMap(([, name]) => (name === undefined ? [] : [name]));
}

/** @param changes  by the name of the hook; each must be in the text */
export function applyChanges(text: string, changes: ReadonlyMap<string, string>): string {
  const hooks = hooksOf(text);
  const edits = [...changes].map(([name, change]) => {
    const node = nodeAt(hooks, name);
    const replacement = change.replaceAll(partPattern, (_, other: string | undefined, path: string) =>
      partOf(other === undefined ? node : nodeAt(hooks, other), path).getText(),
    );
    return { start: node.getStart(), end: node.getEnd(), replacement };
  });
  edits.sort((a, b) => b.start - a.start);
  let mutated = text;
  let end = Infinity;
  for (const edit of edits) {
    if (edit.end > end) throw new Error(`hooks ${[...changes.keys()].join(' and ')} overlap`);
    end = edit.start;
    mutated = mutated.slice(0, edit.start) + edit.replacement + mutated.slice(edit.end);
  }
  const [fault] = syntaxFaults(mutated);
  if (fault) throw new Error(`cannot parse mutated code: ${ts.flattenDiagnosticMessageText(fault.messageText, '; ')}`);
  return mutated;
}

/** Parses only: `ts.transpileModule` also resolves symbols and writes JavaScript. */
function syntaxFaults(text: string): readonly ts.Diagnostic[] {
  const options: ts.CompilerOptions = { target: ts.ScriptTarget.Latest, noLib: true, noResolve: true };
  const source = ts.createSourceFile('mutated.ts', text, ts.ScriptTarget.Latest);
  const host = { ...ts.createCompilerHost(options), getSourceFile: (name: string) => (name === source.fileName ? source : undefined) };
  return ts.createProgram([source.fileName], options, host).getSyntacticDiagnostics(source);
}

function nodeAt(hooks: ReadonlyMap<string, ts.Node>, name: string): ts.Node {
  const node = hooks.get(name);
  if (!node) throw new Error(`no hook "${name}" in this file`);
  return node;
}

function partOf(node: ts.Node, path: string): ts.Node {
  let part: unknown = node;
  for (const step of path.match(/[A-Za-z0-9]+/g) ?? []) part = (part as Record<string, unknown> | undefined)?.[step];
  if (part === undefined) throw new Error(`no part "${path}" of: ${node.getText()}`);
  return part as ts.Node;
}
