/**
 * A certificate authority for tests, and certificates that it issues: valid, expired, for another
 * name, for a client. Only the tests themselves write them to files.
 */
import 'reflect-metadata';
import {
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from '@peculiar/x509';
import type { webcrypto } from 'node:crypto';
import type { X509Certificate } from '@peculiar/x509';

export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

export interface CertificateWish {
  readonly name: string;
  /** DNS names and addresses in the certificate. */
  readonly hosts?: readonly string[];
  readonly notBefore?: Date;
  readonly notAfter?: Date;
}

export interface Authority {
  readonly cert: string;
  issue(wish: CertificateWish): Promise<KeyPair>;
  /** A CA whose certificate this one issues. */
  subordinate(name: string): Promise<Authority>;
}

type Keys = webcrypto.CryptoKeyPair;

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const dayMs = 86_400_000;

export async function createAuthority(name: string): Promise<Authority> {
  const keys = await generateKeys();
  return authorityOf(await X509CertificateGenerator.createSelfSigned({ name: `CN=${name}`, ...ofAuthority(), keys }), keys);
}

function ofAuthority() {
  return {
    ...validity({}),
    serialNumber: serial(),
    signingAlgorithm: algorithm,
    extensions: [new BasicConstraintsExtension(true, undefined, true), new KeyUsagesExtension(KeyUsageFlags.keyCertSign, true)],
  };
}

function authorityOf(certificate: X509Certificate, keys: Keys): Authority {
  const issuer = { issuer: certificate.subject, signingKey: keys.privateKey };
  return {
    cert: certificate.toString('pem'),
    async issue(wish) {
      const own = await generateKeys();
      return pair(await X509CertificateGenerator.create({ ...names(wish), ...issuer, publicKey: own.publicKey }), own);
    },
    async subordinate(name) {
      const own = await generateKeys();
      const subject = `CN=${name}`;
      return authorityOf(await X509CertificateGenerator.create({ subject, ...ofAuthority(), ...issuer, publicKey: own.publicKey }), own);
    },
  };
}

export async function createSelfSigned(wish: CertificateWish): Promise<KeyPair> {
  const keys = await generateKeys();
  const { subject, ...rest } = names(wish);
  return pair(await X509CertificateGenerator.createSelfSigned({ ...rest, name: subject, keys }), keys);
}

function names(wish: CertificateWish) {
  const hosts = (wish.hosts ?? []).map((value) => ({ type: /^[\d.]+$|:/.test(value) ? ('ip' as const) : ('dns' as const), value }));
  return {
    subject: `CN=${wish.name}`,
    ...validity(wish),
    serialNumber: serial(),
    signingAlgorithm: algorithm,
    extensions: [
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth, ExtendedKeyUsage.clientAuth]),
      ...(hosts.length === 0 ? [] : [new SubjectAlternativeNameExtension(hosts)]),
    ],
  };
}

function validity(wish: { readonly notBefore?: Date; readonly notAfter?: Date }) {
  return { notBefore: wish.notBefore ?? new Date(Date.now() - dayMs), notAfter: wish.notAfter ?? new Date(Date.now() + 90 * dayMs) };
}

async function pair(certificate: X509Certificate, keys: Keys): Promise<KeyPair> {
  const key = await crypto.subtle.exportKey('pkcs8', keys.privateKey);
  return { cert: certificate.toString('pem'), key: PemConverter.encode(key, 'PRIVATE KEY') };
}

async function generateKeys(): Promise<Keys> {
  return crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
}

function serial(): string {
  return `01${Buffer.from(crypto.getRandomValues(new Uint8Array(8))).toString('hex')}`;
}
