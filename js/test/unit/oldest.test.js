import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import vm from "node:vm";

const script = readFileSync(new URL("../../../examples/web/oldest.js", import.meta.url), "utf8");

/**
 * What the page says in a browser.
 *
 * @param {object} element A script element there.
 * @param {string} [lack] Takes something away.
 */
function notice(element, lack = "") {
  const notice = { textContent: "", hidden: true };
  const document = { createElement: () => element, getElementById: () => notice };
  const browser = vm.createContext({ document });
  vm.runInContext(`${lack};${script}`, browser);
  return notice;
}

const current = { noModule: false };
const parserThat = (/** @type {string} */ error) => `Function = function () { throw new ${error}("no"); }`;

test("the page says nothing in a browser that is new enough", () => {
  assert.deepEqual(notice(current), { textContent: "", hidden: true });
  assert.deepEqual(notice(current, parserThat("EvalError")), { textContent: "", hidden: true });
});

test("the page says what a browser lacks that is too old for it", () => {
  const says = (/** @type {ReturnType<typeof notice>} */ { textContent, hidden }, /** @type {RegExp} */ what) => {
    assert.equal(hidden, false);
    assert.match(textContent, what);
  };
  says(notice({}), /lacks JavaScript modules\./);
  says(notice(current, parserThat("SyntaxError")), /lacks optional chaining\./);
  says(notice(current, "WebAssembly = undefined"), /lacks WebAssembly\./);
});
