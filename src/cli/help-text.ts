/** Wraps a help text to the width of a terminal: paragraphs, option descriptions, and commands with a trailing backslash. Pure. */

/** Last column at which a description starts; after a longer name it starts on the next line. */
const maxDescriptionColumn = 22;

/** @param width  columns of the terminal; no line is longer, unless one word is */
export function fitted(text: string, width = 80): string {
  const blocks = text.trimEnd().split(/\n{2,}/);
  return `${blocks.map((block, i) => fittedBlock(block, i === 0, width)).join('\n\n')}\n`;
}

function fittedBlock(block: string, isSynopsis: boolean, width: number): string {
  const lines = block.split('\n');
  if (isSynopsis) return lines.flatMap((line) => filled(line, width, '    ')).join('\n');
  if (/^Examples:?$/.test(lines[0] ?? '')) return lines.flatMap((line) => continued(line, width)).join('\n');
  // A line without indentation belongs to the paragraph above it, a deeply indented one to the option above it.
  const items: string[] = [];
  for (const line of lines) {
    const isMore = items.length > 0 && (/^\S/.test(line) ? /^\S/.test(items.at(-1) ?? '') : /^ {10,}/.test(line));
    if (!isMore) {
      items.push(line);
      continue;
    }
    const item = items.pop() ?? '';
    const isLongOption = /^ {2,}-/.test(item) && !optionOf(item);
    items.push(`${item}${isLongOption ? '  ' : ' '}${line.trim()}`);
  }
  const columns = items.flatMap((item) => optionOf(item)?.name.length ?? []).map((length) => length + 2);
  const column = Math.max(...columns.filter((each) => each <= maxDescriptionColumn));
  return items.flatMap((item) => fittedItem(item, width, Number.isFinite(column) ? column : maxDescriptionColumn)).join('\n');
}

function fittedItem(item: string, width: number, column: number): string[] {
  const option = optionOf(item);
  if (!option) return filled(item, width, /^ */.exec(item)?.[0] ?? '');
  const indent = ' '.repeat(column);
  if (option.name.length + 2 <= column) return filled(`${option.name.padEnd(column)}${option.description}`, width, indent);
  return [option.name, ...filled(`${indent}${option.description}`, width, indent)];
}

function optionOf(item: string): { readonly name: string; readonly description: string } | undefined {
  const [, name, description] = /^( {2,}\S.*?) {2,}(\S.*)$/.exec(item) ?? [];
  return name === undefined || description === undefined ? undefined : { name, description };
}

/** Breaks at single spaces; wider gaps separate columns. */
function filled(line: string, width: number, indent: string): string[] {
  const done: string[] = [];
  let rest = line;
  while (rest.length > width) {
    // A synopsis is broken before an option with its value.
    const at = Math.max(...[...rest.slice(0, width + 1).matchAll(/(?<=[^ (]) (?=[^ ])/g)].map(({ index }) => index), 0);
    if (at <= indent.length) break;
    done.push(rest.slice(0, at));
    rest = `${indent}${rest.slice(at + 1)}`;
  }
  return [...done, rest];
}

function continued(line: string, width: number): string[] {
  // Within quotes a backslash would be literal.
  const joined = line.replace(/'[^']*'/g, (quoted) => quoted.replaceAll(' ', '\u0000'));
  const parts = joined.length <= width ? [joined] : filled(joined, width - 2, '      ');
  return parts.map((part, i) => `${part.replaceAll('\u0000', ' ')}${i < parts.length - 1 ? ' \\' : ''}`);
}
