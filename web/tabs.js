// The tabs, with the keys that assistive technology expects: Tab stops once, arrows move, Home and End jump.

import { $ } from "./dom.js";
import { onNavigate, read, write } from "./address.js";

const tabs = [...document.querySelectorAll('[role="tab"]')];
const nameOf = (tab) => tab.getAttribute("aria-controls");
const listeners = [];

/** Returns the name of the tab that is shown. */
export const shown = () => nameOf(tabs.find((tab) => tab.getAttribute("aria-selected") === "true") ?? tabs[0]);

/** Calls back with the name of each tab when it is shown. */
export const onShow = (listener) => listeners.push(listener);

/** Shows a tab. */
export function show(name, { push = true, focus = false } = {}) {
  const chosen = tabs.find((tab) => nameOf(tab) === name) ?? tabs[0];
  for (const tab of tabs) {
    tab.setAttribute("aria-selected", String(tab === chosen));
    tab.tabIndex = tab === chosen ? 0 : -1;
    $(nameOf(tab)).hidden = tab !== chosen;
  }
  document.querySelector("main").dataset.tab = nameOf(chosen);
  write("tab", nameOf(chosen), push);
  if (focus) chosen.focus();
  for (const listener of listeners) listener(nameOf(chosen));
}

/** Sets up the tabs, and shows the one that the address names. */
export function startTabs() {
  for (const [index, tab] of tabs.entries()) {
    tab.addEventListener("click", () => show(nameOf(tab)));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: index + 1, ArrowLeft: index - 1, Home: 0, End: tabs.length - 1 }[event.key];
      if (step === undefined) return;
      event.preventDefault();
      show(nameOf(tabs[(step + tabs.length) % tabs.length]), { focus: true });
    });
  }
  onNavigate(() => show(read("tab"), { push: false }));
  show(read("tab"), { push: false });
}
