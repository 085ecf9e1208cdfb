// Conversations that are disturbed at random moments, each by its seed: the device or context is lost, the worker ends,
// or the tab is closed; while the model loads, in a prompt, in an answer, or in between. Each must end with the
// undisturbed text.

import { AnyGpu, Results, beat, median, options, say, sleep } from "./run.js";
import { FILE } from "./expect.js";

const PATH = `/files/${FILE}`;
const SESSION = "disturbed";
/** Options of sessions: frequent snapshots, so that little is lost. */
const SESSIONS = { keep: true, every: 100 };
const WORDS = ["Once upon a time, there was a little dog", "The sun", "Lily and Tom went to the park. They saw"];
/** How long a conversation may make no progress, in milliseconds. */
const PATIENCE = 60_000;

/** Returns a generator of numbers from 0 to 1 by a seed (mulberry32). */
function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Opens a conversation in another tab. `next` returns its reports, in order. */
function openTab(what) {
  const frame = document.createElement("iframe");
  const heard = [];
  let wake = () => {};
  const listen = ({ data, source }) => {
    if (source !== frame.contentWindow) return;
    beat();
    heard.push({ ...data, when: performance.now() });
    wake();
  };
  addEventListener("message", listen);
  frame.src = `/test/talk.html?${new URLSearchParams({ what: JSON.stringify(what) })}`;
  document.body.append(frame);
  return {
    async next() {
      const begin = performance.now();
      while (heard.length === 0) {
        if (performance.now() - begin > PATIENCE) return { error: `nothing was heard for ${PATIENCE} ms`, when: performance.now() };
        await Promise.race([new Promise((resolve) => (wake = resolve)), sleep(1000)]);
      }
      return heard.shift();
    },
    tell: (message) => frame.contentWindow.postMessage(message, location.origin),
    close() {
      removeEventListener("message", listen);
      frame.remove();
    },
  };
}

/** Returns the disturbance of a seed. */
function plan(seed) {
  const draw = random(seed);
  const pick = (list) => list[Math.floor(draw() * list.length)];
  const sampling = draw() < 0.5 ? { temperature: 0 } : { temperature: 1, top_k: 40, seed: Math.floor(draw() * 1e6) };
  const turns = [24, 16].map((max_tokens, turn) => ({
    words: turn === 0 ? pick(WORDS) : " Then they",
    request: { max_tokens, ignore_eos: true, ...sampling },
  }));
  const kinds = options.backend === "cpu" ? ["worker", "tab"] : ["device", "worker", "tab"];
  const kind = pick(kinds);
  const worker = kind === "worker" || (kind === "tab" && draw() < 0.5);
  const phase = pick(["load", "prefill", "decode", "idle"]);
  const turn = phase === "load" ? 0 : pick([0, 1]);
  return { turns, kind, worker, phase, turn, part: draw() };
}

/** Whether the moment of a plan has come, given the last report. */
function isNow({ phase, turn, part, turns }, told) {
  if (phase === "load") return told.fraction !== undefined && told.phase !== "connect" && told.fraction >= part * 0.9;
  if (phase === "idle") return told.loaded === turn;
  if (phase === "prefill") return told.asked === turn;
  return told.turn === turn && told.tokens === 1 + Math.floor(part * (turns[turn].request.max_tokens - 2));
}

/**
 * Holds a conversation, and disturbs it once as planned, if asked to. Returns the answers, and the time from the
 * disturbance to the next token, in milliseconds.
 */
async function hold(plan, disturb) {
  const { turns, kind, worker, phase, part } = plan;
  const load = { backend: options.backend, worker, nCtx: 160, cache: false, sessions: SESSIONS };
  const answers = [];
  const open = () => openTab({ url: PATH, load, turns, first: answers.length, session: SESSION, texts: answers });
  let tab = open();
  let [begin, took] = [null, null];
  try {
    for (;;) {
      const told = await tab.next();
      if (told.error !== undefined) throw new Error(told.error);
      if (begin !== null && took === null && told.tokens !== undefined) took = told.when - begin;
      const now = disturb && begin === null && isNow(plan, told);
      if (now) {
        if (phase === "prefill") await sleep(part * 40);
        begin = performance.now();
        if (kind === "tab") {
          tab.close();
          if (told.answer !== undefined) answers.push(told.answer);
          tab = open();
          continue;
        }
        tab.tell({ lose: kind });
      }
      if (told.answer !== undefined) answers.push(told.answer);
      if (told.loaded !== undefined) tab.tell({ turn: told.loaded });
      if (told.ended) return { answers, took };
    }
  } finally {
    tab.close();
  }
}

/** Removes everything that an earlier conversation stored. */
async function forget() {
  const engine = await AnyGpu.load(PATH, { backend: "cpu", cache: false, nCtx: 160, sessions: SESSIONS });
  await engine.sessions.clear();
  await engine.dispose();
}

export default async function kills() {
  const results = new Results();
  const times = [];
  for (let seed = options.seed; seed < options.seed + options.kills; seed++) {
    const planned = plan(seed);
    const { kind, phase, turn } = planned;
    const name = `${seed}: ${kind} lost, ${phase} of turn ${turn + 1}`;
    let failure;
    try {
      await forget();
      const undisturbed = await hold(planned, false);
      await forget();
      const disturbed = await hold(planned, true);
      const [found, expected] = [disturbed, undisturbed].map(({ answers }) => JSON.stringify(answers));
      if (found !== expected) failure = `${found} instead of ${expected}`;
      else if (disturbed.took === null) failure = "it was not disturbed";
      else times.push({ kind, phase, ms: disturbed.took });
    } catch (error) {
      failure = `${error?.name}: ${error?.message}`;
    }
    await results.add(name, failure);
  }
  for (const kind of ["device", "worker", "tab"]) {
    const of = times.filter((time) => time.kind === kind).map(({ ms }) => ms);
    if (of.length) await say(`${kind}: ${of.length} times, the next token after ${median(of).toFixed(0)} ms`);
  }
  if (times.length) await say(`in all: the next token after ${median(times.map(({ ms }) => ms)).toFixed(0)} ms`);
  return { ...results, times };
}
