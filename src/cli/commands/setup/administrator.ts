/** The credentials of an administrator for `waybill setup`, from the environment: the user of a sink only writes. */
import { Secret } from '../../../settings/secret.ts';
import type { ElasticsearchSettings } from '../../../sink/elasticsearch/settings.ts';

/** The settings of the sink with the administrator's credentials; undefined if the environment has none. */
export function administratorOf(settings: ElasticsearchSettings, env: NodeJS.ProcessEnv): ElasticsearchSettings | undefined {
  const { WAYBILL_SETUP_API_KEY: key, WAYBILL_SETUP_USERNAME: user, WAYBILL_SETUP_PASSWORD: password } = env;
  const named = (name: string, value: string): Secret => {
    const secret = new Secret(value);
    secret.bind(name, undefined);
    return secret;
  };
  const nobody = { apiKey: undefined, username: undefined, password: undefined };
  if (key) return { ...settings, ...nobody, apiKey: named('WAYBILL_SETUP_API_KEY', key) };
  if (user) return { ...settings, ...nobody, username: user, password: named('WAYBILL_SETUP_PASSWORD', password ?? '') };
  return undefined;
}
