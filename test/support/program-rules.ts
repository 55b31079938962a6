/**
 * Rules of `npm run lint` that need the types of the whole program. Each prints one line for each fault:
 * - an export that no other file uses. A test counts as a user. Not reported: files that a tool loads by path, programs, and modules that
 *   `import()` passes on as a whole, such as the commands;
 * - a configuration key that no code reads;
 * - a metric that metrics.ts does not create, or whose method of `Meters` nothing calls;
 * - a call of `Log.write` without an event of the table.
 * The argument is the root of the repository, default this one.
 */
import { dirname, relative, resolve } from 'node:path';
import ts from 'typescript';

const root = resolve(process.argv[2] ?? resolve(import.meta.dirname, '../..'));
const loadedByPath =
  /^(vitest|stryker|eslint|dependency-cruiser)\.|^test\/support\/(skip-reporter|events-reporter|long-first|shared-certificates|built-program)\.ts$|^src\/main\.ts$|\.d\.ts$/;

const { config } = ts.readConfigFile(resolve(root, 'tsconfig.json'), (path) => ts.sys.readFile(path)) as { config: unknown };
const { options, fileNames } = ts.parseJsonConfigFileContent(config, ts.sys, root);
const program = ts.createProgram(fileNames, options);
const checker = program.getTypeChecker();
const files = program.getSourceFiles().filter(({ fileName }) => fileName.startsWith(`${root}/`) && !fileName.includes('/node_modules/'));

/** Exports that another file uses. */
const used = new Set<ts.Symbol>();
/** Declarations of properties that code of src/ reads. */
const read = new Set<ts.Node>();
/** Keys that `memberOf` reads. */
const readByName = new Set<string>();
/** Keys of `z.object` and `z.strictObject` in the settings. */
const settings: ts.PropertyAssignment[] = [];
const faults: string[] = [];

for (const file of files) visit(file, file, relative(root, file.fileName));
faults.push(...unusedExports(), ...unreadSettings(), ...unusedMetrics());
for (const fault of faults) process.stderr.write(`${fault}\n`);
process.exitCode = faults.length === 0 ? 0 : 1;

function visit(node: ts.Node, file: ts.SourceFile, path: string): void {
  const isSource = path.startsWith('src/');
  if (ts.isIdentifier(node)) {
    const symbol = checker.getSymbolAtLocation(node);
    use(symbol, file);
    if (isSource && ts.isPropertyAccessExpression(node.parent) && node.parent.name === node) readProperty(symbol);
  }
  if (ts.isBindingElement(node)) {
    const name = node.propertyName ?? node.name;
    const property = ts.isIdentifier(name) ? checker.getTypeAtLocation(node.parent).getProperty(name.text) : undefined;
    use(property, file);
    if (isSource) readProperty(property);
  }
  if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword && isWhole(node)) {
    const [argument] = node.arguments;
    const module = argument && checker.getSymbolAtLocation(argument);
    for (const symbol of module ? checker.getExportsOfModule(module) : []) use(symbol, file);
  }
  if (isSource && ts.isCallExpression(node)) {
    checkLogLine(node, file);
    const [, key] = node.arguments;
    if (node.expression.getText() === 'memberOf' && key && ts.isStringLiteral(key)) readByName.add(key.text);
  }
  if (/^src\/(config\/schema\.ts|sink\/.*|[a-z]+\/settings\.ts)$/.test(path)) collectSettings(node);
  ts.forEachChild(node, (child) => visit(child, file, path));
}

function resolved(symbol: ts.Symbol | undefined): ts.Symbol | undefined {
  return symbol && (symbol.flags & ts.SymbolFlags.Alias) !== 0 ? checker.getAliasedSymbol(symbol) : symbol;
}

function use(symbol: ts.Symbol | undefined, from: ts.SourceFile): void {
  const target = resolved(symbol);
  if (target?.declarations?.some((declaration) => declaration.getSourceFile() !== from) === true) used.add(target);
}

/** The property of an inferred type keeps the declaration of the key in the schema. */
function readProperty(symbol: ts.Symbol | undefined): void {
  for (const declaration of symbol?.declarations ?? []) read.add(declaration);
}

/** True if the module is used as a whole: neither `(await import(…)).name` nor `const { name } = await import(…)`. */
function isWhole(node: ts.Node): boolean {
  const { parent } = node;
  if (ts.isAwaitExpression(parent) || ts.isParenthesizedExpression(parent)) return isWhole(parent);
  return !ts.isPropertyAccessExpression(parent) && !(ts.isVariableDeclaration(parent) && ts.isObjectBindingPattern(parent.name));
}

function checkLogLine({ expression, arguments: [event] }: ts.CallExpression, file: ts.SourceFile): void {
  if (!ts.isPropertyAccessExpression(expression) || expression.name.text !== 'write') return;
  const declaration = checker.getSymbolAtLocation(expression.name)?.declarations?.[0];
  if (declaration === undefined || !ts.isInterfaceDeclaration(declaration.parent) || declaration.parent.name.text !== 'Log') return;
  const events = checker.getDeclaredTypeOfSymbol(exportOf(fileAt('src/model/log-events.ts'), 'LogEventCode'));
  if (!event || !checker.isTypeAssignableTo(checker.getTypeAtLocation(event), events))
    faults.push(`${placeOf(expression, file)} writes a log line without an event of src/model/log-events.ts`);
}

function collectSettings(node: ts.Node): void {
  if (!ts.isCallExpression(node) || !/^z\.(strictObject|object)$/.test(node.expression.getText().replaceAll(/\s/g, ''))) return;
  const [shape] = node.arguments;
  if (shape && ts.isObjectLiteralExpression(shape))
    settings.push(...shape.properties.filter((property) => ts.isPropertyAssignment(property)));
}

/**
 * The keys that no code reads. Code may read the property of the schema, the property of an interface
 * that receives the settings (in the same folder, or in src/telemetry for the log), or call `memberOf`
 * before the file is parsed.
 */
function unreadSettings(): string[] {
  const interfaces = new Set(
    [...read].filter((node) => ts.isPropertySignature(node)).map((node) => `${folderOf(node)} ${node.name.getText()}`),
  );
  return settings
    .filter((setting) => {
      const name = setting.name.getText();
      const folders = [folderOf(setting), resolve(root, 'src/telemetry')];
      return !read.has(setting) && !readByName.has(name) && !folders.some((folder) => interfaces.has(`${folder} ${name}`));
    })
    .map(
      (setting) =>
        `${placeOf(setting, setting.getSourceFile())} defines the configuration key "${setting.name.getText()}", which no code reads`,
    );
}

function folderOf(node: ts.Node): string {
  return dirname(node.getSourceFile().fileName);
}

function unusedExports(): string[] {
  return files.flatMap((file) => {
    const module = checker.getSymbolAtLocation(file);
    if (!module || loadedByPath.test(relative(root, file.fileName))) return [];
    return checker.getExportsOfModule(module).flatMap((symbol) => {
      const target = resolved(symbol);
      const [declaration] = symbol.declarations ?? [];
      if (!target || !declaration || used.has(target)) return [];
      return [`${placeOf(declaration, file)} exports "${symbol.name}", which no other file uses`];
    });
  });
}

function unusedMetrics(): string[] {
  const table = fileAt('src/telemetry/metric-table.ts');
  const instruments = fileAt('src/telemetry/metrics.ts');
  const meters = fileAt('src/model/telemetry.ts');
  const names = propertiesOf(table, 'metricTable').filter((name) => !new RegExp(`\\b${name}\\b`).test(instruments.text));
  const methods = meters.statements
    .filter((statement) => ts.isInterfaceDeclaration(statement))
    .filter(({ name }) => name.text === 'Meters')
    .flatMap(({ members }) => [...members])
    .filter((member) => !read.has(member));
  return [
    ...names.map((name) => `src/telemetry/metrics.ts creates no instrument for the metric "${name}"`),
    ...methods.map((method) => `${placeOf(method, meters)} declares "${method.name?.getText() ?? ''}", which nothing records`),
  ];
}

function propertiesOf(file: ts.SourceFile, name: string): string[] {
  return checker.getPropertiesOfType(checker.getTypeOfSymbol(exportOf(file, name))).map((property) => property.name);
}

function exportOf(file: ts.SourceFile, name: string): ts.Symbol {
  const module = checker.getSymbolAtLocation(file);
  const symbol = module && checker.getExportsOfModule(module).find((each) => each.name === name);
  if (!symbol) throw new Error(`cannot find the export "${name}" of ${file.fileName}`);
  return symbol;
}

function fileAt(path: string): ts.SourceFile {
  const file = program.getSourceFile(resolve(root, path));
  if (!file) throw new Error(`cannot find ${path}`);
  return file;
}

function placeOf(node: ts.Node, file: ts.SourceFile): string {
  return `${relative(root, file.fileName)}:${file.getLineAndCharacterOfPosition(node.getStart()).line + 1}`;
}
