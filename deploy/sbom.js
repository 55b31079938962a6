/**
 * A plugin of rolldown: adds to the build the software bill of materials (CycloneDX 1.5) and the licences of the joined packages. The bill lists
 * the packages that the build has joined and those that npm installs with Waybill, as package-lock.json records them.
 */
import { readFileSync, readdirSync } from 'node:fs';
import { join, relative } from 'node:path';

const { '': root, ...packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')).packages;
const nameOf = (path) => path.replace(/^.*node_modules\//, '');
const purl = (name, version) => `pkg:npm/${name.replace('@', '%40')}@${version}`;

export function billOfMaterials() {
  return {
    name: 'bill of materials',
    generateBundle(_options, bundle) {
      const modules = Object.values(bundle).flatMap((file) => file.moduleIds ?? []);
      const joined = new Set(modules.map(packageOf).filter((path) => path !== undefined));
      const installed = Object.keys(packages).filter((path) => packages[path].dev !== true);
      const all = [...joined.union(new Set(installed))].sort();
      this.emitFile({ type: 'asset', fileName: 'sbom.cdx.json', source: `${JSON.stringify(bill(all), null, 2)}\n` });
      this.emitFile({ type: 'asset', fileName: 'licences.txt', source: [...joined].sort().map(licenceText).join('\n') });
    },
  };
}

/** The key in package-lock.json of the package of a module; undefined for a module of Waybill or of rolldown. */
function packageOf(module) {
  return /^(.*node_modules\/(@[^/]+\/)?[^/]+)\//.exec(relative('.', module))?.[1];
}

function licenceText(path) {
  const { version, license } = packages[path];
  const files = readdirSync(path).filter((name) => /^(licen[cs]e|notice|copying)/i.test(name));
  if (files.length === 0 && license === undefined) throw new Error(`cannot find the licence of ${path}`);
  const texts = files.map((name) => readFileSync(join(path, name), 'utf8').trim());
  return `${'='.repeat(80)}\n${nameOf(path)} ${version} (${license})\n\n${texts.join('\n\n')}\n`;
}

function bill(paths) {
  const component = { type: 'application', 'bom-ref': root.name, name: root.name, version: root.version };
  return {
    $schema: 'http://cyclonedx.org/schema/bom-1.5.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    version: 1,
    metadata: { component: { ...component, purl: purl(root.name, root.version), licenses: licences(root.license) } },
    components: paths.map((path) => {
      const { version, license, integrity } = packages[path];
      const name = nameOf(path);
      const hashes = integrity === undefined ? [] : [hash(integrity)];
      return { type: 'library', 'bom-ref': path, name, version, purl: purl(name, version), licenses: licences(license), hashes };
    }),
  };
}

function licences(expression) {
  if (expression === undefined) return [];
  return [/[ (]/.test(expression) ? { expression } : { license: { id: expression } }];
}

function hash(integrity) {
  const [algorithm, digest] = integrity.split('-');
  return { alg: algorithm.replace('sha', 'SHA-'), content: Buffer.from(digest, 'base64').toString('hex') };
}
