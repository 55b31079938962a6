/**
 * Connects the real client to a test's service, with secrets that a test can change, certificates
 * from memory, and the real clock, which a test can advance.
 */
import { systemClock } from '../../src/time/clock.ts';
import type { Log } from '../../src/model/telemetry.ts';
import type { Clock } from '../../src/model/time.ts';
import type { Page, PageRequest } from '../../src/model/source.ts';
import { createSource } from '../../src/source/client.ts';
import type { ClientSettings, ServiceSource } from '../../src/source/client.ts';
import { Budget } from '../../src/source/limits.ts';
import { remember } from '../../src/errors/secrets.ts';
import type { Pem, Secret } from '../../src/connect/trust.ts';

interface SecretInHand extends Secret {
  /** The content of the file; `read` returns it only after `refresh`, as for a file read once. */
  stored: string;
}

export function secretOf(value: string): SecretInHand {
  let held = value;
  return {
    stored: value,
    read() {
      remember(this, held);
      return held;
    },
    refresh() {
      held = this.stored;
    },
    describe: () => 'a secret of the test',
  };
}

export function pemOf(...texts: string[]): Pem & { texts: string[] } {
  return {
    texts,
    read() {
      return this.texts;
    },
    describe: () => 'a file of the test',
  };
}

/** The real clock plus the time that a test advanced it by. */
export class MovableClock implements Clock {
  readonly sleep = systemClock.sleep.bind(systemClock);
  #aheadMs = 0;

  now(): number {
    return systemClock.now() + this.#aheadMs;
  }

  monotonic(): number {
    return systemClock.monotonic() + this.#aheadMs;
  }

  advance(ms: number): void {
    this.#aheadMs += ms;
  }
}

export interface UnderTest {
  readonly source: ServiceSource;
  readonly clientSecret: SecretInHand;
  readonly subscriptionKey: SecretInHand;
  /** `outcome` of each request, as the metric counts it. */
  readonly outcomes: string[];
  readonly page: (request?: Partial<PageRequest>, signal?: AbortSignal) => Promise<Page>;
}

export interface Wish extends Omit<Partial<ClientSettings>, 'auth'> {
  readonly auth?: Partial<ClientSettings['auth']>;
  readonly sharedCa?: Pem;
  readonly clock?: Clock;
  readonly log?: Log;
  /** Opens the source; default: alone. */
  readonly create?: typeof createSource;
  /** `host:port` of the URLs. */
  readonly at: string;
}

export function sourceUnderTest({ auth, sharedCa, at, clock = systemClock, log, create = createSource, ...wish }: Wish): UnderTest {
  const clientSecret = secretOf('secret-1');
  const subscriptionKey = secretOf('key-1');
  const outcomes: string[] = [];
  const settings: ClientSettings = {
    id: 'production',
    baseUrl: `https://${at}/v2/api`,
    endpoint: 'full-payload',
    auth: {
      authUrl: `https://${at}`,
      tenantId: 'tenant-1',
      clientId: 'client-1',
      clientSecret,
      scopeAddress: 'scope-1',
      grantType: 'client_credentials',
      ...auth,
    },
    subscriptionKey,
    requests: { timeout: 5_000 },
    ...wish,
  };
  const source = create(settings, {
    clock,
    budget: new Budget(clock, 1000),
    meters: { sourceRequest: (_source, outcome) => void outcomes.push(outcome) },
    ca: sharedCa,
    ...(log && { log }),
  });
  return {
    source,
    clientSecret,
    subscriptionKey,
    outcomes,
    page: (request = {}, signal = new AbortController().signal) => source.page({ query: {}, page: 1, pageSize: 100, ...request }, signal),
  };
}

export async function errorOf(call: Promise<unknown>): Promise<Error & { readonly code?: string; readonly retryAfterMs?: number }> {
  return call.then(
    (value) => {
      throw new Error(`expected an error, got ${JSON.stringify(value)}`);
    },
    (thrown: unknown) => thrown as Error & { readonly code?: string; readonly retryAfterMs?: number },
  );
}
