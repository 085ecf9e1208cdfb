// Tracks all GPU objects, contexts and devices on this thread that were created and not deleted. Import it before
// anything that creates one.

/** Number of live objects, by kind. */
const live = new Map();
/** WebGL2 contexts that were created. */
const contexts = new WeakSet();
/** Newest context, device and worker. Only these are kept from the garbage collector. */
const newest = { context: null, device: null, worker: null };
/** Called after memory of a device was mapped for writing. */
let onMapped = () => {};

function born(kind, object) {
  if (!live.has(kind)) live.set(kind, new Set());
  live.get(kind).add(object);
}

/** Wraps a method: `after` gets `this`, the result and the arguments. */
function wrap(prototype, name, after) {
  const method = prototype?.[name];
  if (!method) return;
  prototype[name] = function (...args) {
    const result = method.apply(this, args);
    after(this, result, args);
    return result;
  };
}

const GL_KINDS = [
  "Buffer", "Framebuffer", "Program", "Query", "Renderbuffer", "Sampler", "Shader", "Texture", "TransformFeedback",
  "VertexArray",
];

const gl = globalThis.WebGL2RenderingContext?.prototype;
for (const kind of GL_KINDS) {
  wrap(gl, `create${kind}`, (_, object) => object && born(kind, object));
  wrap(gl, `delete${kind}`, (_, __, [object]) => live.get(kind)?.delete(object));
}
wrap(gl, "fenceSync", (_, object) => object && born("Sync", object));
wrap(gl, "deleteSync", (_, __, [object]) => live.get("Sync")?.delete(object));

for (const Canvas of [globalThis.HTMLCanvasElement, globalThis.OffscreenCanvas]) {
  wrap(Canvas?.prototype, "getContext", (_, context, [kind]) => {
    if (kind !== "webgl2" || !context || contexts.has(context)) return;
    contexts.add(context);
    newest.context = context;
  });
}

// Pipelines and bind groups cannot be destroyed; they go with the device or with their last reference.
for (const kind of ["Buffer", "Texture", "QuerySet"]) {
  wrap(globalThis.GPUDevice?.prototype, `create${kind}`, (device, object) => {
    object.deviceOfTest = device;
    born(`GPU${kind}`, object);
  });
  wrap(globalThis[`GPU${kind}`]?.prototype, "destroy", (object) => live.get(`GPU${kind}`)?.delete(object));
}
wrap(globalThis.GPUDevice?.prototype, "destroy", (device) => {
  for (const objects of live.values()) {
    for (const object of objects) if (object.deviceOfTest === device) objects.delete(object);
  }
});
wrap(globalThis.GPUBuffer?.prototype, "getMappedRange", (buffer) => {
  if (buffer.usage & globalThis.GPUBufferUsage.MAP_WRITE) onMapped();
});
wrap(globalThis.GPUAdapter?.prototype, "requestDevice", (_, promise) => {
  promise.then((device) => (newest.device = device), () => {});
});

globalThis.Worker = class extends Worker {
  constructor(...args) {
    super(...args);
    newest.worker = this;
  }
};

/** Returns the number of live objects by kind; kinds without any are left out. */
export function living() {
  return Object.fromEntries([...live].map(([kind, objects]) => [kind, objects.size]).filter(([, size]) => size));
}

/** Loses the newest context or device, as a driver would. */
export function lose(backend) {
  if (backend === "webgpu") newest.device.destroy();
  else newest.context.getExtension("WEBGL_lose_context").loseContext();
}

/** Loses the newest device after its memory was mapped for writing a number of times, while it is being written. */
export function loseOnceMapped(times) {
  onMapped = () => {
    times -= 1;
    if (times === 0) queueMicrotask(() => newest.device.destroy());
  };
}

/** Ends the newest worker, as a browser does that is short of memory: without an event. */
export function endWorker() {
  newest.worker.terminate();
}

/** Makes the newest worker loop forever, after it has sent a number of events. */
export function hangWorker(events = 0) {
  newest.worker.postMessage({ hangAfter: events });
}

/** Hides a GPU interface; returns a function that restores it. */
export function hide(backend) {
  if (backend === "webgpu") {
    Object.defineProperty(navigator, "gpu", { value: undefined, configurable: true });
    return () => delete navigator.gpu;
  }
  const canvases = [HTMLCanvasElement, globalThis.OffscreenCanvas].filter(Boolean);
  const methods = canvases.map((Canvas) => Canvas.prototype.getContext);
  for (const [index, Canvas] of canvases.entries()) {
    Canvas.prototype.getContext = function (kind, ...rest) {
      return kind === "webgl2" ? null : methods[index].call(this, kind, ...rest);
    };
  }
  return () => canvases.forEach((Canvas, index) => (Canvas.prototype.getContext = methods[index]));
}

/** Hides the extensions of WebGL2 contexts; returns a function that restores them. */
export function hideExtensions() {
  const { getExtension, getSupportedExtensions } = gl;
  gl.getExtension = () => null;
  gl.getSupportedExtensions = () => [];
  return () => Object.assign(gl, { getExtension, getSupportedExtensions });
}

/** Restricted workers, as some browsers have them. */
const WORKERS = {
  // Firefox before 105, and Safari before 17 for WebGL.
  "no canvas": (Worker, url, options) => {
    const script = `import "${url}"; delete globalThis.OffscreenCanvas;`;
    return new Worker(URL.createObjectURL(new Blob([script], { type: "text/javascript" })), options);
  },
  // Firefox before 114.
  "no modules": (Worker, url, { name }) => new Worker(url, { name }),
};

/** Makes workers lack something; returns a function that restores them. */
export function hinder(lack) {
  const { Worker } = globalThis;
  globalThis.Worker = function (url, options) {
    return WORKERS[lack](Worker, url, options);
  };
  return () => (globalThis.Worker = Worker);
}
