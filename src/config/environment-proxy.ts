/** The proxy of the environment, for connections without a configured proxy. */
import type { ProxySettings } from '../connect/settings.ts';
import { type Environment, variable } from '../settings/reference.ts';
import { Secret } from '../settings/secret.ts';
import { proxyUrl } from '../settings/values.ts';

/** In order of precedence: lower case wins, as in curl. */
const names = ['https_proxy', 'HTTPS_PROXY'];

/** @returns undefined if the environment names no proxy. `environmentProxyProblem` checks the value */
export function environmentProxy(environment: Environment): ProxySettings | undefined {
  const name = names.find((each) => environment[each]);
  if (name === undefined) return undefined;
  const url = new Secret('');
  url.bind(name, variable(name, environment));
  const direct = environment['no_proxy'] ?? environment['NO_PROXY'] ?? '';
  return { url, noProxy: direct.split(/[\s,]+/).filter((each) => each !== '') };
}

/** Describes an unusable proxy of the environment, without its value, which may contain a password. */
export function environmentProxyProblem(environment: Environment): string | undefined {
  const name = names.find((each) => environment[each]);
  if (name === undefined || proxyUrl().safeParse(environment[name]).success) return undefined;
  return `${name}: its value (not shown) is not the address of a proxy such as http://proxy.example:3128`;
}
