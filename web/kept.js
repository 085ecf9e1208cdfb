// What this browser keeps of the conversation: its turns here, the model's side of it in the engine's sessions.

import { session } from "./session.js";

/** The name of the conversation for the engine. */
export const SESSION = "chat";
const KEY = "anygpu.chat";
const SYSTEM = "anygpu.system";
/** More of a conversation does not fit, in UTF-16 code units: browsers keep 5 MB for a site. */
const LONGEST = 1e6;

/** The turns that are kept. */
export function turnsKept() {
  try {
    const turns = JSON.parse(localStorage.getItem(KEY)) ?? [];
    const sound = ({ role, content }) => ["user", "assistant"].includes(role) && typeof content === "string";
    return Array.isArray(turns) && turns.every(sound) ? turns : [];
  } catch {
    return [];
  }
}

/** Keeps the turns: of a conversation that does not fit, the newest from a question on. */
export function keep(turns) {
  let first = turns.length;
  for (let room = LONGEST; first > 0; first -= 1) {
    room -= JSON.stringify(turns[first - 1]).length + 1;
    if (room < 0) break;
  }
  while (first > 0 && first < turns.length && turns[first].role !== "user") first += 1;
  try {
    localStorage.setItem(KEY, JSON.stringify(turns.slice(first)));
  } catch {
    // They then last as long as the page.
  }
}

/** What every conversation begins with; nothing by default. */
export function systemKept() {
  try {
    return localStorage.getItem(SYSTEM) ?? "";
  } catch {
    return "";
  }
}

/** Keeps what conversations begin with. */
export function keepSystem(text) {
  try {
    localStorage.setItem(SYSTEM, text.slice(0, LONGEST));
  } catch {
    // It then lasts as long as the page.
  }
}

/** Forgets the conversation, of other models too. */
export async function forget() {
  try {
    localStorage.removeItem(KEY);
  } catch {
    // Then nothing was kept.
  }
  await session.engine?.sessions.clear().catch(() => {});
}
