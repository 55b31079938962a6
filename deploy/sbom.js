#!/usr/bin/env node
/**
 * Writes the software bill of materials (CycloneDX 1.5) of the production dependencies, as package-lock.json records them: `sbom.js FILE`.
 * `npm sbom --omit=dev` of npm 11 leaves out every package that a development dependency needs too, zod and yaml among them.
 */
import { readFileSync, writeFileSync } from 'node:fs';

const [file = 'dist/sbom.cdx.json'] = process.argv.slice(2);
const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8'));
const { '': root, ...others } = packages;

const purl = (name, version) => `pkg:npm/${name.replace('@', '%40')}@${version}`;
const licences = (expression) =>
  expression === undefined ? [] : [/[ (]/.test(expression) ? { expression } : { license: { id: expression } }];
const hash = (integrity) => {
  const [algorithm, digest] = integrity.split('-');
  return { alg: algorithm.replace('sha', 'SHA-'), content: Buffer.from(digest, 'base64').toString('hex') };
};
const components = Object.entries(others)
  .filter(([, { dev }]) => dev !== true)
  .map(([path, { version, license, integrity }]) => {
    const name = path.replace(/^.*node_modules\//, '');
    return {
      type: 'library',
      'bom-ref': path,
      name,
      version,
      purl: purl(name, version),
      licenses: licences(license),
      hashes: integrity === undefined ? [] : [hash(integrity)],
    };
  });
const component = {
  type: 'application',
  'bom-ref': root.name,
  name: root.name,
  version: root.version,
  purl: purl(root.name, root.version),
};
const sbom = {
  $schema: 'http://cyclonedx.org/schema/bom-1.5.schema.json',
  bomFormat: 'CycloneDX',
  specVersion: '1.5',
  version: 1,
  metadata: { component: { ...component, licenses: licences(root.license) } },
  components,
};
writeFileSync(file, `${JSON.stringify(sbom, null, 2)}\n`);
