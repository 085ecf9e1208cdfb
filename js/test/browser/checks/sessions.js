// Checks of named sessions: taking turns costs only the new tokens, and they outlive their tab.

import { beat, options, sleep } from "../run.js";
import { openFrame } from "../frame.js";
import { FILE, assert, equal, load } from "../expect.js";

const PATH = `/files/${FILE}`;
const SESSION = "of a tab";
const request = { prompt: "Once upon a time", max_tokens: 48, ignore_eos: true };
const kept = { keep: true, every: 100 };
/** Whether to run all cases: software GPUs take long for each tab that is opened and closed. */
const thorough = options.backend === "cpu";
const SAMPLED = { temperature: 1, top_k: 40, seed: 11 };

/** Opens another tab that asks in a session. */
function openTab(sampling) {
  const { backend, worker } = options;
  const load = { backend, worker, nCtx: 128, cache: false, sessions: kept };
  const what = { url: PATH, session: SESSION, request: { ...request, ...sampling }, load };
  return openFrame("/test/answer.html", { what: JSON.stringify(what) });
}

/** Returns the text of a stream. */
async function read(stream) {
  let text = "";
  for await (const chunk of stream) {
    beat();
    text += chunk.choices[0]?.text ?? "";
  }
  return text;
}

/** Returns the files of sessions in the order in which they were written; null where they cannot be changed. */
async function files() {
  const writable = "createWritable" in (globalThis.FileSystemFileHandle?.prototype ?? {});
  if (!writable || !navigator.storage?.getDirectory) return null;
  const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle("anygpu-sessions");
  const found = [];
  for await (const [name, handle] of folder.entries()) {
    if (name.endsWith(".session")) found.push({ number: Number(name.split(".")[1]), handle });
  }
  return found.sort((a, b) => a.number - b.number).map(({ handle }) => handle);
}

async function write(handle, bytes) {
  const stream = await handle.createWritable();
  await stream.write(bytes);
  await stream.close();
}

/** Returns an engine that stores sessions, without those of earlier checks. */
async function empty() {
  const engine = await load(PATH, { sessions: kept });
  await engine.sessions.clear();
  return engine;
}

/** Closes a tab after a number of tokens, opens its session, and continues it. */
async function goesOn(sampling, after, undisturbed) {
  const engine = await load(PATH, { sessions: kept });
  try {
    const [session] = await engine.sessions.list();
    if (session === undefined) {
      assert(after < 24, `nothing was kept after ${after} tokens`);
      return;
    }
    equal(session.name, SESSION, "the name of the session");
    const text = await read(engine.completions.resume(SESSION));
    equal(text, undisturbed, `the text of a tab that was closed after ${after} tokens, with ${JSON.stringify(sampling)}`);
    const [{ finish }] = await engine.sessions.list();
    equal(finish, "length", "how it ended");
    await engine.sessions.clear();
  } finally {
    await engine.dispose();
  }
}

const fresh = ({ usage }) => usage.prompt_tokens - usage.cached_tokens;

export default {
  "conversations in turn cost what is new": async () => {
    const engine = await load();
    const one = { max_tokens: 4, ignore_eos: true };
    const ask = (prompt, session) => engine.completions.create({ ...one, prompt }, { session });
    const [a, b] = [await engine.encode("Once upon a time, there was a little dog"), await engine.encode("The sun")];
    const texts = { a, b };
    for (const name of ["a", "b"]) {
      const answer = await ask(texts[name], name);
      const known = name === "b" ? shared(texts) : 0;
      equal(fresh(answer), texts[name].length - known, `the tokens of ${name} that were computed`);
      texts[name] = [...texts[name], ...answer.tokens];
    }
    for (const name of ["a", "b", "a", "b"]) {
      const prompt = [...texts[name], ...texts.b.slice(1, 3)];
      const answer = await ask(prompt, name);
      equal(fresh(answer), 3, `the tokens of ${name} that were computed`);
      texts[name] = [...prompt, ...answer.tokens];
    }
    const c = [...texts.a.slice(0, 9), ...texts.b.slice(1, 4)];
    equal(fresh(await ask(c, "c")), 3, "the tokens of c that were computed");
    equal((await engine.sessions.list()).map(({ name }) => name).join(), "c,b,a", "the sessions");
    await engine.dispose();
  },

  "conversations at the same time have the texts that each has alone": async () => {
    const engine = await load();
    const asked = { ...request, ...SAMPLED, max_tokens: 24, overflow: "shift", stream: true };
    const prompts = { a: "Once upon a time", b: "The sun" };
    const told = [];
    const answer = async (session, name) => {
      let text = "";
      for await (const { choices } of engine.completions.create({ ...asked, prompt: prompts[session] }, { session: name })) {
        beat();
        told.push(name);
        text += choices[0]?.text ?? "";
      }
      return text;
    };
    const alone = [await answer("a", "a alone"), await answer("b", "b alone")];
    const together = await Promise.all([answer("a", "a"), answer("b", "b")]);
    equal(together.join("\n"), alone.join("\n"), "the texts");
    // One that goes on and on lets the other by, however fast the device is.
    told.length = 0;
    let [other, isLetBy] = [null, false];
    for await (const _ of engine.completions.create({ ...asked, max_tokens: 100_000, prompt: prompts.a }, { session: "a" })) {
      beat();
      other = other ?? answer("b", "b");
      isLetBy = told.includes("b");
      if (isLetBy) break;
    }
    assert(isLetBy, "it waited until the other had ended");
    equal(await other, alone[1], "the text that was let by");
    await engine.dispose();
  },

  "a tab that is closed in the middle of an answer": async () => {
    for (const [sampling, closed] of [[{}, thorough ? [0, 1, 12, 30] : [30]], [SAMPLED, thorough ? [4, 24] : [4]]]) {
      const engine = await empty();
      const undisturbed = (await engine.completions.create({ ...request, ...sampling })).choices[0].text;
      await engine.dispose();
      for (const after of closed) {
        const tab = openTab(sampling);
        await tab.until(({ asked, tokens }) => (after === 0 ? asked : tokens >= after));
        if (after === 0) await sleep(50);
        tab.close();
        await goesOn(sampling, after, undisturbed);
      }
    }
  },

  "tabs that are closed one after the other, at any time": async () => {
    const engine = await empty();
    const begin = performance.now();
    const undisturbed = (await engine.completions.create({ ...request, ...SAMPLED })).choices[0].text;
    const pace = performance.now() - begin;
    await engine.dispose();
    let seed = 5;
    const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
    for (let count = 0; count < (thorough ? 9 : 3); count += 1) {
      const tab = openTab(SAMPLED);
      const asked = count % 3 === 0 ? Promise.resolve() : tab.until(({ asked }) => asked);
      await asked;
      // The tab may be loading or asking, in the middle of its answer, or done.
      await sleep(pace * random());
      tab.close();
      beat();
    }
    const last = openTab(SAMPLED);
    await last.until(({ ended }) => ended);
    last.close();
    await goesOn(SAMPLED, Infinity, undisturbed);
  },

  "a session whose last record is torn": async () => {
    const engine = await empty();
    const asked = { ...request, ...SAMPLED };
    const { text } = (await engine.completions.create(asked, { session: SESSION })).choices[0];
    await engine.dispose();
    const before = await files();
    if (before === null) return "files of the store cannot be changed here";
    assert(before.length > 1, `${before.length} records were kept`);
    const last = new Uint8Array(await (await before[before.length - 1].getFile()).arrayBuffer());
    const lengths = [last.length - 1, 0, 3, 40, last.length >> 1, last.length - 33];
    for (const length of lengths.slice(0, thorough ? 6 : 2)) {
      const [newest] = (await files()).reverse();
      await write(newest, new Uint8Array(await (await newest.getFile()).arrayBuffer()).subarray(0, length));
      const other = await load(PATH, { sessions: kept });
      equal(await read(other.completions.resume(SESSION)), text, `the text of a record of ${length} bytes`);
      await other.dispose();
    }
  },

  "a session that is kept has its next turn in another engine": async () => {
    const engine = await empty();
    const { tokens } = await engine.completions.create(request, { session: SESSION });
    const prompt = [...(await engine.encode(request.prompt)), ...tokens, ...tokens.slice(0, 3)];
    await engine.dispose();
    const other = await load(PATH, { sessions: kept });
    const next = await other.completions.create({ prompt, max_tokens: 1 }, { session: SESSION });
    equal(fresh(next), 4, "the tokens computed");
    equal((await other.tokens({ session: SESSION })).length, prompt.length + 1, "the tokens of the session");
    await other.sessions.clear();
    equal((await other.sessions.list()).length, 0, "the number of sessions");
    await other.dispose();
  },
};

/** Returns the length of two texts' shared prefix, in tokens. */
function shared({ a, b }) {
  const differs = Array.from(b).findIndex((token, index) => token !== a[index]);
  return differs < 0 ? b.length : differs;
}
