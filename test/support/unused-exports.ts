/**
 * Fails for an export that no other file uses (`npm run lint`). A test may be the only user: it imports what it tests. Not reported: files that a
 * tool loads by path (configuration, reporters), programs, and modules that `import()` passes on as a whole, such as the commands.
 * `--json` prints the places for a script.
 */
import { relative, resolve } from 'node:path';
import ts from 'typescript';

const root = resolve(import.meta.dirname, '../..');
const loadedByPath =
  /^(vitest|stryker|eslint|dependency-cruiser)\.|^test\/support\/(skip-reporter|long-first)\.ts$|^src\/main\.ts$|\.d\.ts$/;

const { config } = ts.readConfigFile(resolve(root, 'tsconfig.json'), (path) => ts.sys.readFile(path)) as { config: unknown };
const { options, fileNames } = ts.parseJsonConfigFileContent(config, ts.sys, root);
const program = ts.createProgram(fileNames, options);
const checker = program.getTypeChecker();
const files = program.getSourceFiles().filter(({ fileName }) => fileName.startsWith(`${root}/`) && !fileName.includes('/node_modules/'));

const used = new Set<ts.Symbol>();

function resolved(symbol: ts.Symbol | undefined): ts.Symbol | undefined {
  return symbol && (symbol.flags & ts.SymbolFlags.Alias) !== 0 ? checker.getAliasedSymbol(symbol) : symbol;
}

function use(symbol: ts.Symbol | undefined, from: ts.SourceFile): void {
  const target = resolved(symbol);
  if (target?.declarations?.some((declaration) => declaration.getSourceFile() !== from) === true) used.add(target);
}

function visit(node: ts.Node, file: ts.SourceFile): void {
  if (ts.isIdentifier(node)) use(checker.getSymbolAtLocation(node), file);
  if (ts.isBindingElement(node)) {
    const name = node.propertyName ?? node.name;
    if (ts.isIdentifier(name)) use(checker.getTypeAtLocation(node.parent).getProperty(name.text), file);
  }
  if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword && isWhole(node)) {
    const [path] = node.arguments;
    const module = path && checker.getSymbolAtLocation(path);
    for (const symbol of module ? checker.getExportsOfModule(module) : []) use(symbol, file);
  }
  ts.forEachChild(node, (child) => visit(child, file));
}

/** Neither `(await import(…)).name` nor `const { name } = await import(…)`. */
function isWhole(node: ts.Node): boolean {
  const { parent } = node;
  if (ts.isAwaitExpression(parent) || ts.isParenthesizedExpression(parent)) return isWhole(parent);
  return !ts.isPropertyAccessExpression(parent) && !(ts.isVariableDeclaration(parent) && ts.isObjectBindingPattern(parent.name));
}

for (const file of files) visit(file, file);

const unused = files.flatMap((file) => {
  const path = relative(root, file.fileName);
  const module = checker.getSymbolAtLocation(file);
  if (!module || loadedByPath.test(path)) return [];
  return checker.getExportsOfModule(module).flatMap((symbol) => {
    const target = resolved(symbol);
    const [declaration] = symbol.declarations ?? [];
    if (!target || !declaration || used.has(target)) return [];
    const { line } = file.getLineAndCharacterOfPosition(declaration.getStart());
    return [{ path, line: line + 1, name: symbol.name }];
  });
});

if (process.argv.includes('--json')) process.stdout.write(`${JSON.stringify(unused)}\n`);
else for (const { path, line, name } of unused) process.stderr.write(`${path}:${line} exports "${name}", which no other file uses\n`);
process.exitCode = unused.length === 0 ? 0 : 1;
