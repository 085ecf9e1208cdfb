// Knows every GPU object that was made and not deleted, and every context and device, on this thread. Import it before
// anything that makes one.

/** Live objects, by kind. */
const live = new Map();
/** WebGL2 contexts made. */
const contexts = new WeakSet();
/** The newest context, device and worker: no other is kept from the collector. */
const newest = { context: null, device: null, worker: null };
/** What is called once memory of a device is mapped to be written to. */
let onMapped = () => {};

function born(kind, object) {
  if (!live.has(kind)) live.set(kind, new Set());
  live.get(kind).add(object);
}

/** Wraps a method: `after` is told `this`, the result and the arguments. */
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

// Pipelines and bind groups cannot be destroyed; they go with the device, or when nobody holds them.
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

/** How many objects live, by kind; kinds without any are left out. */
export function living() {
  return Object.fromEntries([...live].map(([kind, objects]) => [kind, objects.size]).filter(([, size]) => size));
}

/** Loses the newest context or device, as a driver would. */
export function lose(backend) {
  if (backend === "webgpu") newest.device.destroy();
  else newest.context.getExtension("WEBGL_lose_context").loseContext();
}

/** Loses the newest device once it has mapped memory to be written to so many times: it is taken away from who writes. */
export function loseOnceMapped(times) {
  onMapped = () => {
    times -= 1;
    if (times === 0) queueMicrotask(() => newest.device.destroy());
  };
}

/** Ends the newest worker, as a browser would that is short of memory: nobody is told. */
export function endWorker() {
  newest.worker.terminate();
}

/** Makes the newest worker loop without end, after it has told so many events. */
export function hangWorker(events = 0) {
  newest.worker.postMessage({ hangAfter: events });
}

/** Makes a GPU interface absent; gives what brings it back. */
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

/** Makes WebGL2 contexts seem to have no extension; gives what brings them back. */
export function hideExtensions() {
  const { getExtension, getSupportedExtensions } = gl;
  gl.getExtension = () => null;
  gl.getSupportedExtensions = () => [];
  return () => Object.assign(gl, { getExtension, getSupportedExtensions });
}

/** Workers as some browsers have them. */
const WORKERS = {
  // Firefox before 105, and Safari before 17, as far as WebGL goes.
  "no canvas": (Worker, url, options) => {
    const script = `import "${url}"; delete globalThis.OffscreenCanvas;`;
    return new Worker(URL.createObjectURL(new Blob([script], { type: "text/javascript" })), options);
  },
  // Firefox before 114.
  "no modules": (Worker, url, { name }) => new Worker(url, { name }),
};

/** Makes workers lack something; gives what brings it back. */
export function hinder(lack) {
  const { Worker } = globalThis;
  globalThis.Worker = function (url, options) {
    return WORKERS[lack](Worker, url, options);
  };
  return () => (globalThis.Worker = Worker);
}
