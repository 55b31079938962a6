/**
 * Parses a configuration file into a plain value: YAML 1.2, unique keys, no merge keys, references replaced by their values. Keeps the line
 * and the reference of each setting, for messages and for secrets that are read again.
 */
import { isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseAllDocuments, type ScalarTag, type YAMLError } from 'yaml';
import { messageOf } from '../errors/errors.ts';
import { type Environment, file, parseTemplate, type Template, variable } from '../settings/reference.ts';
import { unresolved } from '../settings/values.ts';

export type Path = readonly (string | number)[];

/** The position of a setting in the file, and its reference. */
export interface Place {
  readonly line: number;
  readonly template?: Template;
  /** The included file and its number in the order of inclusion; undefined in the main file. */
  readonly file?: { readonly name: string; readonly turn: number };
}

export interface Fault {
  readonly path: Path;
  readonly message: string;
  /** True for a reference that does not resolve, for example on another machine than the daemon's. */
  readonly missing?: boolean;
}

export interface Document {
  readonly value: unknown;
  /** The key is `keyOf(path)`. */
  readonly places: ReadonlyMap<string, Place>;
  readonly faults: readonly Fault[];
  /** Syntax errors of the YAML, with line and column. If there are any, all else is empty. */
  readonly errors: readonly string[];
}

export function keyOf(path: Path): string {
  return JSON.stringify(path);
}

/** The reference of the setting at a path, if it has one. Messages never show its value. */
export function referenceAt(document: Document, path: Path): string | undefined {
  return document.places.get(keyOf(path))?.template?.origin;
}

/** More settings than any real configuration has: a few lines of aliases can expand to millions. */
const settingsMax = 50_000;

/** Keys that would change how a plain object is compared or converted to text. */
const unusable: ReadonlySet<string> = new Set(['__proto__', 'toString', 'valueOf', 'toJSON']);

/** @throws RangeError if the text is nested too deeply for the stack */
export function readDocument(text: string, environment: Environment): Document {
  const lines = new LineCounter();
  const documents = parseAllDocuments(text, {
    version: '1.2',
    schema: 'core',
    merge: false,
    prettyErrors: false,
    lineCounter: lines,
    customTags: [tag('!env'), tag('!file')],
  });
  const none = { value: undefined, places: new Map<string, Place>(), faults: [] };
  if ('empty' in documents) return { ...none, value: {}, errors: [] };
  const [document, second] = documents;
  const errors = documents.flatMap((each) => [...each.errors, ...each.warnings]);
  // The parser reports its own stack overflow as one of hundreds of syntax errors.
  if (errors.some((error) => error.message === 'Maximum call stack size exceeded'))
    throw new RangeError('the document is nested too deeply');
  if (errors.length > 0)
    return { ...none, errors: independent(errors).map((error) => `${at(lines, error.pos[0])}: ${yamlMessage(error, text)}`) };
  if (second)
    return { ...none, errors: [`${at(lines, second.range[0])}: a second document starts; the configuration must be one document`] };
  return walk(document?.contents ?? null, lines, environment, (alias) => alias.resolve(document as never));
}

/** The errors up to the first one that shifts the structure: those after it are its consequences. */
function independent(errors: readonly YAMLError[]): readonly YAMLError[] {
  const sorted = errors.toSorted((a, b) => a.pos[0] - b.pos[0]);
  const first = sorted.findIndex(({ code }) => Object.hasOwn(structural, code));
  return first < 0 ? sorted : sorted.slice(0, first + 1);
}

/** The usual cause of each error of the structure, which the parser describes by its grammar. */
const structural: Readonly<Partial<Record<YAMLError['code'], string>>> = {
  BLOCK_AS_IMPLICIT_KEY: 'the next line is indented further than this one permits, or a colon is missing here',
  MULTILINE_IMPLICIT_KEY: 'a colon is missing here, or the next line is indented further than this one permits',
  MISSING_CHAR: 'this line is not indented like its neighbours, or a dash, quote or bracket is missing',
  BAD_INDENT: 'this line is not indented like its neighbours',
  TAB_AS_INDENT: 'indented with a tab; indent with spaces',
  BLOCK_IN_FLOW: 'a bracket or brace is not closed above',
  UNEXPECTED_TOKEN: 'this text does not belong here: a quote, comma or bracket is missing or too many',
  BAD_SCALAR_START: 'quote text that starts with this character',
  BAD_DQ_ESCAPE: 'a backslash has a meaning in double quotes; use single quotes',
};

/** The message of the parser, without the text that it quotes, which may be a secret. */
function yamlMessage({ code, message, pos }: YAMLError, text: string): string {
  if (code === 'DUPLICATE_KEY')
    return `${/^[\w.-]{1,80}/.exec(text.slice(pos[0]))?.[0] ?? 'this setting'} occurs twice in its group; remove one`;
  if (code === 'TAG_RESOLVE_FAILED') return 'unknown tag (known: !env and !file); quote text that starts with !';
  return structural[code] ?? message.replace(/: ".*/s, '');
}

type AliasNode = { resolve(document: never): Node | undefined };

/** Keeps scalars with this tag as text; `walk` reads the tag. */
function tag(name: string): ScalarTag {
  return { tag: name, resolve: (text) => text };
}

function at(lines: LineCounter, offset: number): string {
  const { line, col } = lines.linePos(offset);
  return `line ${line}, column ${col}`;
}

function walk(root: unknown, lines: LineCounter, environment: Environment, resolve: (alias: AliasNode) => Node | undefined): Document {
  const places = new Map<string, Place>();
  const faults: Fault[] = [];
  const above = new Set<unknown>();

  const valueOf = (node: unknown, path: Path, line: number): unknown => {
    const place = keyOf(path);
    places.set(place, { line });
    if (isAlias(node)) {
      const target = resolve(node);
      if (!target) {
        fail(path, 'refers to an unknown anchor; quote text that starts with *');
        return undefined;
      }
      if (above.has(target)) {
        fail(path, 'contains itself through an alias');
        return undefined;
      }
      return valueOf(target, path, line);
    }
    if (places.size > settingsMax) {
      fail(path, `exceeds the maximum of ${settingsMax} settings, through aliases`);
      return undefined;
    }
    if (isMap(node)) {
      above.add(node);
      const result: Record<string, unknown> = {};
      for (const pair of node.items) {
        const key = isScalar(pair.key) ? String(pair.key.value) : undefined;
        const keyLine = lineOf(pair.key) ?? line;
        if (key === undefined || unusable.has(key)) fail(path, 'has a key that is not a setting name');
        else result[key] = valueOf(pair.value, [...path, key], keyLine);
      }
      above.delete(node);
      return result;
    }
    if (isSeq(node)) {
      above.add(node);
      const result = node.items.map((item, index) => valueOf(item, [...path, index], lineOf(item) ?? line));
      above.delete(node);
      return result;
    }
    if (!isScalar(node) || typeof node.value !== 'string') return isScalar(node) ? node.value : null;
    return textOf(node.value, node.tag, path, line);
  };

  const textOf = (text: string, tag: string | undefined, path: Path, line: number): string => {
    try {
      const template = tag === '!env' ? variable(text, environment) : tag === '!file' ? file(text) : parseTemplate(text, environment);
      if (typeof template === 'string') return template;
      places.set(keyOf(path), { line, template });
      return template.read();
    } catch (thrown) {
      faults.push({ path, message: messageOf(thrown), missing: !(thrown instanceof SyntaxError) });
      return unresolved;
    }
  };

  const fail = (path: Path, message: string): void => {
    faults.push({ path, message });
  };

  const lineOf = (node: unknown): number | undefined => {
    const range = isScalar(node) || isMap(node) || isSeq(node) || isAlias(node) ? node.range : undefined;
    return range ? lines.linePos(range[0]).line : undefined;
  };

  const value = valueOf(root, [], 1);
  return { value, places, faults, errors: [] };
}
