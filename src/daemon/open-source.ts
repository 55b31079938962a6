/** Opens the client of a source, for the daemon and for commands that read the service. */
import type { Config, SourceConfig } from '../config/load.ts';
import { isSame } from '../settings/same.ts';
import { createSource, createTokens, type ClientContext, type ServiceSource } from '../source/client.ts';
import { Budget } from '../source/limits.ts';
import type { TokenStore } from '../source/token.ts';
import { unmetered } from '../telemetry/discard.ts';

/**
 * @param context  `budget`: default a separate one at the configured rate; `meters`: default none
 * @param create  replaced by the simulation
 */
export function openSource(
  settings: SourceConfig,
  { tls: { ca } }: Pick<Config, 'tls'>,
  context: Pick<ClientContext, 'clock' | 'log'> & Partial<Pick<ClientContext, 'budget' | 'meters' | 'tracer'>>,
  create: typeof createSource = createSource,
): ServiceSource {
  const { clock, log, tracer, meters = unmetered, budget = new Budget(clock, settings.requests.perSecond) } = context;
  return create(settings, { clock, budget, meters, ca, log, tracer });
}

/** Creates the sources of one daemon: those with the same login share its token, as a new token may end the one before. */
export function sharingTokens(): typeof createSource {
  let logins: readonly { readonly login: unknown; readonly tokens: TokenStore }[] = [];
  return (settings, context) => {
    const { auth, tls, proxy } = settings;
    const login = { ...auth, tls: auth.tls ?? tls, proxy, ca: context.ca };
    logins = logins.filter(({ tokens }) => tokens.sharers.size > 0);
    const known = /* mutant: shared-token */ logins.find((each) => isSame(each.login, login));
    const tokens = known?.tokens ?? createTokens(settings, context);
    if (!known) logins = [...logins, { login, tokens }];
    return createSource(settings, context, tokens);
  };
}
