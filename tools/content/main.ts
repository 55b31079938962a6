/** `npm run content`: writes the forms of content/rules for the products that run them. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { contentFiles } from './files.ts';
import { rules } from './rules.ts';

const content = new URL('../../content/', import.meta.url);
// Each rule is a file here: those of a rule that is gone go too.
for (const folder of ['sigma/rules', 'sigma/correlations', 'sigma/ordered']) {
  rmSync(new URL(folder, content), { recursive: true, force: true });
  mkdirSync(new URL(folder, content));
}
for (const [path, text] of Object.entries(contentFiles(rules))) writeFileSync(new URL(path, content), text);
