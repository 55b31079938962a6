/**
 * An OTLP/HTTP receiver with its own reader of the protobuf wire format. Field numbers follow
 * opentelemetry-proto 1.x (trace.proto, metrics.proto, common.proto, resource.proto).
 */
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';

export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** '' for a root span. */
  readonly parent: string;
  readonly name: string;
  readonly kind: number;
  /** ns since 1970 */
  readonly start: bigint;
  readonly end: bigint;
  /** 2: error */
  readonly status: number;
  readonly attributes: Attributes;
}

interface ReceivedMetric {
  readonly name: string;
  readonly unit: string;
  readonly type: 'gauge' | 'counter' | 'histogram';
  readonly points: number;
}

type Attributes = Readonly<Record<string, string | number | boolean>>;
/** Field number and value: a number for varint and fixed types, else the bytes. */
type Fields = readonly (readonly [number, bigint | Buffer])[];

export class OtlpReceiver implements AsyncDisposable {
  readonly spans: ReceivedSpan[] = [];
  readonly metrics: ReceivedMetric[] = [];
  readonly resources: Attributes[] = [];
  readonly headers: NodeJS.Dict<string | string[]>[] = [];
  /** The bodies, for searches. */
  readonly bodies: Buffer[] = [];
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const sent = Buffer.concat(chunks);
        const body = request.headers['content-encoding'] === 'gzip' ? gunzipSync(sent) : sent;
        this.headers.push(request.headers);
        this.bodies.push(body);
        if (request.url === '/v1/traces') this.#traces(body);
        else if (request.url === '/v1/metrics') this.#metrics(body);
        else response.statusCode = 404;
        response.setHeader('content-type', 'application/x-protobuf').end();
      });
    });
  }

  static async start(): Promise<OtlpReceiver> {
    const receiver = new OtlpReceiver();
    await new Promise<void>((resolve) => receiver.#server.listen(0, '127.0.0.1', resolve));
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #traces(body: Buffer): void {
    for (const resourceSpans of messages(fields(body), 1)) {
      this.#resource(resourceSpans);
      for (const scope of messages(resourceSpans, 2)) for (const span of messages(scope, 2)) this.spans.push(spanOf(span));
    }
  }

  #metrics(body: Buffer): void {
    for (const resourceMetrics of messages(fields(body), 1)) {
      this.#resource(resourceMetrics);
      for (const scope of messages(resourceMetrics, 2)) for (const metric of messages(scope, 2)) this.metrics.push(metricOf(metric));
    }
  }

  #resource(part: Fields): void {
    for (const resource of messages(part, 1)) this.resources.push(attributesOf(resource, 1));
  }
}

function spanOf(span: Fields): ReceivedSpan {
  const status = messages(span, 15)[0] ?? [];
  return {
    ...{ traceId: bytes(span, 1).toString('hex'), spanId: bytes(span, 2).toString('hex'), parent: bytes(span, 4).toString('hex') },
    ...{ name: bytes(span, 5).toString(), kind: Number(integer(span, 6)), start: integer(span, 7), end: integer(span, 8) },
    ...{ status: Number(integer(status, 3)), attributes: attributesOf(span, 9) },
  };
}

function metricOf(metric: Fields): ReceivedMetric {
  const [gauge, sum, histogram] = [5, 7, 9].map((number) => messages(metric, number)[0]);
  const type = gauge ? 'gauge' : histogram ? 'histogram' : sum && integer(sum, 3) === 1n ? 'counter' : undefined;
  if (type === undefined) throw new Error('a metric is neither a gauge, a monotonic sum nor a histogram');
  const points = messages(gauge ?? sum ?? histogram ?? [], 1).length;
  return { name: bytes(metric, 1).toString(), unit: bytes(metric, 3).toString(), type, points };
}

/** KeyValue: key 1, value 2; AnyValue: string 1, bool 2, int 3, double 4. */
function attributesOf(part: Fields, number: number): Attributes {
  return Object.fromEntries(
    messages(part, number).map((pair): [string, string | number | boolean] => {
      const [value] = messages(pair, 2)[0] ?? [];
      if (!value) throw new Error('an attribute without a value');
      const [kind, raw] = value;
      if (Buffer.isBuffer(raw)) return [bytes(pair, 1).toString(), raw.toString()];
      if (kind === 4) return [bytes(pair, 1).toString(), doubleOf(raw)];
      return [bytes(pair, 1).toString(), kind === 2 ? raw === 1n : Number(raw)];
    }),
  );
}

function doubleOf(bits: bigint): number {
  const buffer = Buffer.alloc(8);
  buffer.writeBigUInt64LE(bits);
  return buffer.readDoubleLE();
}

function messages(part: Fields, number: number): Fields[] {
  return part.flatMap(([found, value]) => (found === number && Buffer.isBuffer(value) ? [fields(value)] : []));
}

function bytes(part: Fields, number: number): Buffer {
  const value = part.find(([found]) => found === number)?.[1];
  return Buffer.isBuffer(value) ? value : Buffer.alloc(0);
}

function integer(part: Fields, number: number): bigint {
  const value = part.find(([found]) => found === number)?.[1];
  return typeof value === 'bigint' ? value : 0n;
}

/** Protobuf wire types: 0 varint, 1 fixed64, 2 length-delimited, 5 fixed32. */
function fields(message: Buffer): Fields {
  const found: [number, bigint | Buffer][] = [];
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message.readUInt8(at);
      at += 1;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < message.length) {
    const tag = Number(varint());
    const wire = tag & 7;
    let value: bigint | Buffer;
    if (wire === 0) value = varint();
    else if (wire === 1 || wire === 5) {
      value = wire === 1 ? message.readBigUInt64LE(at) : BigInt(message.readUInt32LE(at));
      at += wire === 1 ? 8 : 4;
    } else if (wire === 2) {
      const length = Number(varint());
      value = message.subarray(at, at + length);
      at += length;
    } else throw new Error(`unknown wire type ${wire} of field ${tag >> 3}`);
    found.push([tag >> 3, value]);
  }
  return found;
}
