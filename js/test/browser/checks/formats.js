// Checks of structured output: it follows its format, and is the same as on the CPU on all backends.

import { AnyGpu, beat, errors } from "../run.js";
import { assert, equal, load, rejection, talker } from "../expect.js";

const MESSAGES = [{ role: "user", content: "Who?" }];
const NAMES = ["Ann", "Bob", "Zoë"];
const SCHEMA = {
  type: "object",
  properties: { name: { enum: NAMES }, age: { type: "integer", minimum: 0, maximum: 99 } },
  required: ["name", "age"],
  additionalProperties: false,
};

/** Returns a request for an answer that follows a schema. */
function asking(schema, more = {}) {
  return { messages: MESSAGES, response_format: { type: "json_schema", json_schema: { name: "person", schema } }, ...more };
}

/** Returns a schema of `places` definitions, each eight levels deep in arrays, with a reference to the next. */
function winding(places) {
  const defs = Array.from({ length: places }, (_, at) => {
    let inner = at + 1 < places ? { $ref: `#/$defs/d${at + 1}` } : { type: "null" };
    for (let level = 1; level < 8; level += 1) inner = { type: "array", items: inner };
    return [`d${at}`, inner];
  });
  return { $ref: "#/$defs/d0", $defs: Object.fromEntries(defs) };
}

/** Returns the text of an answer, chunk by chunk. */
async function told(engine, more) {
  let text = "";
  for await (const { choices } of engine.chat.completions.create({ ...asking(SCHEMA, more), stream: true })) {
    beat();
    text += choices[0]?.delta.content ?? "";
  }
  return text;
}

export default {
  "answers follow a schema, and are those of the CPU": async () => {
    const file = await talker();
    const cpu = await AnyGpu.load(file, { backend: "cpu", nCtx: 128, cache: false, onProgress: beat });
    const engine = await load(file);
    for (const more of [{}, { temperature: 1, seed: 1 }, { temperature: 2, seed: 2 }]) {
      const text = await told(engine, more);
      const { name, age, ...others } = JSON.parse(text);
      assert(NAMES.includes(name) && Number.isInteger(age) && age >= 0 && age <= 99 && Object.keys(others).length === 0, text);
      equal(text, await told(cpu, more), `what ${JSON.stringify(more)} gives`);
    }
    const error = await rejection(engine.chat.completions.create(asking({ not: {} })), errors.OptionsError);
    equal(error.field, "response_format", "the field of the error");
    // Texts that are no conversation, too, whoever's name for a format is used; several prompts have an answer each.
    const prompt = ["Once", "Twice"];
    const ofOne = { guided_choice: ["upon", "a time"], max_tokens: 16 };
    const { choices } = await engine.completions.create({ prompt, ...ofOne, temperature: 1, seed: -1 });
    equal(choices.map(({ index, finish_reason }) => `${index} ${finish_reason}`).join(), "0 stop,1 stop", "the ends");
    for (const { text } of choices) assert(ofOne.guided_choice.includes(text), text);
    await cpu.dispose();
    // The deepest schema that is allowed here, and a deeper one: browsers' stacks are small.
    for (const [places, fits] of [[12, true], [20, false]]) {
      const asked = engine.chat.completions.create(asking(winding(places), { max_tokens: 4 }));
      if (fits) equal((await asked).choices[0].message.content[0], "[", "what a winding schema gives");
      else assert(/levels times references/.test((await rejection(asked, errors.OptionsError)).message), "another error");
    }
    await engine.dispose();
  },
};
