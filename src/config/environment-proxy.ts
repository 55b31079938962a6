/** The proxy that the environment names, for connections whose configuration names none. */
import type { ProxySettings } from '../connect/settings.ts';
import { type Environment, variable } from '../settings/reference.ts';
import { Secret } from '../settings/secret.ts';
import { proxyUrl } from '../settings/values.ts';

/** The variables by which a proxy is given; small letters count as well, and go first, as everywhere. */
const names = ['https_proxy', 'HTTPS_PROXY'];

/** @returns undefined when the environment names none. Its value is not checked here: see `environmentProxyProblem` */
export function environmentProxy(environment: Environment): ProxySettings | undefined {
  const name = names.find((each) => environment[each]);
  if (name === undefined) return undefined;
  const url = new Secret('');
  url.bind(name, variable(name, environment));
  const direct = environment['no_proxy'] ?? environment['NO_PROXY'] ?? '';
  return { url, noProxy: direct.split(/[\s,]+/).filter((each) => each !== '') };
}

/** What is wrong with the proxy of the environment, without its value, which may hold a password. */
export function environmentProxyProblem(environment: Environment): string | undefined {
  const name = names.find((each) => environment[each]);
  if (name === undefined || proxyUrl().safeParse(environment[name]).success) return undefined;
  return `${name}: its value (not shown) is not the address of a proxy such as http://proxy.example:3128`;
}
