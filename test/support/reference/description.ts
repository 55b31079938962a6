/**
 * Compares responses with the OpenAPI document of the service: status, media type and body must
 * match the operation.
 */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';

interface Response {
  $ref?: string;
  content?: Record<string, { schema: object }>;
}

interface Document {
  servers: { url: string }[];
  paths: Record<string, Record<string, { responses: Record<string, Response> }>>;
  components: { responses: Record<string, Response> };
}

/** A response with its JSON. */
export interface Told {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  json: Record<string, unknown>;
}

export class Description {
  readonly document: Document;
  readonly text: string;
  readonly #ajv: Ajv2020;
  readonly #validators = new Map<object, ValidateFunction>();

  constructor(text: string) {
    this.text = text;
    this.document = JSON.parse(text) as Document;
    // Formats only inform readers: patterns next to them define the values.
    this.#ajv = new Ajv2020({ strict: false, validateFormats: false });
    this.#ajv.addSchema(this.document, 'document');
  }

  /**
   * @throws if the document does not describe the response for the operation; an unknown operation
   * must be refused by 404 or 405
   */
  check(method: string, path: string, { status, headers, json }: Told): void {
    const [plain = ''] = path.split('?');
    const operation = this.#itemOf(plain)?.[method.toLowerCase()];
    const what = `${method} ${plain}: ${status}`;
    if (!operation) {
      if (status !== 404 && status !== 405) throw new Error(`${what} is not described`);
      return;
    }
    const given = operation.responses[status];
    const response = given?.$ref === undefined ? given : this.document.components.responses[given.$ref.split('/').at(-1) ?? ''];
    const media = String(headers['content-type']).split(';')[0] ?? '';
    const schema = response?.content?.[media]?.schema;
    if (!schema) throw new Error(`${what} of ${media} is not described`);
    const validate = this.#validator(schema);
    if (!validate(json)) throw new Error(`${what}: ${this.#ajv.errorsText(validate.errors)}: ${JSON.stringify(json).slice(0, 500)}`);
  }

  /** A literal path takes precedence over one with parameters. */
  #itemOf(path: string): Record<string, { responses: Record<string, Response> }> | undefined {
    const { paths } = this.document;
    const template = Object.keys(paths).find((each) => new RegExp(`^${each.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(path));
    return paths[path] ?? (template === undefined ? undefined : paths[template]);
  }

  #validator(schema: object): ValidateFunction {
    let validate = this.#validators.get(schema);
    if (!validate) {
      const text = JSON.stringify(schema).replaceAll('"#/components/', '"document#/components/');
      this.#validators.set(schema, (validate = this.#ajv.compile(JSON.parse(text) as object)));
    }
    return validate;
  }
}
