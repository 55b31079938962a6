/**
 * The certificates of the service: a certificate authority, and a certificate for the loopback
 * names of this machine. A folder of --tls-dir stores them, so that clients also trust the service
 * after a restart.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** PEM texts for the server, and for clients the file with the certificate of the authority. */
export interface Certificates {
  readonly cert: string;
  readonly key: string;
  readonly caFile: string;
}

/** Reads the certificates in the folder, or creates them. */
export async function certificatesIn(folder: string): Promise<Certificates> {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const [caFile, certFile, keyFile] = [join(folder, 'ca.pem'), join(folder, 'server.pem'), join(folder, 'server.key')] as const;
  if (existsSync(caFile)) {
    const [cert, key] = [readFileSync(certFile, 'utf8'), readFileSync(keyFile, 'utf8')];
    check(caFile, certFile, cert, keyFile, key);
    return { cert, key, caFile };
  }
  // Loaded only to create certificates: the package takes a quarter of the start.
  const { createCertificates } = await import('./authority.ts');
  const { ca, cert, key } = await createCertificates();
  writeFileSync(keyFile, key, { mode: 0o600 });
  writeFileSync(certFile, cert, { mode: 0o644 });
  // Written last: its presence marks the folder as complete.
  writeFileSync(caFile, ca, { mode: 0o644 });
  return { cert, key, caFile };
}

/** @throws Error that names the file that is invalid, expired or does not match the others */
function check(caFile: string, certFile: string, cert: string, keyFile: string, key: string): void {
  const read = <T>(file: string, parse: () => T): T => {
    try {
      return parse();
    } catch (error) {
      throw new Error(`cannot read "${file}": ${error instanceof Error ? error.message : String(error)}`, { cause: error });
    }
  };
  const authority = read(caFile, () => new X509Certificate(readFileSync(caFile, 'utf8')));
  const server = read(certFile, () => new X509Certificate(cert));
  const privateKey = read(keyFile, () => createPrivateKey(key));
  if (!server.verify(authority.publicKey)) throw new Error(`the authority in "${caFile}" did not issue "${certFile}"`);
  if (!server.checkPrivateKey(privateKey)) throw new Error(`"${keyFile}" is not the key of "${certFile}"`);
  if (server.validToDate < new Date()) throw new Error(`"${certFile}" has expired: delete the three files to create new ones`);
}
