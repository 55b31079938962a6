/** The encodings in which tests hide secrets, read by Python's decoders. */
import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { canaries } from '../../support/canary.ts';
import { decodedByPython, encodings } from '../../support/encodings.ts';

const hasPython = spawnSync('python3', ['--version']).status === 0;
/** Characters that encodings escape. */
const signs = `p w+"1\\/2'3<&>%41;{ä}=?%7B&amp;\\u0041+%2B`;

test('Python decodes each encoding to the secret', ({ skip }) => {
  skip(!hasPython, 'python3 is not installed');
  const all = [...Object.values(canaries), signs].flatMap((secret) =>
    encodings.map(({ name, encode }) => ({ name, secret, text: encode(secret) })),
  );
  for (const [i, decoded] of decodedByPython(all).entries()) if (decoded !== null) expect(decoded, all[i]?.name).toContain(all[i]?.secret);
});
