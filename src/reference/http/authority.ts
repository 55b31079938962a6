/**
 * The certificates of the service: a certificate authority, created at the start, and a certificate
 * for the loopback names of this machine. With --tls-dir, the authority and its key are stored, so
 * that clients also trust the service after a restart.
 */
import 'reflect-metadata'; // the certificate package asks for it
import { webcrypto } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as x509 from '@peculiar/x509';

/** PEM texts for the server, and for clients the file with the certificate of the authority. */
export interface Certificates {
  readonly cert: string;
  readonly key: string;
  readonly caFile: string;
}

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const lifetimeMs = 365 * 86_400_000;
const caName = 'CN=Reference Service Test Authority';

export async function certificatesIn(folder: string): Promise<Certificates> {
  const authority = await authorityIn(folder);
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const server = await x509.X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    subject: 'CN=127.0.0.1',
    issuer: caName,
    ...validity(),
    signingAlgorithm: algorithm,
    publicKey: keys.publicKey,
    signingKey: authority.key,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension([
        { type: 'ip', value: '127.0.0.1' },
        { type: 'ip', value: '::1' },
        { type: 'dns', value: 'localhost' },
      ]),
      await x509.AuthorityKeyIdentifierExtension.create(authority.certificate, false),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { cert: server.toString('pem'), key: await privatePem(keys.privateKey), caFile: authority.file };
}

async function authorityIn(folder: string): Promise<{ certificate: x509.X509Certificate; key: webcrypto.CryptoKey; file: string }> {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const file = join(folder, 'ca.pem');
  const keyFile = join(folder, 'ca.key');
  if (existsSync(file) && existsSync(keyFile)) {
    const key = await webcrypto.subtle.importKey('pkcs8', x509.PemConverter.decodeFirst(readFileSync(keyFile, 'utf8')), algorithm, true, [
      'sign',
    ]);
    return { certificate: new x509.X509Certificate(readFileSync(file, 'utf8')), key: key, file };
  }
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    name: caName,
    ...validity(),
    signingAlgorithm: algorithm,
    keys: keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  writeFileSync(keyFile, await privatePem(keys.privateKey), { mode: 0o600 });
  writeFileSync(file, certificate.toString('pem'), { mode: 0o644 });
  return { certificate, key: keys.privateKey, file };
}

function validity(): { notBefore: Date; notAfter: Date } {
  return { notBefore: new Date(Date.now() - 3_600_000), notAfter: new Date(Date.now() + lifetimeMs) };
}

/** Positive and not repeated, as RFC 5280 4.1.2.2 asks. */
function serialNumber(): string {
  const bytes = webcrypto.getRandomValues(new Uint8Array(16));
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return Buffer.from(bytes).toString('hex');
}

async function privatePem(key: webcrypto.CryptoKey): Promise<string> {
  return x509.PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', key), 'PRIVATE KEY');
}
