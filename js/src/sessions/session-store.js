/**
 * The stored sessions: a log for each, and a record of its name and last use. Their number and bytes are limited; the
 * least recently used are removed. A session's user holds its lock, so that no other tab writes to it or removes it.
 */

import { nameOf } from "../cache/entry.js";
import { QuotaError } from "../common/errors.js";
import { AtomicRecords } from "../opfs/atomic-records.js";
import { isQuota, lockedFor, openFiles } from "../opfs/storage.js";
import { hold } from "../opfs/tab-locks.js";
import { SessionLog } from "./session-log.js";

/** @import { Files } from "../opfs/opfs-files.js" */
/** @import { Environment } from "../opfs/storage.js" */
/** @import { Part, Peek } from "./session-log.js" */

/** Folder of sessions, and beginning of the names of locks. It is not the models' folder, which is swept. */
const FOLDER = "anygpu-sessions";
/** How long to wait for a lock: a closed or reloaded tab releases its sessions within this time. In milliseconds. */
const PATIENCE = 3000;

/**
 * @typedef {object} Limits
 * @property {number} maxBytes Limit for all sessions together.
 * @property {number} maxCount
 */

/**
 * @typedef {object} Facts Record of a session beside its log.
 * @property {string} name
 * @property {string} model Identity of its model.
 * @property {number} used Time of the last use, in milliseconds since 1970.
 */

/** @typedef {Facts & { id: string, log: SessionLog }} StoredSession */

/** The stored sessions, for one model. */
export class SessionStore {
  _files;
  _records;
  _locks;
  _limits;
  _model;
  /** Logs of the sessions that were used, by id. @type {Map<string, SessionLog>} */
  _logs = new Map();
  /** Functions that release the sessions in use, by id. @type {Map<string, () => void>} */
  _held = new Map();
  /** Bytes of all other sessions when room was last made. Asking again for each record would take long. */
  _others = 0;

  /**
   * @param {Files} files
   * @param {LockManager} locks
   * @param {Limits} limits
   * @param {string} model
   */
  constructor(files, locks, limits, model) {
    this._files = files;
    this._records = new AtomicRecords(files);
    this._locks = locks;
    this._limits = limits;
    this._model = model;
  }

  /**
   * @param {Environment} environment
   * @param {Limits} limits
   * @param {string} model
   * @returns {Promise<SessionStore | null>} Null if this browser or page keeps nothing.
   */
  static async open(environment, limits, model) {
    const { locks } = environment;
    // Without locks, two tabs could write to one session.
    if (locks === undefined) return null;
    const files = await openFiles(environment, FOLDER);
    return files && new SessionStore(files, locks, limits, model);
  }

  /**
   * Whether a session is stored.
   *
   * @param {string} name
   * @returns {Promise<boolean>}
   */
  async has(name) {
    return (await this._records.read(await this._idOf(name))) !== null;
  }

  /**
   * Returns the log of a session, which is locked for this tab until `letGo`.
   *
   * @param {string} name
   * @returns {Promise<SessionLog>}
   */
  async use(name) {
    const id = await this._idOf(name);
    if (!this._held.has(id)) this._held.set(id, await this._take(id));
    const parts = await this._partsOf(id).catch((error) => {
      this._release(id);
      throw error;
    });
    // Another tab may have written to it since.
    const known = this._logs.get(id);
    const log = known?.has(parts) ? known : new SessionLog(this._files, id, parts);
    this._logs.set(id, log);
    return log;
  }

  /** Releases a session. @param {SessionLog} log */
  letGo({ id }) {
    this._release(id);
  }

  /** @param {string} id */
  _release(id) {
    this._held.get(id)?.();
    this._held.delete(id);
  }

  /**
   * Records the name of a session and the time of its use, before its first record is written.
   *
   * @param {string} name
   * @param {SessionLog} log
   */
  async note(name, log) {
    await this._exclusively(() => this._records.write(log.id, { name, model: this._model, used: Date.now() }));
  }

  /** Removes other sessions until the limits hold. @param {SessionLog} log */
  async tidy(log) {
    await this._exclusively(() => this._makeRoom(log, 0));
  }

  /**
   * Adds a record to a log, and makes room for it.
   *
   * @param {SessionLog} log
   * @param {Uint8Array} record
   * @param {number} from
   */
  async append(log, record, from) {
    const size = record.length;
    if (size > this._limits.maxBytes) throw noRoom(`its ${size} bytes are more than sessions.maxBytes`);
    if (log.size + size > this._limits.maxBytes && from > 0) throw noRoom("it reached sessions.maxBytes");
    if (this._others + log.size + size > this._limits.maxBytes) {
      await this._exclusively(() => this._makeRoom(log, size));
    }
    for (;;) {
      try {
        return await log.append(record, from);
      } catch (error) {
        if (!isQuota(error)) throw error;
        if (!(await this._exclusively(() => this._evictOne(log.id)))) throw noRoom("the browser's storage is full");
        if (from > 0) throw error;
      }
    }
  }

  /** @returns {Promise<{ name: string, bytes: number, newest: Peek }[]>} Sessions of this model, last used first. */
  async list() {
    const all = await this._exclusively(() => this._all());
    const own = [];
    for (const { name, model, log } of all) {
      const newest = model === this._model ? await log.peek() : null;
      // A session without a record was only begun.
      if (newest !== null) own.push({ name, bytes: log.size, newest });
    }
    return own;
  }

  /**
   * @param {string} name
   * @returns {Promise<boolean>} Whether it was there.
   */
  async remove(name) {
    if (!(await this.has(name))) return false;
    const log = await this.use(name);
    await this._exclusively(() => this._drop(log)).finally(() => this.letGo(log));
    return true;
  }

  /** Removes all sessions, also those of other models, except those in use by other tabs. */
  async clear() {
    await this._exclusively(async () => {
      for (const { log } of await this._all()) await this._dropIfFree(log);
    });
  }

  /** Releases all sessions. */
  close() {
    for (const id of [...this._held.keys()]) this._release(id);
  }

  /** @param {string} id */
  async _take(id) {
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(), PATIENCE);
    try {
      return (await this._hold(id, { signal: controller.signal })) ?? (() => {});
    } catch (error) {
      throw controller.signal.aborted ? new Error("another tab has it open") : error;
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * Removes other sessions until a session has room for more bytes.
   *
   * @param {SessionLog} log
   * @param {number} bytes
   */
  async _makeRoom(log, bytes) {
    const { maxBytes, maxCount } = this._limits;
    for (;;) {
      const others = (await this._all()).filter(({ id }) => id !== log.id);
      this._others = others.reduce((sum, other) => sum + other.log.size, 0);
      const fits = others.length < maxCount && this._others + log.size + bytes <= maxBytes;
      if (fits || !(await this._evictOne(log.id))) return;
    }
  }

  /**
   * Removes the least recently used session.
   *
   * @param {string} but Id of the session that must stay.
   * @returns {Promise<boolean>} Whether there was a session that is not in use.
   */
  async _evictOne(but) {
    const others = (await this._all()).filter(({ id }) => id !== but).reverse();
    for (const { log } of others) if (await this._dropIfFree(log)) return true;
    return false;
  }

  /**
   * Removes a session unless another tab uses it.
   *
   * @param {SessionLog} log
   * @returns {Promise<boolean>}
   */
  async _dropIfFree(log) {
    const release = await this._hold(log.id, { ifAvailable: true });
    if (release === null) return false;
    await this._drop(log).finally(release);
    return true;
  }

  /** @param {SessionLog} log */
  async _drop(log) {
    await log.clear();
    await this._records.remove(log.id);
  }

  /** @returns {Promise<StoredSession[]>} Last used first; what a crash left without a record is removed. */
  async _all() {
    /** @type {Map<string, Part[]>} */
    const parts = new Map();
    const names = new Set();
    for (const file of await this._files.names()) {
      const found = SessionLog.partOf(file);
      if (found !== null) parts.set(found.id, [...(parts.get(found.id) ?? []), found.part]);
      const name = AtomicRecords.nameOf(file);
      if (name !== null) names.add(name);
    }
    /** @type {StoredSession[]} */
    const all = [];
    for (const id of new Set([...parts.keys(), ...names])) {
      const facts = names.has(id) ? await this._records.read(id).catch(() => null) : null;
      const log = new SessionLog(this._files, id, parts.get(id) ?? []);
      if (isFacts(facts)) all.push({ ...facts, id, log });
      else await this._dropIfFree(log);
    }
    return all.sort((a, b) => b.used - a.used);
  }

  /** @param {string} id */
  async _partsOf(id) {
    /** @type {Part[]} */
    const parts = [];
    for (const file of await this._files.names()) {
      const found = SessionLog.partOf(file);
      if (found?.id === id) parts.push(found.part);
    }
    return parts;
  }

  /** @param {string} name */
  _idOf(name) {
    return nameOf(`${this._model}/${name}`);
  }

  /**
   * @template T
   * @param {() => Promise<T>} action
   * @returns {Promise<T>}
   */
  async _exclusively(action) {
    return lockedFor(this._locks, FOLDER, action);
  }

  /**
   * @param {string} id
   * @param {LockOptions} options
   */
  _hold(id, options) {
    return hold(this._locks, `${FOLDER}/${id}`, options);
  }
}

/** @param {string} why */
function noRoom(why) {
  return new QuotaError(`there is no room to keep the session: ${why}; remove other sessions or models`);
}

/**
 * @param {any} value
 * @returns {value is Facts}
 */
function isFacts(value) {
  if (value === null || typeof value !== "object") return false;
  return typeof value.name === "string" && typeof value.model === "string" && Number.isFinite(value.used);
}
