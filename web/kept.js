// Stored conversations. Their turns are stored here, the model's side of them in the engine's sessions. Each tab has a
// conversation of its own, and holds a lock on its place as long as it is open, so that no other tab writes there.

import { session } from "./session.js";

/** Number of stored conversations. Those of further tabs, and of browsers without locks, end with their tab. */
const PLACES = 4;
/** Key under which a tab remembers its place for a reload. */
const PLACE = "anygpu.place";
/** How long the page from before a reload may take to release its place, in milliseconds. */
const PATIENCE = 2000;
const SYSTEM = "anygpu.system";
/** Limit for a conversation, in UTF-16 code units: browsers store 5 MB for a site. */
const LONGEST = 1e6;

/** Place of this tab's conversation, from 1; null before it has one, and if all are taken. */
let place = null;

const nameOf = (number) => (number === 1 ? "chat" : `chat-${number}`);
const keyOf = (number) => `anygpu.${nameOf(number ?? 1)}`;
/** Returns the storage of this tab's turns. Without a place they last as long as the tab. */
const storage = () => (place === null ? sessionStorage : localStorage);

/** Returns the name of this tab's session; undefined if it has no place. */
export const kept = () => (place === null ? undefined : nameOf(place));

/** Whether another tab may have the first conversation, which a visitor comes back to. */
export const isBeside = () => place !== 1 && Boolean(navigator.locks);

/** Finds a place for this tab: the one that it had before a reload, else the first free one. */
export async function takePlace() {
  if (!navigator.locks || place !== null) return;
  const all = Array.from({ length: PLACES }, (_, index) => index + 1);
  const before = all.find((number) => String(number) === attempt(() => sessionStorage.getItem(PLACE)));
  if (before && (await hold(before, PATIENCE))) place = before;
  for (const number of all) {
    if (place !== null) return;
    // Set before the lock is taken, since the page may be reloaded meanwhile.
    attempt(() => sessionStorage.setItem(PLACE, number));
    if (await hold(number, 0)) place = number;
  }
}

/** Locks a place until the page ends. Resolves to whether that worked within a number of milliseconds. */
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

/** Accesses storage; returns undefined if the browser refuses it, so that values last as long as the page. */
function attempt(access) {
  try {
    return access();
  } catch {
    return undefined;
  }
}

/** Returns the stored turns. */
export function turnsKept() {
  const turns = attempt(() => JSON.parse(storage().getItem(keyOf(place)))) ?? [];
  const sound = ({ role, content }) => ["user", "assistant"].includes(role) && typeof content === "string";
  return Array.isArray(turns) && turns.every((turn) => turn && sound(turn)) ? turns : [];
}

/** Stores the turns. If a conversation is too long, only its newest turns from a question on are stored. */
export function keep(turns) {
  let first = turns.length;
  for (let room = LONGEST; first > 0; first -= 1) {
    room -= JSON.stringify(turns[first - 1]).length + 1;
    if (room < 0) break;
  }
  while (first > 0 && first < turns.length && turns[first].role !== "user") first += 1;
  attempt(() => storage().setItem(keyOf(place), JSON.stringify(turns.slice(first))));
}

/** Returns the stored system prompt; empty by default. */
export const systemKept = () => attempt(() => localStorage.getItem(SYSTEM)) ?? "";

/** Stores the system prompt. */
export const keepSystem = (text) => attempt(() => localStorage.setItem(SYSTEM, text.slice(0, LONGEST)));

/** Deletes this tab's turns, and the engine's stored session of them. Other conversations stay. */
export async function forget() {
  attempt(() => storage().removeItem(keyOf(place)));
  const name = kept();
  if (name !== undefined) await session.engine?.sessions.remove(name).catch(() => {});
}

/** Deletes this tab's conversation, and those that no other tab has open, with the stored sessions of all models. */
export async function forgetAll() {
  for (let number = 1; number <= PLACES; number += 1) {
    const drop = (lock) => lock && attempt(() => localStorage.removeItem(keyOf(number)));
    await navigator.locks?.request(keyOf(number), { ifAvailable: true }, drop).catch(() => {});
  }
  await forget();
  await session.engine?.sessions.clear().catch(() => {});
}
