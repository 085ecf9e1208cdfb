import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import vm from "node:vm";

const PAGE = new URL("../../../web/", import.meta.url);
const read = (/** @type {string} */ name) => readFileSync(new URL(name, PAGE), "utf8");

/**
 * Returns the page's message in a browser.
 *
 * @param {object} element A script element there.
 * @param {string} [lack] Takes something away.
 * @param {boolean} [parses] Whether the syntax of the page's modules is known there.
 */
function notice(element, lack = "", parses = true) {
  const notice = { textContent: "", hidden: true };
  /** @type {Map<string, string>} */
  const attributes = new Map();
  const documentElement = {
    getAttribute: (/** @type {string} */ name) => attributes.get(name) ?? null,
    setAttribute: (/** @type {string} */ name, /** @type {string} */ value) => attributes.set(name, value),
  };
  const document = { createElement: () => element, getElementById: () => notice, documentElement };
  const browser = vm.createContext({ document });
  if (parses) vm.runInContext(read("syntax.js"), browser);
  vm.runInContext(`${lack};${read("oldest.js")}`, browser);
  return notice;
}

const current = { noModule: false };

test("the page says nothing in a browser that is new enough", () => {
  assert.deepEqual(notice(current), { textContent: "", hidden: true });
});

test("the page says what a browser lacks that is too old for it", () => {
  const says = (/** @type {ReturnType<typeof notice>} */ { textContent, hidden }, /** @type {RegExp} */ what) => {
    assert.equal(hidden, false);
    assert.match(textContent, what);
  };
  says(notice({}), /lacks JavaScript modules\./);
  says(notice(current, "", false), /lacks optional chaining\./);
  says(notice(current, "WebAssembly = undefined"), /lacks WebAssembly\./);
});
