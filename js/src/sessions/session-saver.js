/** Stores the sessions of an engine: imports them when they are asked for, and saves them as they grow. */

import { CacheError } from "../common/errors.js";
import { within } from "../common/timeout.js";
import { SessionStore } from "./session-store.js";

/** @import { Environment } from "../opfs/storage.js" */
/** @import { SessionLog } from "./session-log.js" */
/** @import { Limits } from "./session-store.js" */

/** @typedef {{ keep: boolean, every: number } & Limits} KeepOptions */

/** @typedef {{ every: number, onSnapshot: (record: Uint8Array, from: number) => void }} Saving How a text is saved. */

/**
 * @typedef {object} Texts The engine's texts.
 * @property {() => string} identity
 * @property {(name: string) => Promise<boolean>} has
 * @property {(name: string, bytes: Uint8Array) => Promise<unknown>} import Takes a text that is kept.
 * @property {(name: string, isKept: boolean, isReady: boolean) => void} kept
 */

/** @typedef {(name: string, error: unknown) => void} OnUnkept Told when a session cannot be kept. */

/** How long an answer waits until it is written, in milliseconds. */
const PATIENCE = 1000;
/** Codes of errors that are the session's fault and not the engine's. */
const UNFIT = ["options", "context"];

/** An error of the engine, to tell it from errors of storage. */
class Failed extends Error {
  /** @param {unknown} why */
  constructor(why) {
    super("the engine failed");
    this.why = why;
  }
}

/** Stores the sessions of one engine. */
export class SessionSaver {
  _engine;
  _store;
  _every;
  /** Chain of writes, one after the other. */
  _writing = Promise.resolve();

  /**
   * @param {Texts} engine
   * @param {SessionStore} store
   * @param {number} every In milliseconds.
   */
  constructor(engine, store, every) {
    this._engine = engine;
    this._store = store;
    this._every = every;
  }

  /**
   * @param {Texts} engine
   * @param {KeepOptions | undefined} options
   * @param {Environment} environment
   * @returns {Promise<SessionSaver | null>} Null if nothing is to be kept, or nothing can be: then nothing is lost but that.
   */
  static async start(engine, options, environment) {
    if (!options?.keep) return null;
    const store = await SessionStore.open(environment, options, engine.identity()).catch(() => null);
    return store && new SessionSaver(engine, store, options.every);
  }

  /**
   * Imports a stored session into the engine, unless the engine has it.
   *
   * @param {string} name
   * @param {OnUnkept} onUnkept
   */
  async bring(name, onUnkept) {
    await this._writing;
    if (await this._engine.has(name)) return;
    const isKept = await this._store.has(name).catch(() => false);
    const log = isKept ? await this._use(name, onUnkept) : null;
    if (log !== null) this._store.letGo(log);
  }

  /**
   * Locks a session's log, and imports the session into the engine unless the engine has it.
   *
   * @param {string} name
   * @param {OnUnkept} onUnkept
   * @returns {Promise<SessionLog | null>} Null if it cannot be kept.
   */
  async _use(name, onUnkept) {
    let log = null;
    try {
      log = await this._store.use(name);
      if (await this._engine.has(name)) return log;
      const records = await log.read();
      if (records.length > 0 && !(await this._import(name, records))) await log.clear();
      return log;
    } catch (error) {
      // Nobody else releases what could not be used.
      if (log !== null) this._store.letGo(log);
      if (error instanceof Failed) throw error.why;
      onUnkept(name, error);
      return null;
    }
  }

  /**
   * @param {string} name
   * @param {Uint8Array[]} records
   * @returns {Promise<boolean>} Whether the engine can go on with it.
   */
  async _import(name, records) {
    const bytes = new Uint8Array(await new Blob(/** @type {BlobPart[]} */ (records)).arrayBuffer());
    try {
      await this._engine.import(name, bytes);
      return true;
    } catch (error) {
      // The session was damaged, or does not fit the context any more. Any other error is not the session's fault.
      if (UNFIT.includes(/** @type {any} */ (error)?.code)) return false;
      throw new Failed(error);
    }
  }

  /**
   * Generates in a session, and saves it meanwhile.
   *
   * @template T
   * @param {string} name
   * @param {OnUnkept} onUnkept
   * @param {(saving: Saving | undefined) => Promise<T>} generate
   * @returns {Promise<T>}
   */
  async during(name, onUnkept, generate) {
    await this._writing;
    const log = await this._use(name, onUnkept);
    if (log === null) return generate(undefined);
    try {
      const result = await generate(this._saving(name, log, onUnkept));
      // A caller who has the answer may close the tab.
      await within(PATIENCE, this._writing, () => new Error("storage is slow")).catch(() => {});
      return result;
    } finally {
      this._writing = this._writing.then(() => this._store.letGo(log));
    }
  }

  /**
   * @param {string} name
   * @param {SessionLog} log
   * @param {OnUnkept} onUnkept
   */
  _saving(name, log, onUnkept) {
    // Asks for a complete record first if nothing can be added to the log.
    if (log.isLong) this._engine.kept(name, false, true);
    const noted = this._store.note(name, log);
    // The first write reports this error, if there is one.
    noted.catch(() => {});
    const write = async (/** @type {Uint8Array} */ record, /** @type {number} */ from) => {
      try {
        await noted;
        await this._store.append(log, record, from);
        this._engine.kept(name, !log.isLong, true);
      } catch (error) {
        // If not even a complete record can be stored, no more snapshots are taken until the end.
        this._engine.kept(name, false, from > 0);
        if (from === 0) onUnkept(name, error);
      }
    };
    // Runs after the first record, which goes first since the tab may be closed soon.
    let tidy = () => this._store.tidy(log).catch((error) => onUnkept(name, error));
    const onSnapshot = (/** @type {Uint8Array} */ record, /** @type {number} */ from) => {
      this._writing = this._writing.then(() => write(record, from)).then(tidy);
      tidy = async () => {};
    };
    return { every: this._every, onSnapshot };
  }

  /** Lists the sessions of this model. */
  async list() {
    await this._writing;
    return this._store.list();
  }

  /** @param {string} name */
  async remove(name) {
    await this._writing;
    return guarded(() => this._store.remove(name));
  }

  /** Removes all sessions, also those of other models. */
  async clear() {
    await this._writing;
    await guarded(() => this._store.clear());
  }

  /** Releases all sessions at once: the engine stopped. */
  abandon() {
    this._store.close();
  }

  /** Waits for pending writes, and releases all sessions. */
  async close() {
    await this._writing;
    this._store.close();
  }
}

/**
 * @template T
 * @param {() => Promise<T>} action
 * @returns {Promise<T>}
 */
async function guarded(action) {
  try {
    return await action();
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause);
    throw new CacheError(`the browser's storage failed (${message}); try again`, { cause });
  }
}
