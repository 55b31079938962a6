/** Reads lines of text: NDJSON, or one value per line. */
import { addAbortSignal, Readable } from 'node:stream';

/** Lines without their line breaks. Only LF ends one: JSON may contain U+2028, at which node:readline breaks. */
export async function* linesOf(input: AsyncIterable<string | Buffer>, signal: AbortSignal): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  const abortable = input instanceof Readable ? addAbortSignal(signal, input) : input;
  let rest = '';
  try {
    for await (const chunk of abortable as AsyncIterable<string | Buffer>) {
      const lines = (typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true })).split('\n');
      lines[0] = rest + (lines[0] ?? '');
      rest = lines.pop() ?? '';
      for (const line of lines) yield withoutReturn(line);
    }
  } catch (thrown) {
    // The reason is in the signal, not in the error of the stream.
    signal.throwIfAborted();
    throw thrown;
  }
  rest += decoder.decode();
  if (rest !== '') yield withoutReturn(rest);
}

function withoutReturn(line: string): string {
  return line.endsWith('\r') ? line.slice(0, -1) : line;
}
