// What this browser keeps of conversations: their turns here, the model's side of them in the engine's sessions. Each tab has
// a conversation of its own, and holds a lock on its place as long as it is open, so that no other tab writes there.

import { session } from "./session.js";

/** As many conversations are kept. Those of further tabs, and of browsers without locks, end with their tab. */
const PLACES = 4;
/** Where a tab remembers its place for a reload. */
const PLACE = "anygpu.place";
/** How long the page from before a reload may take to let go of its place, in milliseconds. */
const PATIENCE = 2000;
const SYSTEM = "anygpu.system";
/** More of a conversation does not fit, in UTF-16 code units: browsers keep 5 MB for a site. */
const LONGEST = 1e6;

/** The place of this tab's conversation, from 1; null before it has one, and if all are taken. */
let place = null;

const nameOf = (number) => (number === 1 ? "chat" : `chat-${number}`);
const keyOf = (number) => `anygpu.${nameOf(number ?? 1)}`;
/** Where the turns of this tab are: what has no place lasts as long as the tab. */
const storage = () => (place === null ? sessionStorage : localStorage);

/** The name of this tab's conversation for the engine; undefined if the engine is not to keep it. */
export const kept = () => (place === null ? undefined : nameOf(place));

/** Whether the conversation that a visitor comes back to is open in another tab. */
export const isBeside = () => place !== 1 && Boolean(navigator.locks);

/** Finds a place for this tab: the one that it had before a reload, else the first that is free. */
export async function takePlace() {
  if (!navigator.locks || place !== null) return;
  const all = Array.from({ length: PLACES }, (_, index) => index + 1);
  const before = all.find((number) => String(number) === attempt(() => sessionStorage.getItem(PLACE)));
  if (before && (await hold(before, PATIENCE))) place = before;
  for (const number of all) {
    if (place !== null) return;
    // Before it is had, since the page may be reloaded meanwhile.
    attempt(() => sessionStorage.setItem(PLACE, number));
    if (await hold(number, 0)) place = number;
  }
}

/** Locks a place until the page ends; resolves to whether that came about within so many milliseconds. */
function hold(number, patience) {
  return new Promise((resolve) => {
    const controller = new AbortController();
    const options = patience > 0 ? { signal: controller.signal } : { ifAvailable: true };
    setTimeout(() => controller.abort(), patience);
    const held = (lock) => {
      resolve(lock !== null);
      return lock && new Promise(() => {});
    };
    navigator.locks.request(keyOf(number), options, held).catch(() => resolve(false));
  });
}

/** What an access to storage gives; undefined where the browser refuses it, so that things last as long as the page. */
function attempt(access) {
  try {
    return access();
  } catch {
    return undefined;
  }
}

/** The turns that are kept. */
export function turnsKept() {
  const turns = attempt(() => JSON.parse(storage().getItem(keyOf(place)))) ?? [];
  const sound = ({ role, content }) => ["user", "assistant"].includes(role) && typeof content === "string";
  return Array.isArray(turns) && turns.every((turn) => turn && sound(turn)) ? turns : [];
}

/** Keeps the turns: of a conversation that does not fit, the newest from a question on. */
export function keep(turns) {
  let first = turns.length;
  for (let room = LONGEST; first > 0; first -= 1) {
    room -= JSON.stringify(turns[first - 1]).length + 1;
    if (room < 0) break;
  }
  while (first > 0 && first < turns.length && turns[first].role !== "user") first += 1;
  attempt(() => storage().setItem(keyOf(place), JSON.stringify(turns.slice(first))));
}

/** The system prompt; empty by default. */
export const systemKept = () => attempt(() => localStorage.getItem(SYSTEM)) ?? "";

/** Keeps the system prompt. */
export const keepSystem = (text) => attempt(() => localStorage.setItem(SYSTEM, text.slice(0, LONGEST)));

/** Forgets this tab's conversation, of other models too. */
export async function forget() {
  attempt(() => storage().removeItem(keyOf(place)));
  await session.engine?.sessions.clear().catch(() => {});
}

/** Forgets the conversations that no other tab has open as well. */
export async function forgetAll() {
  for (let number = 1; number <= PLACES; number += 1) {
    const drop = (lock) => lock && attempt(() => localStorage.removeItem(keyOf(number)));
    await navigator.locks?.request(keyOf(number), { ifAvailable: true }, drop).catch(() => {});
  }
  await forget();
}
