/**
 * What an endpoint is: method and path, the permissions of which a caller needs one, the shapes of query, body and answers, and what it does.
 * One schema both refuses what does not fit and describes what fits.
 */
import { z } from 'zod';
import type { User } from '../people/users.ts';
import type { Permission } from '../people/roles.ts';
import type { Decoded } from './base64.ts';
import { badField, badParameter, Problem } from './problem.ts';
import type { Answer } from './faults.ts';

/** One request, when everything about it has been found to fit. */
export interface Call<Query, Body> {
  readonly caller: User;
  /** What stands in the places of the path that have names. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: Query;
  readonly body: Body;
  /** Files of the body that are decoded already. */
  readonly files: Decoded;
  /** The IP address from which the request came. */
  readonly peer: string;
}

/** Reads a query text, and throws a Problem 400 that names the parameter which does not fit. */
interface QueryReader<Query> {
  readonly schema: z.ZodObject | undefined;
  read(text: string): Query;
}

interface EndpointOptions<Query, Body> {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Below `{base_url}`, with names in braces: `/payloads/{payloadId}`. */
  readonly path: string;
  /** Another way to write the path. */
  readonly alias?: string;
  readonly summary: string;
  readonly permissions: readonly Permission[];
  readonly query?: QueryReader<Query>;
  readonly body?: z.ZodType<Body>;
  /** Whether the body carries a file. */
  readonly carriesFile?: boolean;
  /** The shape of the answer for each status of success. */
  readonly answers: Readonly<Record<number, z.ZodType>>;
  /** Statuses of refusals of its own, besides those that every endpoint has. */
  readonly refusals?: readonly number[];
  answer(call: Call<Query, Body>): Answer;
}

/** An endpoint of which it does not matter any more what its query and body are. */
export type Endpoint = EndpointOptions<unknown, unknown>;

export function endpoint<Query = undefined, Body = undefined>(options: EndpointOptions<Query, Body>): Endpoint {
  // Query and body are read by the endpoint's own schemas, so that what they give is what its answer takes.
  return options;
}

/** Names and values of a query text. @throws Problem 400 where it is not percent-encoded UTF-8 */
function parametersOf(text: string): [name: string, value: string][] {
  const parts = text.split('&').filter((part) => part !== '');
  return parts.map((part) => {
    const [name = '', ...values] = part.split('=');
    const decoded = (encoded: string): string => decodeURIComponent(encoded.replaceAll('+', ' '));
    try {
      return [decoded(name), decoded(values.join('='))];
    } catch (error) {
      throw badParameter(name, 'is not percent-encoded UTF-8', error);
    }
  });
}

/** For endpoints that take no query. */
export const noQuery: QueryReader<undefined> = {
  schema: undefined,
  read(text) {
    for (const [name] of parametersOf(text)) throw badParameter(name, 'is not known; there are none here');
    return undefined;
  },
};

/** Parameters of which each is given once at most, in an object for the schema. */
export function queryOf<Shape extends z.ZodRawShape>(schema: z.ZodObject<Shape>): QueryReader<z.infer<z.ZodObject<Shape>>> {
  const names = Object.keys(schema.shape);
  return {
    schema,
    read(text) {
      const given: Record<string, string> = {};
      for (const [name, value] of parametersOf(text)) {
        if (!names.includes(name)) throw badParameter(name, `is not known; the parameters are ${names.join(', ')}`);
        if (name in given) throw badParameter(name, 'is given more than once');
        given[name] = value;
      }
      const read = schema.safeParse(given);
      if (read.success) return read.data;
      const issue = read.error.issues[0];
      throw badParameter(String(issue?.path[0]), `does not fit: ${issue?.message ?? ''}`);
    },
  };
}

/** @throws Problem 400 that names the first field that does not fit */
export async function bodyOf<Body>(schema: z.ZodType<Body>, given: unknown): Promise<Body> {
  const read = await schema.safeParseAsync(given);
  if (read.success) return read.data;
  const issue = read.error.issues[0];
  const path = [...(issue?.path ?? []), ...(issue?.code === 'unrecognized_keys' ? issue.keys.slice(0, 1) : [])].join('.');
  if (path === '') throw new Problem(400, `The body does not fit: ${issue?.message ?? ''}`);
  throw badField(path, `does not fit: ${issue?.message ?? ''}`);
}

/** Answers with JSON whose last field is the content as Base64, which is encoded while it is sent. */
export function jsonWithFile(status: number, value: object, field: string, content: Buffer): Answer {
  const before = Buffer.from(`${JSON.stringify(value).slice(0, -1)},${JSON.stringify(field)}:"`);
  const headers = { 'content-type': 'application/json; charset=utf-8' };
  return { status, headers, body: { before, content, behind: Buffer.from('"}') } };
}

/** Answers with JSON. */
export function json(status: number, value: unknown): Answer {
  return { status, headers: { 'content-type': 'application/json; charset=utf-8' }, body: Buffer.from(JSON.stringify(value)) };
}
