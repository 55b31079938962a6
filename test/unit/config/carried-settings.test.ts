/** Settings passed to another thread: that thread reads secrets and PEM files when it uses them. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { carriedSettings, revivedSettings } from '../../../src/settings/carried.ts';
import { PemFiles } from '../../../src/settings/pem.ts';
import { file, parseTemplate, variable } from '../../../src/settings/reference.ts';
import type { Template } from '../../../src/settings/reference.ts';
import { Secret } from '../../../src/settings/secret.ts';
import { temporary } from '../../support/model-journal.ts';

const environment = { NAME: 'of the variable' };

function secret(template: Template | string): Secret {
  const made = new Secret(typeof template === 'string' ? template : template.read());
  made.bind('sinks.siem.token', typeof template === 'string' ? undefined : template);
  return made;
}

/** The settings as they arrive in the other thread. */
function crossed<Settings>(settings: Settings): Settings {
  return revivedSettings(structuredClone(carriedSettings(settings)), environment) as Settings;
}

test('a secret is read in the other thread, also after its file changed', () => {
  const path = join(temporary(), 'a}b');
  writeFileSync(path, 'f1rst\n');
  const { token } = crossed({ token: secret(file(path)) });
  expect(token.read()).toBe('f1rst');
  writeFileSync(path, 'second, and longer\n');
  expect(token.read()).toBe('second, and longer');
  expect(token.describe()).toBe(`sinks.siem.token (file ${path})`);
});

test('text around references, escaped references, defaults and literal secrets cross', () => {
  const written = parseTemplate('$${x} ${env:NAME} and ${env:ABSENT:-more}', environment);
  expect(crossed({ nested: [secret(written)] }).nested[0]?.read()).toBe('${x} of the variable and more');
  expect(crossed(secret(variable('ABSENT:-a}b', environment))).read()).toBe('a}b');
  expect(crossed(secret('l1teral')).read()).toBe('l1teral');
});

test('no value behind a reference is passed', () => {
  expect(JSON.stringify(carriedSettings({ token: secret(variable('NAME', environment)) }))).not.toContain('of the variable');
});

test('PEM files are passed as paths; maps and plain data unchanged; another class is refused', () => {
  const pem = new PemFiles(['/a.pem', '/b.pem']);
  pem.bind('tls.ca');
  const { ca, map, plain } = crossed({ ca: pem, map: new Map([['a', { b: undefined }]]), plain: [1, null, 'x'] });
  expect(ca.describe()).toBe('tls.ca (/a.pem, /b.pem)');
  expect(map).toEqual(new Map([['a', { b: undefined }]]));
  expect(plain).toEqual([1, null, 'x']);
  expect(() => carriedSettings({ when: new Date() })).toThrow('the class Date');
});
