/**
 * Time-stamp tokens of RFC 3161: builds a request, and checks a response. The token is a CMS SignedData (RFC 5652) over a TSTInfo. Its
 * signing certificate is named by the attribute signingCertificate (RFC 5816). Pure.
 */
import { X509Certificate, constants, createHash, verify } from 'node:crypto';
import { SignedData, type SignerInfo } from '@peculiar/asn1-cms';
import { AsnConvert, OctetString } from '@peculiar/asn1-schema';
import { MessageImprint, PKIStatus, TimeStampReq, TimeStampResp, TSTInfo } from '@peculiar/asn1-tsp';
import { AlgorithmIdentifier, BasicConstraints } from '@peculiar/asn1-x509';
import type { Micros } from '../../model/time.ts';
import { equal, sha256 } from '../merkle.ts';
import { bytesOf, elementsOf, extensionsOf, identifierOf } from './der.ts';

/** What a request asked for. The response must repeat it. */
export interface Question {
  /** SHA-256 of the stamped bytes. */
  readonly imprint: Uint8Array;
  /** Undefined: a stored token is read, and its nonce is unknown. */
  readonly nonce?: Uint8Array | undefined;
  /** The policy of the authority, as a dotted number. */
  readonly policy?: string | undefined;
}

export interface Token {
  /** When the authority signed it. */
  readonly time: Micros;
  readonly signer: X509Certificate;
  /** All certificates that the authority sent. */
  readonly certificates: readonly X509Certificate[];
}

/** A response that grants no token, or another one than was requested. */
export class TokenError extends Error {}

const oid = {
  sha256: '2.16.840.1.101.3.4.2.1',
  tstInfo: '1.2.840.113549.1.9.16.1.4',
  contentType: '1.2.840.113549.1.9.3',
  messageDigest: '1.2.840.113549.1.9.4',
  signingCertificate: '1.2.840.113549.1.9.16.2.12',
  signingCertificateV2: '1.2.840.113549.1.9.16.2.47',
  keyUsage: '2.5.29.15',
  basicConstraints: '2.5.29.19',
  nameConstraints: '2.5.29.30',
  certificatePolicies: '2.5.29.32',
  extendedKeyUsage: '2.5.29.37',
  timeStamping: '1.3.6.1.5.5.7.3.8',
  rsaPss: '1.2.840.113549.1.1.10',
};
/** SHA-1 and older ones are not accepted. */
const digests: Readonly<Record<string, string>> = {
  [oid.sha256]: 'sha256',
  '2.16.840.1.101.3.4.2.2': 'sha384',
  '2.16.840.1.101.3.4.2.3': 'sha512',
};

/** Critical extensions that do not exclude the certificate of an authority. */
const permittedExtensions: readonly (string | undefined)[] = [
  oid.keyUsage,
  oid.basicConstraints,
  oid.certificatePolicies,
  oid.extendedKeyUsage,
];
const octetString = 0x04;
const setOf = 0x31;
const maxCertificates = 16;

/** @returns a TimeStampReq in DER */
export function formatRequest({ imprint, nonce, policy }: Question): Buffer {
  const messageImprint = new MessageImprint({
    hashAlgorithm: new AlgorithmIdentifier({ algorithm: oid.sha256, parameters: null }),
    hashedMessage: new OctetString(imprint),
  });
  const request = new TimeStampReq({
    messageImprint,
    certReq: true,
    ...(nonce && { nonce: plain(nonce) }),
    ...(policy !== undefined && { reqPolicy: policy }),
  });
  return Buffer.from(AsnConvert.serialize(request));
}

/**
 * Checks status, imprint, nonce, policy and signature of a TimeStampResp in DER. The caller checks where the signing certificate leads.
 * @throws TokenError
 */
export function readResponse(bytes: Uint8Array, question: Question): Token {
  try {
    return checkedToken(bytes, question);
  } catch (thrown) {
    if (thrown instanceof TokenError) throw thrown;
    // Without the text of the parser: it is for programmers, and depends on its version.
    throw new TokenError('it is not a time-stamp response of RFC 3161');
  }
}

function checkedToken(bytes: Uint8Array, { imprint, nonce, policy }: Question): Token {
  const { status, timeStampToken } = AsnConvert.parse(plain(bytes), TimeStampResp);
  if (status.status !== PKIStatus.granted && status.status !== PKIStatus.grantedWithMods) {
    const texts: Iterable<string> = status.statusString ?? [];
    const reasons = [...texts, status.failInfo?.toString() ?? ''].filter((text) => text !== '');
    throw new TokenError(`the authority refuses: status ${status.status}${reasons.map((text) => `, ${text}`).join('')}`);
  }
  if (!timeStampToken) throw new TokenError('it has no token');
  const signed = AsnConvert.parse(timeStampToken.content, SignedData);
  const content = signed.encapContentInfo.eContent?.single?.buffer;
  if (signed.encapContentInfo.eContentType !== oid.tstInfo || !content) throw new TokenError('its token does not contain a time');
  const info = AsnConvert.parse(content, TSTInfo);
  const { hashAlgorithm, hashedMessage } = info.messageImprint;
  if (hashAlgorithm.algorithm !== oid.sha256 || !equal(Buffer.from(hashedMessage.buffer), imprint))
    throw new TokenError('its token stamps other bytes');
  if (nonce && !(info.nonce && equal(Buffer.from(info.nonce), nonce)))
    throw new TokenError('its nonce differs from the nonce of the request');
  if (policy !== undefined && info.policy !== policy) throw new TokenError(`its policy is ${info.policy}, not ${policy}`);
  const [signer, ...others] = signed.signerInfos;
  if (!signer || others.length > 0) throw new TokenError('its token does not have exactly one signature');
  const certificates = sentCertificates(timeStampToken.content);
  const certificate = signingCertificate(signer, certificates);
  assertSigned(signer, signedAttributes(timeStampToken.content), Buffer.from(content), certificate);
  assertForTimeStamps(certificate);
  return { time: info.genTime.getTime() * 1_000, signer: certificate, certificates };
}

/** Their bytes as they were sent: a certificate that is encoded again might differ. */
function sentCertificates(signedData: ArrayBuffer): X509Certificate[] {
  const set = elementsOf(new Uint8Array(signedData)).find(({ idBlock }) => idBlock.tagClass === 3 && idBlock.tagNumber === 0);
  const found = set ? elementsOf(bytesOf(set)) : [];
  if (found.length > maxCertificates) throw new TokenError(`it has more than ${maxCertificates} certificates`);
  return found.map((each) => new X509Certificate(bytesOf(each)));
}

/**
 * The certificate whose hash the authority signed too, so that no other certificate of the same key can replace it. The attribute is a
 * SEQUENCE { certs SEQUENCE OF SEQUENCE { hashAlgorithm (version 2 only, default SHA-256), certHash OCTET STRING, … } }.
 */
function signingCertificate(signer: SignerInfo, certificates: readonly X509Certificate[]): X509Certificate {
  const second = attributeOf(signer, oid.signingCertificateV2);
  const attribute = second ?? attributeOf(signer, oid.signingCertificate);
  const [list] = attribute ? elementsOf(attribute) : [];
  const [first] = list ? elementsOf(bytesOf(list)) : [];
  const parts = (first ? elementsOf(bytesOf(first)) : []).map(bytesOf);
  const at = parts.findIndex(([tag]) => tag === octetString);
  const [algorithm] = at > 0 ? elementsOf(parts[0] ?? Buffer.alloc(0)) : [];
  const name = second ? digests[algorithm ? (identifierOf(bytesOf(algorithm)) ?? '') : oid.sha256] : 'sha1';
  const hash = parts[at];
  if (hash === undefined || name === undefined) throw new TokenError('its signature does not name its certificate');
  const named = octetsIn(hash);
  const found = certificates.find(({ raw }) => createHash(name).update(raw).digest().equals(named));
  if (!found) throw new TokenError('it lacks the certificate of its signature');
  return found;
}

/** Signed as SET OF, and stored as [0] (RFC 5652, section 5.4). @returns the bytes that the signature covers */
function signedAttributes(signedData: ArrayBuffer): Buffer {
  const signers = elementsOf(new Uint8Array(signedData)).at(-1);
  const [first] = signers ? elementsOf(bytesOf(signers)) : [];
  const tagged = first && elementsOf(bytesOf(first)).find(({ idBlock }) => idBlock.tagClass === 3 && idBlock.tagNumber === 0);
  if (!tagged) throw new TokenError('its signature lacks signed attributes');
  const bytes = bytesOf(tagged);
  bytes[0] = setOf;
  return bytes;
}

function assertSigned(signer: SignerInfo, attributes: Buffer, content: Buffer, certificate: X509Certificate): void {
  const name = digests[signer.digestAlgorithm.algorithm];
  if (name === undefined)
    throw new TokenError(`its digest algorithm ${signer.digestAlgorithm.algorithm} is not SHA-256, SHA-384 or SHA-512`);
  const type = attributeOf(signer, oid.contentType);
  const digest = attributeOf(signer, oid.messageDigest);
  if (!type || !digest) throw new TokenError('its signature lacks signed attributes');
  if (identifierOf(type) !== oid.tstInfo) throw new TokenError('its signature is not for a time stamp');
  if (!octetsIn(digest).equals(createHash(name).update(content).digest())) throw new TokenError('its signature is for other content');
  const { publicKey } = certificate;
  const isPss = signer.signatureAlgorithm.algorithm === oid.rsaPss;
  const key = isPss ? { key: publicKey, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_AUTO } : publicKey;
  const isWhole = publicKey.asymmetricKeyType === 'ed25519' || publicKey.asymmetricKeyType === 'ed448';
  if (!verify(isWhole ? undefined : name, attributes, key, Buffer.from(signer.signature.buffer)))
    throw new TokenError('its signature is invalid');
}

/** RFC 3161, section 2.3: a certificate for time stamps alone. */
function assertForTimeStamps(certificate: X509Certificate): void {
  const usages = certificate.keyUsage as readonly string[] | undefined;
  const isCritical = extensionsOf(certificate.raw).some((each) => each.identifier === oid.extendedKeyUsage && each.isCritical);
  if (usages?.length !== 1 || usages[0] !== oid.timeStamping || !isCritical)
    throw new TokenError('its certificate is not for time stamps alone');
}

/** The value of a signed attribute that occurs once. */
function attributeOf({ signedAttrs = [] }: SignerInfo, type: string): Buffer | undefined {
  const found = signedAttrs.filter(({ attrType }) => attrType === type).flatMap(({ attrValues }) => attrValues);
  return found.length === 1 && found[0] ? Buffer.from(found[0]) : undefined;
}

/** @returns a token of this content whose certificate was valid at its time, and leads to the roots; otherwise the reason as text */
export function validToken(bytes: Uint8Array, content: Uint8Array, roots: readonly X509Certificate[]): Token | string {
  try {
    const token = readResponse(bytes, { imprint: sha256(content) });
    return leadsTo(roots, token, token.time) ? token : 'its certificate does not lead there, or was not valid at its time';
  } catch (thrown) {
    if (thrown instanceof TokenError) return thrown.message;
    throw thrown;
  }
}

/**
 * True when certificates lead from the signer to a root of `roots`, and all are valid at this time. Other certificates in `roots` may
 * stand between. Revocation is not checked.
 */
export function leadsTo(roots: readonly X509Certificate[], { signer, certificates }: Token, at: Micros): boolean {
  const isValid = ({ validFromDate, validToDate }: X509Certificate): boolean =>
    validFromDate.getTime() <= at / 1_000 && at / 1_000 <= validToDate.getTime();
  const isRoot = (from: X509Certificate): boolean => from.subject === from.issuer && roots.some(({ raw }) => raw.equals(from.raw));
  const authorities = [...roots, ...certificates].filter((each) => each.ca && isValid(each));
  // Each certificate once for a distance from the signer: 16 that certify each other form very many
  // paths.
  let level = isValid(signer) ? [signer] : [];
  for (let between = 0; level.length > 0 && between <= maxCertificates; between += 1) {
    if (level.some(isRoot)) return true;
    const signed = level.filter(({ subject, issuer }) => subject !== issuer);
    level = authorities.filter(
      (issuer) => permits(issuer, between) && signed.some((from) => from.checkIssued(issuer) && from.verify(issuer.publicKey)),
    );
  }
  return false;
}

/**
 * The constraints of an authority's certificate (RFC 5280, section 4.2.1). Constraints on names and policies are not evaluated: such a
 * certificate is refused.
 * @param between  the number of certificates between it and the signer
 */
function permits({ raw }: X509Certificate, between: number): boolean {
  const extensions = extensionsOf(raw);
  const basic = extensions.find(({ identifier }) => identifier === oid.basicConstraints);
  const maxBetween = basic && AsnConvert.parse(plain(octetsIn(basic.value)), BasicConstraints).pathLenConstraint;
  if (maxBetween !== undefined && between > maxBetween) return false;
  return extensions.every(
    ({ identifier, isCritical }) => identifier !== oid.nameConstraints && (!isCritical || permittedExtensions.includes(identifier)),
  );
}

/** @throws Error for text that is not certificates in PEM */
export function certificatesIn(text: string): X509Certificate[] {
  const found = text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  if (found.length === 0) throw new Error('it has no certificate in PEM format');
  return found.map((each) => new X509Certificate(each));
}

function octetsIn(octetString: Uint8Array): Buffer {
  return Buffer.from(AsnConvert.parse(plain(octetString), OctetString).buffer);
}

function plain(view: Uint8Array): ArrayBuffer {
  return Uint8Array.from(view).buffer;
}
