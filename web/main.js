// The page: opens a model on the backend that the URL names, tells a story, and connects the parts.

import { $ } from "./dom.js";
import { onNavigate, read, write } from "./address.js";
import { backendLabel, fileName } from "./format.js";
import { startDrop } from "./drop.js";
import { startFigures } from "./figures.js";
import { later, styles } from "./later.js";
import { clearError, showError } from "./notice.js";
import { startProgress } from "./progress.js";
import { showChoice, showLooking, showNothing, showReport, showRung, startSwitch } from "./report.js";
import { BUILT_IN, session } from "./session.js";
import { startSettings } from "./settings.js";
import { carryOn, isUnderWay, startStory, tellFirst } from "./story.js";
import { onShow, show, shown, startTabs } from "./tabs.js";
import { startTuning } from "./tune.js";

const BACKENDS = ["auto", "webgpu", "webgl", "cpu"];

const wantedBackend = () => (BACKENDS.includes(read("backend")) ? read("backend") : "auto");

/** Returns the model that the address names, else the built-in one. */
function firstModel() {
  const source = read("model");
  return source ? { source, name: fileName(source) } : BUILT_IN;
}

/** Loads a model that the visitor chose, and shows the tab that uses it. */
async function loadModel(model) {
  clearError();
  if (!(await session.load(model))) return;
  show(session.canChat ? "chat" : "story");
  if (!session.canChat) tellFirst();
}

/** Moves the model to another backend. A story in progress continues there, or here if the other backend is refused. */
async function switchBackend(backend) {
  clearError();
  const onward = isUnderWay();
  await session.load(session.model ?? firstModel(), backend);
  if (onward && session.engine) carryOn();
}

/**
 * Whether an engine was opened. The first visit to a tab that needs one opens it; the other tabs do not download a
 * model.
 */
let opened = false;
async function open(tab) {
  if (opened || (tab !== "story" && tab !== "chat")) return;
  opened = true;
  const model = firstModel();
  await session.load(model, wantedBackend());
  // A link may name a backend that does not work here. The error says so, and the page continues with the best one that
  // does.
  if (refused) await session.load(model, "auto");
  if (!session.engine) return;
  if (session.canChat) show("chat");
  else if (shown() === "story") tellFirst();
}

/** Tabs that are loaded when they are first shown. */
const views = {
  chat: later(async () => {
    const [chat] = await Promise.all([import("./chat.js"), styles("answer.css", "tools.css")]);
    await chat.startChat(reportRunError, loadModel);
    return chat;
  }),
  models: later(async () => {
    const [models] = await Promise.all([import("./models.js"), styles("tools.css")]);
    models.startModels(loadModel, async () => (await views.chat()).startAfresh());
    return models;
  }),
  race: later(async () => {
    const [race] = await Promise.all([import("./race.js"), styles("race.css", "tools.css")]);
    race.startRace();
    return race;
  }),
  conformance: later(async () => {
    const [conformance] = await Promise.all([import("./conformance.js"), styles("tools.css")]);
    conformance.startConformance();
    return conformance;
  }),
};

/** Whether the last load failed because its backend does not work here. */
let refused = false;

function reportLoadError({ error, model, backend }) {
  refused = Boolean(error.report) && backend !== "auto";
  const actions = refused ? [] : [["Try again", () => loadModel(model)]];
  if (!session.engine && !refused && model !== BUILT_IN)
    actions.push(["Use the built-in model", () => loadModel(BUILT_IN)]);
  showError(error, actions);
}

function reportRunError(error) {
  const broken = ["lost", "memory", "crash", "disposed"].includes(error.code);
  showError(error, broken ? [["Load the model again", () => loadModel(session.model)]] : []);
}

startSettings();
startProgress();
startFigures();
startSwitch(switchBackend);
startStory(reportRunError);
startTuning(showError);
startDrop(loadModel);

session.addEventListener("loading", ({ detail }) => {
  refused = false;
  showChoice(detail.backend);
  showLooking(detail.backend);
});
session.addEventListener("progress", ({ detail: { rung } }) => rung && showRung(rung));
session.addEventListener("ready", () => {
  showReport(session.engine.report, session.backend);
  write("backend", session.backend);
  // A reload then finds the model that the conversation was with; a local file has no address.
  const { source } = session.model;
  write("model", typeof source === "string" && source !== BUILT_IN.source ? source : null);
});
session.addEventListener("recovered", ({ detail: { from, to, ms } }) => {
  showReport(session.engine.report, session.backend);
  const message = `${backendLabel(from)} lost its device; generation continued on ${backendLabel(to)} after ${(ms / 1000).toFixed(1)} s.`;
  showError(Object.assign(new Error(message), { code: "lost" }));
});
session.addEventListener("failed", ({ detail }) => reportLoadError(detail));
for (const event of ["failed", "cancelled"]) {
  session.addEventListener(event, ({ detail }) => {
    showChoice(session.backend);
    const report = session.engine?.report ?? detail?.error.report;
    if (report) showReport(report, session.backend);
    else showNothing();
  });
}
addEventListener("keydown", (event) => {
  if (event.key === "Escape") session.stop();
});
onNavigate(() => {
  if (read("backend") && session.engine && wantedBackend() !== session.backend) switchBackend(wantedBackend());
});

// Report and figures are open where there is enough room.
for (const id of ["report", "figures-fold"]) $(id).open = matchMedia("(min-width: 60rem)").matches;
onShow(async (tab) => {
  open(tab);
  try {
    const view = await views[tab]?.();
    if (tab === "models") view.drawKept();
  } catch (error) {
    showError(error);
  }
});
startTabs();
