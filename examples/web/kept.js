// What this browser keeps of the conversation: its turns here, the model's side of it in the engine's sessions.

import { session } from "./session.js";

/** The name of the conversation for the engine. */
export const SESSION = "chat";
const KEY = "anygpu.chat";
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

/** Keeps the turns. */
export function keep(turns) {
  try {
    const text = JSON.stringify(turns);
    if (text.length <= LONGEST) localStorage.setItem(KEY, text);
    else localStorage.removeItem(KEY);
  } catch {
    // They then last as long as the page.
  }
}

/** Forgets everything, of other models too. */
export async function forget() {
  try {
    localStorage.removeItem(KEY);
  } catch {
    // Then nothing was kept.
  }
  await session.engine?.sessions.clear().catch(() => {});
}
