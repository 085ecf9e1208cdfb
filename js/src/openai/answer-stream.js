/** A streamed answer, with the interface of OpenAI's client. */

/**
 * @template Chunk
 * @typedef {(signal: AbortSignal) => AsyncGenerator<Chunk, undefined>} Pieces
 */

/**
 * @template Chunk
 * @implements {AsyncIterableIterator<Chunk>}
 */
export class Stream {
  controller = new AbortController();
  _pieces;

  /** @param {Pieces<Chunk>} pieces Ends when the signal aborts. */
  constructor(pieces) {
    this._pieces = pieces(this.controller.signal);
  }

  /** @returns {Promise<IteratorResult<Chunk, undefined>>} */
  async next() {
    try {
      return await this._pieces.next();
    } catch (error) {
      if (!this.controller.signal.aborted) throw error;
      return { value: undefined, done: true };
    }
  }

  /** @returns {Promise<IteratorResult<Chunk, undefined>>} */
  async return() {
    // A generator that waits for its next piece notices its end only through the signal.
    this.controller.abort();
    return this._pieces.return(undefined).catch(() => ({ value: undefined, done: true }));
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  /** @returns {ReadableStream<Uint8Array>} */
  toReadableStream() {
    const encoder = new TextEncoder();
    return new ReadableStream({
      pull: async (sink) => {
        const { value, done } = await this.next();
        if (done) sink.close();
        else sink.enqueue(encoder.encode(`${JSON.stringify(value)}\n`));
      },
      cancel: async () => {
        await this.return();
      },
    });
  }
}
