/**
 * A time-stamping authority of OpenSSL: its certificates, tokens of any time (`openssl cms`), and a server that answers with
 * `openssl ts -reply`.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const hasOpenssl = spawnSync('openssl', ['version']).status === 0;
if (!hasOpenssl) console.warn('skipped: time stamps, because openssl is not installed');

const day = 86_400_000;

interface CertificateOptions {
  /** ms since 1970; default: a year around now. */
  readonly validFrom?: number;
  readonly validTo?: number;
  /** Default `critical,timeStamping`. */
  readonly usage?: string;
  /** Of the signing certificate; default `ec`, which OpenSSL generates in a tenth of the time of `rsa`. */
  readonly key?: 'rsa' | 'ec' | 'ed25519';
  /** Extensions of the root; a name constraint may use `dirName:elsewhere`. Default `basicConstraints=critical,CA:TRUE`. */
  readonly root?: string;
  /** The root issues the certificate of another authority, which issues the signing certificate. */
  readonly hasMiddle?: boolean;
}

const keyOptions = {
  rsa: ['-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:2048'],
  ec: ['-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256'],
  ed25519: ['-algorithm', 'ed25519'],
};

export class Authority implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'authority-'));

  /** A root, and a certificate for time stamps. */
  constructor(name = 'Example', options: CertificateOptions = {}) {
    const { validFrom = Date.now() - 180 * day, validTo = Date.now() + 180 * day, usage = 'critical,timeStamping', key = 'ec' } = options;
    const { root = 'basicConstraints=critical,CA:TRUE', hasMiddle = false } = options;
    mkdirSync(join(this.folder, 'new'));
    this.#write('index', '');
    this.#write('serial', '01\n');
    const authority = 'keyUsage=critical,keyCertSign\nsubjectKeyIdentifier=hash\n';
    this.#write(
      'ca.cnf',
      `[ca]\ndefault_ca=authority\n[authority]\ndatabase=index\nserial=serial\nnew_certs_dir=new\ndefault_md=sha256\npolicy=any\n` +
        `unique_subject=no\n[any]\norganizationName=optional\ncommonName=supplied\n[elsewhere]\nO=Elsewhere\n` +
        `[root]\n${root}\n${authority}[middle]\nbasicConstraints=critical,CA:TRUE\n${authority}[tsa]\nextendedKeyUsage=${usage}\n` +
        `keyUsage=critical,digitalSignature\nsubjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n[req]\ndistinguished_name=any\n`,
    );
    this.#write('tsa.serial', '01\n');
    this.#write(
      'tsa.cnf',
      `[tsa]\ndefault_tsa=one\n[one]\nserial=tsa.serial\nsigner_digest=sha256\ndefault_policy=1.2.3.4.1\nother_policies=1.2.3.4.2\n` +
        `digests=sha256\naccuracy=secs:1\nordering=no\ness_cert_id_chain=no\ness_cert_id_alg=sha256\n`,
    );
    const issue = (role: string, commonName: string, issuer: string | undefined, days = 0): void => {
      this.#run('genpkey', ...keyOptions[role === 'tsa' ? key : 'ec'], '-out', `${role}.key`);
      const subject = `/O=${name}/CN=${name} ${commonName}`;
      this.#run('req', '-config', 'ca.cnf', '-new', '-key', `${role}.key`, '-subj', subject, '-out', `${role}.csr`);
      const by = issuer === undefined ? ['-selfsign', '-keyfile', 'root.key'] : ['-cert', `${issuer}.pem`, '-keyfile', `${issuer}.key`];
      const period = ['-startdate', utc(validFrom - days * day), '-enddate', utc(validTo + days * day)];
      const files = ['-in', `${role}.csr`, '-out', `${role}.pem`];
      this.#run('ca', '-batch', '-config', 'ca.cnf', ...by, '-extensions', role, ...period, ...files, '-notext');
    };
    issue('root', 'Root', undefined, 3650);
    if (hasMiddle) issue('middle', 'Middle', 'root', 3650);
    issue('tsa', 'Stamps', hasMiddle ? 'middle' : 'root');
    this.#write(
      'chain.pem',
      (hasMiddle ? ['middle', 'root'] : ['root']).map((role) => readFileSync(join(this.folder, `${role}.pem`), 'utf8')).join(''),
    );
  }

  get rootPath(): string {
    return join(this.folder, 'root.pem');
  }

  get root(): string {
    return readFileSync(this.rootPath, 'utf8');
  }

  /** The response of `openssl ts -reply` to a TimeStampReq, with the present time. */
  reply(query: Uint8Array): Buffer {
    const id = randomBytes(8).toString('hex');
    this.#write(`${id}.tsq`, query);
    const signer = ['-signer', 'tsa.pem', '-inkey', 'tsa.key', '-chain', 'chain.pem'];
    spawnSync('openssl', ['ts', '-reply', '-config', 'tsa.cnf', '-queryfile', `${id}.tsq`, ...signer, '-out', `${id}.tsr`], {
      cwd: this.folder,
    });
    return readFileSync(join(this.folder, `${id}.tsr`));
  }

  /**
   * A TimeStampResp over these bytes that was signed at this time, without a nonce.
   * @param status  text of its status, which no signature covers
   */
  responseAt(time: number, content: Uint8Array, status?: string): Buffer {
    const id = randomBytes(8).toString('hex');
    this.#write(`${id}.data`, content);
    const digest = execFileSync('openssl', ['dgst', '-sha256', '-binary', `${id}.data`], { cwd: this.folder });
    const algorithm = Buffer.from('300d06096086480165030402010500', 'hex');
    const imprint = der(0x30, algorithm, der(0x04, digest));
    const genTime = Buffer.from(new Date(time).toISOString().replace(/[-:T]|\.\d+/g, ''));
    const info = der(
      0x30,
      Buffer.from('020101', 'hex'),
      Buffer.from('06042a030401', 'hex'),
      imprint,
      Buffer.from('020101', 'hex'),
      der(0x18, genTime),
    );
    this.#write(`${id}.info`, info);
    const signer = ['-signer', 'tsa.pem', '-inkey', 'tsa.key', '-certfile', 'chain.pem'];
    const as = [
      '-outform',
      'DER',
      '-econtent_type',
      '1.2.840.113549.1.9.16.1.4',
      '-nodetach',
      '-binary',
      '-cades',
      '-md',
      'sha256',
      '-nosmimecap',
    ];
    this.#run('cms', '-sign', '-in', `${id}.info`, ...as, ...signer, '-out', `${id}.cms`);
    const granted = Buffer.from('020100', 'hex');
    const text = status === undefined ? [] : [der(0x30, der(0x0c, Buffer.from(status)))];
    return der(0x30, der(0x30, granted, ...text), readFileSync(join(this.folder, `${id}.cms`)));
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  #write(name: string, content: string | Uint8Array): void {
    writeFileSync(join(this.folder, name), content);
  }

  #run(...args: readonly string[]): void {
    execFileSync('openssl', args, { cwd: this.folder, stdio: 'pipe' });
  }
}

/** A server of an authority on a loopback address. */
export class AuthorityServer implements AsyncDisposable {
  readonly queries: Buffer[] = [];
  readonly requests: IncomingMessage[] = [];
  readonly #server;

  private constructor(answer: (query: Buffer, response: ServerResponse) => void) {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      this.requests.push(request);
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const query = Buffer.concat(chunks);
        this.queries.push(query);
        answer(query, response);
      });
    });
  }

  static async start(answer: (query: Buffer, response: ServerResponse) => void): Promise<AuthorityServer> {
    const started = new AuthorityServer(answer);
    await new Promise<void>((resolve) => started.#server.listen(0, '127.0.0.1', resolve));
    return started;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/tsa`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

export function sendReply(response: ServerResponse, bytes: Uint8Array): void {
  response.writeHead(200, { 'content-type': 'application/timestamp-reply' }).end(bytes);
}

/** `openssl ts -verify` of a stored response. */
export function verifyWithOpenssl(content: string, token: string, root: string): { readonly code: number | null; readonly text: string } {
  const { status, stdout, stderr } = spawnSync('openssl', ['ts', '-verify', '-data', content, '-in', token, '-CAfile', root], {
    encoding: 'utf8',
  });
  return { code: status, text: stdout + stderr };
}

/** The form of a time that `openssl ca` reads. */
function utc(time: number): string {
  return `${new Date(time).toISOString().replace(/[-:T]|\.\d+Z/g, '')}Z`;
}

function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  const length =
    content.length < 0x80
      ? [content.length]
      : content.length < 0x100
        ? [0x81, content.length]
        : [0x82, content.length >> 8, content.length & 0xff];
  return Buffer.concat([Buffer.of(tag, ...length), content]);
}
