/** Parts of a DER structure as the bytes that were sent. Pure. */
import { fromBER, ObjectIdentifier, type BaseBlock } from 'asn1js';

/** The elements of a SEQUENCE, a SET or an explicit tag; none for another value. */
export function elementsOf(bytes: Uint8Array): readonly BaseBlock[] {
  const { value } = (parsed(bytes) as { readonly valueBlock: { readonly value?: unknown } }).valueBlock;
  return Array.isArray(value) ? (value as BaseBlock[]) : [];
}

export function bytesOf(block: BaseBlock): Buffer {
  return Buffer.from(block.valueBeforeDecodeView);
}

/** The dotted numbers of an OBJECT IDENTIFIER; undefined for another value. */
export function identifierOf(bytes: Uint8Array): string | undefined {
  const block = parsed(bytes);
  return block instanceof ObjectIdentifier ? block.getValue() : undefined;
}

interface Extension {
  readonly identifier: string | undefined;
  readonly isCritical: boolean;
  /** An OCTET STRING with its tag. */
  readonly value: Buffer;
}

/** The extensions of a certificate (RFC 5280, section 4.1). */
export function extensionsOf(certificate: Uint8Array): readonly Extension[] {
  const [body] = elementsOf(certificate);
  const tagged = body && elementsOf(bytesOf(body)).find(({ idBlock }) => idBlock.tagClass === 3 && idBlock.tagNumber === 3);
  const [list] = tagged ? elementsOf(bytesOf(tagged)) : [];
  return (list ? elementsOf(bytesOf(list)) : []).flatMap((each) => {
    const [identifier, ...others] = elementsOf(bytesOf(each)).map(bytesOf);
    const value = others.pop();
    if (!identifier || !value) return [];
    return { identifier: identifierOf(identifier), isCritical: others.some((flag) => flag.equals(Buffer.of(0x01, 0x01, 0xff))), value };
  });
}

function parsed(bytes: Uint8Array): BaseBlock {
  const { result, offset } = fromBER(bytes);
  if (offset === -1) throw new Error('its encoding is wrong');
  return result;
}
