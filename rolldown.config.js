/**
 * Builds the program into `dist`: its own modules, with the parts of the development dependencies that they use, in one file for each part
 * that is loaded separately. Smaller than the modules it joins: the daemon needs less memory and starts faster. Names and lines stay, so
 * that a stack trace can be read. The `dependencies` of package.json are not joined; npm installs them with the package.
 */
import { cpSync, readFileSync, rmSync } from 'node:fs';
import { defineConfig } from 'rolldown';
import { billOfMaterials } from './deploy/sbom.js';

const { dependencies } = JSON.parse(readFileSync('package.json', 'utf8'));
const programs = ['main', 'daemon/admin/thread', 'daemon/admin/report-thread', 'reference/main'];
/** Files that the code reads (src/disk/files.ts). */
const assets = ['journal/migrations', 'admin/page/static'];

rmSync('dist', { recursive: true, force: true });

export default defineConfig({
  input: Object.fromEntries(programs.map((name) => [name, `src/${name}.ts`])),
  platform: 'node',
  external: Object.keys(dependencies).map((name) => new RegExp(`^${name}(/|$)`)),
  output: {
    dir: 'dist',
    entryFileNames: '[name].js',
    // As deep as src/disk/files.ts, which finds other files from where it is.
    chunkFileNames: 'shared/[name]-[hash].js',
    // One character beyond ASCII makes V8 store the whole file with two bytes a character.
    charset: 'ascii',
    comments: false,
  },
  plugins: [
    billOfMaterials(),
    { name: 'assets', writeBundle: () => assets.forEach((path) => cpSync(`src/${path}`, `dist/${path}`, { recursive: true })) },
  ],
});
