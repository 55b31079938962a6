/**
 * The OpenAPI 3.1 document of the API, generated from the endpoints and the schemas that validate
 * requests. It is the same for every run: the address of the server is relative to the address of the
 * document.
 */
import { z } from 'zod';
import { noQuery, type Endpoint } from './endpoint.ts';
import { problem } from './shapes.ts';

type Json = Record<string, unknown>;

const info = {
  title: 'Reference service',
  version: '2.0.0',
  description:
    'Protects and opens files, authorizes users to open them, and serves the audit log of it. docs/reference-service.md says what was chosen.',
  license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
};
const securitySchemes = {
  bearer: {
    type: 'http',
    scheme: 'bearer',
    description: 'An access token of the identity provider: OAuth 2.0, client_credentials or password',
  },
  subscriptionKey: { type: 'apiKey', in: 'header', name: 'Ocp-Apim-Subscription-Key' },
};
const refused: Readonly<Record<number, string>> = {
  400: 'A parameter, a header or a field does not fit',
  401: 'The subscription key or the token is missing or invalid',
  403: 'Permission is missing, or a policy denies access for the reason that is named',
  404: 'The path or the body names something that does not exist',
  408: 'The body did not arrive in time',
  409: 'A rule of the organization forbids it',
  413: 'The body or the file is too large',
  415: 'The body is of another media type or encoding',
  429: 'The rate limit is exceeded',
};

/** @param root  the path at which the endpoints begin */
export function openApiOf(endpoints: readonly Endpoint[], root: string): Json {
  const schemas: Json = {};
  const paths: Record<string, Json> = {};
  for (const endpoint of endpoints) {
    for (const path of [endpoint.path, ...(endpoint.alias === undefined ? [] : [endpoint.alias])]) {
      (paths[path] ??= {})[endpoint.method.toLowerCase()] = operationOf(endpoint, path, schemas);
    }
  }
  return {
    openapi: '3.1.1',
    info,
    servers: [{ url: root }],
    security: [{ bearer: [], subscriptionKey: [] }],
    paths,
    components: {
      responses: Object.fromEntries(
        Object.entries(refused).map(([status, meaning]) => [status, responseOf(meaning, 'application/problem+json', problem, schemas)]),
      ),
      schemas: Object.fromEntries(Object.entries(schemas).sort(([one], [other]) => (one < other ? -1 : 1))),
      securitySchemes,
    },
  };
}

function operationOf(endpoint: Endpoint, path: string, schemas: Json): Json {
  const { method, summary, permissions, body, answers } = endpoint;
  const refusals = [400, 401, 403, 429, ...(body ? [408, 413, 415] : []), ...(endpoint.refusals ?? [])].sort((one, other) => one - other);
  return {
    operationId: operationIdOf(method, path),
    tags: [tagOf(endpoint)],
    summary,
    description: `Requires the permission ${permissions.join(' or ')}.`,
    parameters: parametersOf(endpoint, path, schemas),
    ...(body && { requestBody: { required: true, content: { 'application/json': { schema: schemaOf(body, 'input', schemas) } } } }),
    responses: Object.fromEntries([
      ...Object.entries(answers).map(([status, schema]) => [status, responseOf('Done', 'application/json', schema, schemas)]),
      ...refusals.map((status) => [status, { $ref: `#/components/responses/${status}` }]),
    ]),
  };
}

function parametersOf({ method, query }: Endpoint, path: string, schemas: Json): Json[] {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string', minLength: 1 },
  }));
  const callerId = {
    name: 'x-api-caller-id',
    in: 'header',
    required: true,
    description: 'User id of the person or service making the request',
    schema: { type: 'string', minLength: 1 },
  };
  const inQuery = Object.entries((query ?? noQuery).schema?.shape ?? {}).map(([name, schema]) => {
    return { name, in: 'query', required: false, schema: schemaOf(schema as z.ZodType, 'input', schemas) };
  });
  return [...inPath, ...(method === 'GET' ? [] : [callerId]), ...inQuery];
}

function responseOf(description: string, media: string, schema: z.ZodType, schemas: Json): Json {
  return { description, content: { [media]: { schema: schemaOf(schema, 'output', schemas) } } };
}

/** The schema; a schema with an id becomes a component that is referenced. */
function schemaOf(schema: z.ZodType, io: 'input' | 'output', schemas: Json): unknown {
  const made = z.toJSONSchema(schema, { io, override: describe }) as Json;
  delete made['$schema'];
  const { $defs: named = {}, ...own } = rooted(made) as { $defs?: Json };
  const id = (own as { id?: string }).id;
  const found: Json = id === undefined ? named : { ...named, [id]: own };
  for (const [name, given] of Object.entries(found)) {
    const component: Json = { ...(given as Json) };
    delete component['id'];
    if (name in schemas && JSON.stringify(schemas[name]) !== JSON.stringify(component)) throw new Error(`two schemas are called ${name}`);
    schemas[name] = component;
  }
  return id === undefined ? own : { $ref: `#/components/schemas/${id}` };
}

/**
 * Prefers the description of the wire format, and omits the integer bounds of JavaScript. A default
 * becomes text in the description, because client generators treat a field with the keyword
 * `default` as always present.
 */
function describe({ jsonSchema }: { jsonSchema: Json }): void {
  if ('default' in jsonSchema) {
    jsonSchema['description'] = `${JSON.stringify(jsonSchema['default'])} by default`;
    delete jsonSchema['default'];
  }
  const { described, minimum, maximum } = jsonSchema;
  if (minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema['minimum'];
  if (maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema['maximum'];
  if (described === undefined) return;
  for (const name of Object.keys(jsonSchema)) Reflect.deleteProperty(jsonSchema, name);
  Object.assign(jsonSchema, described);
}

function rooted(schema: Json): unknown {
  return JSON.parse(JSON.stringify(schema).replaceAll('"#/$defs/', '"#/components/schemas/'));
}

/** The tag of the path: payloads, policies, users, groups or logs. */
function tagOf({ path }: Endpoint): string {
  return path.includes('/policies/') ? 'policies' : (path.split('/')[1] ?? '');
}

/** `postPayloadsProtectRemote`: the method and the words of the path. */
function operationIdOf(method: string, path: string): string {
  const words = path.endsWith('/') ? [...path.split(/[^A-Za-z]+/), 'slash'] : path.split(/[^A-Za-z]+/);
  return method.toLowerCase() + words.map((word) => word.slice(0, 1).toUpperCase() + word.slice(1)).join('');
}
