/**
 * The definition of an endpoint: method, path, permissions (a caller needs one of them), the
 * schemas of query, body and responses, and its function. One schema serves both validation and the
 * OpenAPI document.
 */
import { z } from 'zod';
import type { User } from '../people/users.ts';
import type { Permission } from '../people/roles.ts';
import type { Decoded } from './base64.ts';
import { badField, badParameter, Problem } from './problem.ts';
import type { Answer } from './faults.ts';

export interface Call<Query, Body> {
  readonly caller: User;
  /** The values of the named segments of the path. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: Query;
  readonly body: Body;
  /** The decoded files of the body. */
  readonly files: Decoded;
  /** The IP address of the client. */
  readonly peer: string;
}

/** Parses a query. @throws Problem 400 that names the invalid parameter */
interface QueryReader<Query> {
  readonly schema: z.ZodObject | undefined;
  read(text: string): Query;
}

interface EndpointOptions<Query, Body> {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Below `{base_url}`, with names in braces: `/payloads/{payloadId}`. */
  readonly path: string;
  readonly alias?: string;
  readonly summary: string;
  readonly permissions: readonly Permission[];
  readonly query?: QueryReader<Query>;
  readonly body?: z.ZodType<Body>;
  readonly carriesFile?: boolean;
  /** The schema of the response for each status of success. */
  readonly answers: Readonly<Record<number, z.ZodType>>;
  /** Error statuses in addition to the statuses of every endpoint. */
  readonly refusals?: readonly number[];
  answer(call: Call<Query, Body>): Answer;
}

/** An endpoint without the types of its query and body. */
export type Endpoint = EndpointOptions<unknown, unknown>;

export function endpoint<Query = undefined, Body = undefined>(options: EndpointOptions<Query, Body>): Endpoint {
  // The schemas of the endpoint parse query and body, so their types fit its function.
  return options;
}

/** The names and values of a query. @throws Problem 400 if it is not percent-encoded UTF-8 */
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

export const noQuery: QueryReader<undefined> = {
  schema: undefined,
  read(text) {
    for (const [name] of parametersOf(text)) throw badParameter(name, 'is unknown; this endpoint has no parameters');
    return undefined;
  },
};

/** Collects the parameters, each at most once, into an object for the schema. */
export function queryOf<Shape extends z.ZodRawShape>(schema: z.ZodObject<Shape>): QueryReader<z.infer<z.ZodObject<Shape>>> {
  const names = Object.keys(schema.shape);
  return {
    schema,
    read(text) {
      const given: Record<string, string> = {};
      for (const [name, value] of parametersOf(text)) {
        if (!names.includes(name)) throw badParameter(name, `is unknown; the parameters are ${names.join(', ')}`);
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

/** @throws Problem 400 that names the first invalid field */
export async function bodyOf<Body>(schema: z.ZodType<Body>, given: unknown): Promise<Body> {
  const read = await schema.safeParseAsync(given);
  if (read.success) return read.data;
  const issue = read.error.issues[0];
  const path = [...(issue?.path ?? []), ...(issue?.code === 'unrecognized_keys' ? issue.keys.slice(0, 1) : [])].join('.');
  if (path === '') throw new Problem(400, `The body does not fit: ${issue?.message ?? ''}`);
  throw badField(path, `does not fit: ${issue?.message ?? ''}`);
}

/** A JSON response whose last field, `base64FileData`, is the content, encoded while it is sent. */
export function jsonWithFile(status: number, value: object, content: Buffer): Answer {
  const before = Buffer.from(`${JSON.stringify(value).slice(0, -1)},"base64FileData":"`);
  const headers = { 'content-type': 'application/json; charset=utf-8' };
  return { status, headers, body: { before, content, after: Buffer.from('"}') } };
}

export function json(status: number, value: unknown): Answer {
  return { status, headers: { 'content-type': 'application/json; charset=utf-8' }, body: Buffer.from(JSON.stringify(value)) };
}
