/** Detects the GPU interfaces of the current thread, and chooses the thread. */

/** @import { BackendChoice, Thread } from "../../index.d.ts" */

/** @typedef {{ webgl: boolean, webgpu: boolean }} Features */

/** An empty wasm module. */
const EMPTY = Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0);

/**
 * @param {BackendChoice} backend Only interfaces that it may need are tried.
 * @returns {Promise<Features>}
 */
export async function features(backend) {
  const wanted = needs(backend);
  const webgpu = wanted.includes("webgpu") && (await hasAdapter());
  return { webgpu, webgl: wanted.includes("webgl") && hasWebgl2() };
}

/**
 * Whether this thread may compile wasm. A page's Content-Security-Policy may differ from that of its workers. Browsers
 * older than `wasm-unsafe-eval` (Chromium 97, Safari 16) read a policy with it as one that forbids wasm.
 */
export function mayCompile() {
  try {
    return new WebAssembly.Module(EMPTY) !== null;
  } catch {
    return false;
  }
}

/**
 * Chooses the thread: the worker, unless only the page's own thread has a GPU interface that the backend needs and may
 * run wasm.
 *
 * @param {BackendChoice} backend
 * @param {Features} worker
 * @param {() => Promise<Features>} page Asked only if it matters.
 * @param {() => boolean} [allowed] Whether the page may compile wasm; asked only if it matters.
 * @returns {Promise<{ thread: Thread, reason: string }>}
 */
export async function chooseThread(backend, worker, page, allowed = mayCompile) {
  const wanted = needs(backend);
  const any = (/** @type {Features} */ has) => wanted.find((name) => has[name]);
  if (wanted.length === 0 || any(worker)) return { thread: "worker", reason: "the page stays responsive" };
  const only = any(await page());
  if (only === undefined) return { thread: "worker", reason: "the page has no other GPU interface than its workers" };
  const name = only === "webgl" ? "WebGL2" : "WebGPU";
  if (!allowed()) {
    return { thread: "worker", reason: `the page has ${name}, but its Content-Security-Policy lets no wasm run here` };
  }
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
    // Browsers keep few contexts alive, and would drop the oldest.
    gl?.getExtension("WEBGL_lose_context")?.loseContext();
    return gl !== null;
  } catch {
    return false;
  }
}
