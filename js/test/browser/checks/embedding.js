// Checks of embedding models.

import { errors } from "../run.js";
import { assert, equal, load, rejection } from "../expect.js";

const NAME = "bert-mean";

/** Returns the cosine similarity of two vectors. */
function cosine(a, b) {
  const product = (x, y) => x.reduce((sum, value, i) => sum + value * y[i], 0);
  return product(a, b) / Math.sqrt(product(a, a) * product(b, b));
}

export default {
  "texts become the vectors that llama.cpp makes of them": async () => {
    const known = await (await fetch("/files/embeddings.json")).json();
    const { tokens, text_cases: texts } = known.find(({ model }) => model === `${NAME}.gguf`);
    const expected = new Float32Array(await (await fetch(`/files/${NAME}.embedding.f32`)).arrayBuffer());
    const engine = await load(`/files/${NAME}.gguf`, { nCtx: 32 });
    try {
      equal(engine.info.pooling, "mean", "the pooling");
      // A longer text first: its leftovers must not matter.
      const longer = [...tokens, ...tokens].slice(0, 32);
      const { data, usage } = await engine.embeddings.create({ input: [longer, tokens] });
      equal(usage.total_tokens, 32 + tokens.length, "the tokens");
      const [, { embedding }] = data;
      assert(Math.abs(cosine(embedding, embedding) - 1) < 1e-6, "a vector is not itself");
      assert(Math.abs(Math.hypot(...embedding) - 1) < 1e-5, `the length is ${Math.hypot(...embedding)}`);
      assert(1 - cosine(embedding, expected) < 1e-6, `the cosine is ${cosine(embedding, expected)}`);
      const [{ text, tokens: pieces }] = texts;
      equal((await engine.encode(text)).join(), pieces.join(), "the tokens of a text");
      const coded = await engine.embeddings.create({ input: text, encoding_format: "base64" });
      const bytes = Uint8Array.from(atob(coded.data[0].embedding), (c) => c.charCodeAt(0));
      equal(bytes.length, 4 * expected.length, "the bytes of a vector");
      await rejection(engine.embeddings.create({ input: new Array(33).fill(5) }), errors.ContextError);
      await rejection(engine.completions.create({ prompt: "a" }), errors.OptionsError);
    } finally {
      await engine.dispose();
    }
  },

  "documents are ranked as llama.cpp ranks them": async () => {
    const known = await (await fetch("/files/embeddings.json")).json();
    const name = "rank-wpm-new.gguf";
    const { rank_cases: cases } = known.find(({ model }) => model === `encoders/${name}`);
    const engine = await load(`/files/${name}`, { nCtx: 32 });
    try {
      equal(engine.info.pooling, "rank", "the pooling");
      for (const { query, document, tokens, scores } of cases) {
        const { results, usage } = await engine.rerank({ query, documents: ["mat", { text: document }], return_documents: true });
        assert(results[0].relevance_score >= results[1].relevance_score, "the best is not the first");
        const found = results.find(({ index }) => index === 1);
        equal(found.document.text, document, "the document");
        assert(usage.prompt_tokens > tokens.length, `the tokens are ${usage.prompt_tokens}`);
        assert(Math.abs(found.relevance_score - scores[0]) < 1e-4, `the score is ${found.relevance_score}, not ${scores[0]}`);
      }
      equal((await engine.rerank({ query: "a", documents: [] })).results.length, 0, "results of nothing");
      await rejection(engine.rerank({ query: "a" }), errors.OptionsError);
      await rejection(engine.embeddings.create({ input: "a" }), errors.OptionsError);
    } finally {
      await engine.dispose();
    }
  },

  "a language model makes no embeddings unless it is told how": async () => {
    const engine = await load();
    await rejection(engine.embeddings.create({ input: "a" }), errors.OptionsError);
    await engine.dispose();
    const embedder = await load(undefined, { pooling: "last" });
    const { data } = await embedder.embeddings.create({ input: "Once upon a time", dimensions: 16 });
    equal(data[0].embedding.length, 16, "the numbers of a vector");
    await embedder.dispose();
  },
};
