/** The stage of clients that were made for OpenAI's API, which talk to `anygpu serve`. */

import { spawn } from "node:child_process";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { JS, ROOT, WORK, commandLine, counted, must, run } from "./common.js";

const KEY = "a key";

/** Arguments of pip: only named packages, and none that has to be built. */
const PIP = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--root-user-action", "ignore", "--no-deps", "--only-binary", ":all:"];

/** Runs the clients. The command line is built, unless $ANYGPU is the program. */
export async function openai() {
  const project = join(WORK, "openai");
  cpSync(join(JS, "test", "openai"), project, { recursive: true });
  must("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], project);
  must("python3", [...PIP, "--target", "python", "--requirement", "requirements.txt"], project);
  const program = commandLine();
  const fixture = (/** @type {string} */ name) => join(ROOT, "models", "fixtures", `${name}.gguf`);
  const models = ["gab", fixture("bert-mean"), fixture("by-heart")];
  const servers = models.map((model) => serve(program, model));
  try {
    const addresses = await Promise.all(servers.map(({ address }) => address));
    const scripts = [
      [process.execPath, "clients.js", ...addresses, KEY],
      ["env", "PYTHONPATH=python", "python3", "clients.py", ...addresses, KEY, join(ROOT, "docs", "server.md")],
    ];
    const results = scripts.map(([program = "", ...args]) => {
      const { ok, stdout, output } = run(program, args, project);
      if (!ok) throw new Error(output);
      return JSON.parse(stdout.trimEnd().split("\n").pop() ?? "");
    });
    return counted(results.flat());
  } finally {
    for (const { child } of servers) child.kill();
  }
}

/** Starts a server, and returns its address once it answers. @param {string} program @param {string} model */
function serve(program, model) {
  const args = ["serve", "--backend", "cpu", "--port", "0", "--api-key", KEY, "--model", model];
  const child = spawn(program, args, { stdio: ["ignore", "ignore", "pipe"] });
  /** @type {Promise<string>} */
  const address = new Promise((resolve, reject) => {
    let said = "";
    child.stderr.on("data", (data) => {
      said += data;
      const found = /serving .* at (\S+)/.exec(said);
      if (found?.[1]) resolve(found[1]);
    });
    child.on("error", reject);
    child.on("exit", () => reject(new Error(`anygpu serve ended: ${said}`)));
  });
  return { child, address };
}
