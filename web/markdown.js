// Markdown as elements, while it is being written. A parser finds the parts of a text. Known parts become elements with
// text in them; unknown ones, HTML above all, stay text. Text never becomes markup.

import { el } from "./dom.js";

/** The parser; null until it is loaded, and always null in browsers that are too old for it, which show plain text. */
let parser = null;
let coming = null;

/** Loads the parser when a conversation begins; nothing waits for it before. */
export function prepare() {
  coming = coming ?? ("hasOwn" in Object ? import("./vendor/marked.js") : Promise.resolve(null));
  return coming.then((module) => (parser = module)).catch(() => {});
}

/**
 * Makes a function that shows a growing text in an element. Unchanged parts keep their elements, so that a selection in
 * them stays.
 */
export function drawer(node) {
  let drawn = [];
  return (text) => {
    node.classList.toggle("plain", parser === null);
    if (parser === null) {
      node.textContent = text;
      return;
    }
    const blocks = parser.lexer(text).filter(({ type }) => type !== "space" && type !== "def");
    const changed = blocks.findIndex(({ raw }, index) => raw !== drawn[index]);
    const same = changed < 0 ? blocks.length : changed;
    while (node.childNodes.length > same) node.lastChild.remove();
    node.append(...blocks.slice(same).map(block).map(directed));
    drawn = blocks.map(({ raw }) => raw);
  };
}

/** Sets a block's direction to that of its own words; code always runs from left to right. */
function directed(node) {
  node.dir = node.localName === "pre" ? "ltr" : "auto";
  return node;
}

/** Makes the element of a block. */
function block(token) {
  switch (token.type) {
    case "paragraph":
      return el("p", {}, ...inline(token.tokens));
    case "heading":
      // The page's own headings rank above those of an answer.
      return el(`h${Math.min(token.depth + 2, 6)}`, {}, ...inline(token.tokens));
    case "code":
      return el("pre", { tabIndex: 0 }, el("code", {}, token.text));
    case "blockquote":
      return el("blockquote", {}, ...token.tokens.map(block));
    case "list":
      return el(token.ordered ? "ol" : "ul", token.ordered ? { start: token.start } : {}, ...token.items.map(item));
    case "hr":
      return el("hr");
    case "table":
      return table(token);
    case "text":
      return el("span", {}, ...inline(token.tokens ?? [token]));
    case "space":
      return "";
    default:
      return el("p", {}, token.raw);
  }
}

function item({ task, checked, tokens }) {
  const box = task && el("input", { type: "checkbox", checked, disabled: true, "aria-label": checked ? "done" : "to do" });
  return el("li", { className: task ? "task" : "" }, box, ...tokens.filter(({ type }) => type !== "checkbox").map(block));
}

function table({ header, rows }) {
  const row = (cells, tag) => el("tr", {}, ...cells.map(({ tokens }) => el(tag, {}, ...inline(tokens))));
  const body = rows.map((cells) => row(cells, "td"));
  return el("div", { className: "wide" }, el("table", {}, el("thead", {}, row(header, "th")), el("tbody", {}, ...body)));
}

/** Makes the elements of inline text. */
const inline = (tokens = []) => tokens.map(span);

const TAGS = { strong: "strong", em: "em", del: "del" };

function span(token) {
  if (token.type in TAGS) return el(TAGS[token.type], {}, ...inline(token.tokens));
  if (token.type === "codespan") return el("code", {}, token.text);
  if (token.type === "br") return el("br");
  if (token.type === "link" && leadsAway(token.href)) {
    return el("a", { href: token.href, target: "_blank", rel: "noopener noreferrer" }, ...inline(token.tokens));
  }
  if (token.type === "escape") return token.text;
  if (token.type === "text") return token.tokens ? el("span", {}, ...inline(token.tokens)) : token.text;
  return token.raw;
}

/** Whether an address may be a link, and is not a script. */
const leadsAway = (address) => /^(https?:\/\/|mailto:)/i.test(address);
