/** The built-in model with a chat template: it tells stories whatever it is asked, the same ones on every machine. */

import { readFileSync, writeFileSync } from "node:fs";

/** What a conversation looks like to it. */
const TEMPLATE = "{% for message in messages %}{{ message.content }}\n{% endfor %}";
/** Weights begin at a multiple of so many bytes, before and after. */
const ALIGNMENT = 32;
const STRING = 8;

/**
 * Adds a template to a model. Metadata has no order, so that it may come first.
 *
 * @param {string} from
 * @param {string} to
 */
export function withTemplate(from, to) {
  const file = readFileSync(from);
  const name = Buffer.from("tokenizer.chat_template");
  // Magic, version, count of tensors; then the count of metadata.
  const [countAt, begin] = [16, 24];
  const head = Buffer.alloc(8 + name.length + 4 + 8);
  const rest = (head.length + TEMPLATE.length + 4) % ALIGNMENT;
  const template = Buffer.from(`${TEMPLATE}{#${" ".repeat((ALIGNMENT - rest) % ALIGNMENT)}#}`);
  head.writeBigUInt64LE(BigInt(name.length), 0);
  name.copy(head, 8);
  head.writeUInt32LE(STRING, 8 + name.length);
  head.writeBigUInt64LE(BigInt(template.length), 12 + name.length);
  const count = Buffer.from(file.subarray(0, begin));
  count.writeBigUInt64LE(count.readBigUInt64LE(countAt) + 1n, countAt);
  writeFileSync(to, Buffer.concat([count, head, template, file.subarray(begin)]));
}
