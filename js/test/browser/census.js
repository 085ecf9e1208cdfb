// Counts objects that are scarce or never released by themselves, on this thread: running workers, the page's
// listeners, channels, blob URLs, locks. Import it before anything that creates one.

import { living } from "./instrument.js";

const workers = new Set();
const addresses = new Set();
const channels = new Map();
/** Listeners of the page, by event. */
const listeners = new Map();

globalThis.Worker = class extends Worker {
  constructor(...args) {
    super(...args);
    workers.add(this);
  }

  terminate() {
    workers.delete(this);
    super.terminate();
  }
};

globalThis.MessageChannel = class extends MessageChannel {
  constructor() {
    super();
    for (const port of [this.port1, this.port2]) channels.set(port, this);
  }
};

/** Wraps a method: `before` gets `this` and the arguments, `after` the result. */
function wrap(owner, name, before, after = () => {}) {
  const method = owner[name];
  owner[name] = function (...args) {
    before(this, args);
    const result = method.apply(this, args);
    after(result);
    return result;
  };
}

// Closing one end closes the channel.
wrap(MessagePort.prototype, "close", (port) => {
  const channel = channels.get(port);
  for (const end of channel ? [channel.port1, channel.port2] : []) channels.delete(end);
});
wrap(URL, "createObjectURL", () => {}, (address) => addresses.add(address));
wrap(URL, "revokeObjectURL", (_, [address]) => addresses.delete(address));

const isPage = (target) => target === undefined || target === globalThis || target === document;
const key = (target, type) => `${target === document ? "document" : "window"} ${type}`;
wrap(EventTarget.prototype, "addEventListener", (target, [type, listener]) => {
  if (!isPage(target)) return;
  const all = listeners.get(key(target, type)) ?? new Set();
  listeners.set(key(target, type), all.add(listener));
});
wrap(EventTarget.prototype, "removeEventListener", (target, [type, listener]) => {
  if (isPage(target)) listeners.get(key(target, type))?.delete(listener);
});

async function locks() {
  if (navigator.locks === undefined) return 0;
  const { held, pending } = await navigator.locks.query();
  return held.length + pending.length;
}

/** Returns the number of each kind; kinds without any are left out. */
export async function census() {
  const counts = {
    ...living(),
    workers: workers.size,
    channels: channels.size / 2,
    addresses: addresses.size,
    locks: await locks(),
    ...Object.fromEntries([...listeners].map(([name, all]) => [`listeners of ${name}`, all.size])),
  };
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0));
}
