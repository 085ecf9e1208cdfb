/** Which GPU interfaces the current thread has, and which thread to use. */

/** @import { BackendChoice, Thread } from "../index.d.ts" */

/** @typedef {{ webgl: boolean, webgpu: boolean }} Features */

/**
 * @param {BackendChoice} backend Only what it may need is tried.
 * @returns {Promise<Features>}
 */
export async function features(backend) {
  const wanted = needs(backend);
  const webgpu = wanted.includes("webgpu") && (await hasAdapter());
  return { webgpu, webgl: wanted.includes("webgl") && hasWebgl2() };
}

/**
 * Chooses the thread. It is the worker, unless only the page's own thread has what the backend needs.
 *
 * @param {BackendChoice} backend
 * @param {Features} worker
 * @param {() => Promise<Features>} page Asked only if it matters.
 * @returns {Promise<{ thread: Thread, reason: string }>}
 */
export async function chooseThread(backend, worker, page) {
  const wanted = needs(backend);
  const any = (/** @type {Features} */ has) => wanted.find((name) => has[name]);
  if (wanted.length === 0 || any(worker)) return { thread: "worker", reason: "the page stays responsive" };
  const only = any(await page());
  if (only === undefined) return { thread: "worker", reason: "the page has no other GPU interface than its workers" };
  const name = only === "webgl" ? "WebGL2" : "WebGPU";
  return { thread: "main", reason: `this browser has ${name} for pages, but not for their workers` };
}

/**
 * @param {BackendChoice} backend
 * @returns {(keyof Features)[]}
 */
function needs(backend) {
  if (backend === "cpu") return [];
  return backend === "webgl" || backend === "webgpu" ? [backend] : ["webgpu", "webgl"];
}

async function hasAdapter() {
  try {
    const { gpu } = /** @type {{ gpu?: { requestAdapter(): Promise<unknown> } }} */ (navigator);
    return ((await gpu?.requestAdapter()) ?? null) !== null;
  } catch {
    return false;
  }
}

function hasWebgl2() {
  try {
    const canvas = typeof document === "object" ? document.createElement("canvas") : new OffscreenCanvas(1, 1);
    const gl = /** @type {WebGL2RenderingContext | null} */ (canvas.getContext("webgl2"));
    // Browsers keep few contexts alive, and would lose the oldest.
    gl?.getExtension("WEBGL_lose_context")?.loseContext();
    return gl !== null;
  } catch {
    return false;
  }
}
