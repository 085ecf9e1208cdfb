// Checks of the Content-Security-Policy: the real page works with it, and it refuses what it should. The server also
// sends it as a header, so that it applies to workers.

import { beat, options, sleep } from "../run.js";
import { assert, equal } from "../expect.js";

/** Time limit for a page to report something, in milliseconds. */
const LIMIT = 120_000;

/** Time after which the browser has reported refusals, in milliseconds. */
const REPORTED = 500;

/** An address of another origin. */
const ELSEWHERE = "http://127.0.0.1:9";

/** Opens the page in a frame until it tells a story, and passes its window to `look`. */
async function visit(query, look) {
  const frame = document.createElement("iframe");
  frame.src = `/policy/index.html?backend=${options.backend}${query}#tab=story`;
  frame.width = 1000;
  frame.height = 700;
  document.body.append(frame);
  try {
    const told = () => frame.contentDocument?.getElementById("told")?.textContent ?? "";
    const notice = () => frame.contentDocument?.getElementById("notice")?.textContent ?? "";
    for (const begin = performance.now(); told().length < 8; await sleep(100)) {
      beat();
      assert(notice() === "", `the page says: ${notice()}`);
      assert(performance.now() - begin < LIMIT, `no story: ${violations(frame).join("; ") || "nothing was refused"}`);
    }
    await look(frame.contentWindow, frame.contentDocument);
  } finally {
    await frame.contentWindow.leave?.();
    frame.remove();
  }
}

const violations = (frame) => frame.contentWindow?.violations ?? [];

/** Fails a check if the policy refused anything. */
async function nothingRefused(page) {
  await sleep(REPORTED);
  equal(page.violations.join("; "), "", "what the policy refused");
}

export default {
  "the page, its worker and its engine do nothing that it forbids": () =>
    visit("", async (page, document) => {
      await nothingRefused(page);
      const [policy] = document.head.querySelectorAll("meta[http-equiv]");
      for (const part of ["default-src 'none'", "script-src 'self' 'wasm-unsafe-eval';"]) {
        assert(policy.content.includes(part), `the policy is ${policy.content}`);
      }
      assert(!policy.content.includes("unsafe-inline") && !policy.content.includes(" 'unsafe-eval'"), policy.content);
    }),

  "the engine runs under it on the page's own thread": async () => {
    // Chromium before 97 reads this policy as one that forbids wasm. Only workers, which have no policy there, can run
    // it.
    if (options.version !== null && options.version < 97) return "this browser is older than wasm-unsafe-eval";
    await visit("&workers=none", async (page, document) => {
      assert(/main thread/.test(document.getElementById("ladder").textContent), "it runs in a worker");
      await nothingRefused(page);
    });
  },

  "it refuses scripts that are injected, code from text and other origins": () =>
    visit("", async (page, document) => {
      const run = (properties) => document.body.append(Object.assign(document.createElement("script"), properties));
      run({ textContent: "window.injected = 'inline'" });
      run({ src: "data:text/javascript,window.injected='data'" });
      run({ src: `${ELSEWHERE}/script.js` });
      const button = document.createElement("button");
      button.setAttribute("onclick", "window.injected = 'handler'");
      button.click();
      for (const evaluate of [() => page.eval("1"), () => new page.Function("return 1")()]) {
        let refused = null;
        try {
          evaluate();
        } catch (error) {
          refused = error.name;
        }
        equal(refused, "EvalError", "what code from a text does");
      }
      document.body.append(Object.assign(document.createElement("img"), { src: `${ELSEWHERE}/image.png` }));
      const failed = await page.fetch("http://example.invalid/").then(() => false, () => true);
      assert(failed, "a server without https was asked");
      await sleep(REPORTED);
      equal(page.injected, undefined, "what was run");
      const refused = page.violations.join("; ");
      for (const what of ["inline", "data", `${ELSEWHERE}/script.js`, `${ELSEWHERE}/image.png`, "example.invalid"]) {
        assert(refused.includes(what), `${what} is not among what was refused: ${refused}`);
      }
    }),

  "the digest that the page shows is that of the release": () =>
    visit("", async (_, document) => {
      const shown = document.getElementById("module").querySelector("code");
      const sums = await (await fetch("/SHA256SUMS")).text();
      const lines = sums.split("\n").filter((line) => /anygpu\/wasm\/(older\/)?bindings_bg\.wasm$/.test(line));
      equal(lines.length, 2, "the modules that the release lists");
      const [digest] = lines.map((line) => line.slice(0, 64)).filter((digest) => shown.title.includes(digest));
      assert(digest !== undefined, `${shown.title} is not in ${lines.join(", ")}`);
      equal(shown.textContent, digest.slice(0, shown.textContent.length), "the short form");
      assert(shown.textContent.length >= 8, `${shown.textContent} says too little`);
    }),
};
