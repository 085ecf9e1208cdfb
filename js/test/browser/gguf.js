/** A model with a chat template: with one the built-in model tells stories whatever it is asked, the same ones on every machine. */

/** A conversation as nothing but its words. */
const WORDS = "{% for message in messages %}{{ message.content }}\n{% endfor %}";
/** A conversation as most models have it. */
export const CHATML =
  "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}" +
  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
const NAME = "tokenizer.chat_template";
/** Weights begin at a multiple of so many bytes, before and after. */
const ALIGNMENT = 32;
const STRING = 8;
/** Where the count of metadata is, and where they begin: after the magic, the version and the count of tensors. */
const [COUNT_AT, BEGIN] = [16, 24];

/**
 * Adds a template to a GGUF file. Metadata has no order, so that it may come first.
 *
 * @param {Uint8Array} file
 * @param {string} [source] The template.
 * @returns {Uint8Array<ArrayBuffer>}
 */
export function withTemplate(file, source = WORDS) {
  const encoder = new TextEncoder();
  const name = encoder.encode(NAME);
  const rest = (8 + name.length + 4 + 8 + source.length + 4) % ALIGNMENT;
  const template = encoder.encode(`${source}{#${" ".repeat((ALIGNMENT - rest) % ALIGNMENT)}#}`);
  const added = 8 + name.length + 4 + 8 + template.length;
  const all = new Uint8Array(file.length + added);
  all.set(file.subarray(0, BEGIN));
  all.set(file.subarray(BEGIN), BEGIN + added);
  const view = new DataView(all.buffer);
  view.setUint32(COUNT_AT, view.getUint32(COUNT_AT, true) + 1, true);
  view.setUint32(BEGIN, name.length, true);
  all.set(name, BEGIN + 8);
  view.setUint32(BEGIN + 8 + name.length, STRING, true);
  view.setUint32(BEGIN + 12 + name.length, template.length, true);
  all.set(template, BEGIN + 20 + name.length);
  return all;
}
