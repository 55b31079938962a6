/** Parts of a DER structure as the bytes that were sent. Pure. */
import { fromBER, ObjectIdentifier } from 'asn1js';
import type { BaseBlock } from 'asn1js';

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

/** True when the certificate has this extension, marked critical (RFC 5280, section 4.1). */
export function hasCritical(certificate: Uint8Array, extension: string): boolean {
  const [body] = elementsOf(certificate);
  const tagged = body && elementsOf(bytesOf(body)).find(({ idBlock }) => idBlock.tagClass === 3 && idBlock.tagNumber === 3);
  const [list] = tagged ? elementsOf(bytesOf(tagged)) : [];
  return (list ? elementsOf(bytesOf(list)) : []).some((each) => {
    const [identifier, critical] = elementsOf(bytesOf(each));
    const isTrue = critical !== undefined && bytesOf(critical).equals(Buffer.of(0x01, 0x01, 0xff));
    return isTrue && identifier !== undefined && identifierOf(bytesOf(identifier)) === extension;
  });
}

function parsed(bytes: Uint8Array): BaseBlock {
  const { result, offset } = fromBER(bytes);
  if (offset === -1) throw new Error('its encoding is wrong');
  return result;
}
