/** `npm run content`: writes the forms of content/rules for the products that run them. */
import { writeFileSync } from 'node:fs';
import { kibanaFiles } from './kibana.ts';
import { rules } from './rules.ts';
import { splunkFiles } from './splunk.ts';

const content = new URL('../../content/', import.meta.url);
for (const [folder, files] of [['kibana', kibanaFiles(rules)], ['splunk/waybill_dpas', splunkFiles(rules)]] as const)
  for (const [path, text] of Object.entries(files)) writeFileSync(new URL(`${folder}/${path}`, content), text); // prettier-ignore
