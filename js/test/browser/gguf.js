/**
 * Builds a model with a chat template from the built-in one. Whatever it is asked, it tells a story, which is the same
 * on every machine.
 */

/** A chat template that only has the words of a conversation. */
const WORDS = "{% for message in messages %}{{ message.content }}\n{% endfor %}";
/** The chat template of most models. */
export const CHATML =
  "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}" +
  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
const NAME = "tokenizer.chat_template";
/** Alignment of the weights, in bytes. */
const ALIGNMENT = 32;
const STRING = 8;
/** Positions of the metadata's count and of the first entry, after the magic, the version and the number of tensors. */
const [COUNT_AT, BEGIN] = [16, 24];

/**
 * Adds a chat template to a GGUF file. Metadata has no order, so it may come first.
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
