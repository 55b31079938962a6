/** `npm run content`: writes the forms of content/rules for the products that run them. */
import { writeFileSync } from 'node:fs';
import { kibanaFiles } from './kibana.ts';
import { rules } from './rules.ts';

for (const [path, text] of Object.entries(kibanaFiles(rules)))
  writeFileSync(new URL(`../../content/kibana/${path}`, import.meta.url), text);
