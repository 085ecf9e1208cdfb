/** Checks of values. Each error names the field, the values it accepts, and the value it was given. */

import { OptionsError } from "./errors.js";

/** Largest length or count: the engine takes them as 32-bit numbers. */
export const MOST = 2 ** 32 - 1;

/**
 * @typedef {(name: string, value: unknown) => unknown} Check Gives the value if it is sound, or throws.
 */

/** Formats a value for an error message. @param {unknown} value */
export function shown(value) {
  let text;
  try {
    text = typeof value === "function" ? "a function" : (JSON.stringify(value) ?? String(value));
  } catch {
    text = "an object";
  }
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}

/**
 * @param {string} name
 * @param {string} expected
 * @param {unknown} value
 * @returns {never}
 */
export function refuse(name, expected, value) {
  throw new OptionsError(`${name} must be ${expected}, not ${shown(value)}`, { field: name });
}

/**
 * @param {number} least
 * @param {number} [most]
 * @returns {Check}
 */
export const integer = (least, most = MOST) => (name, value) => {
  if (Number.isSafeInteger(value) && Number(value) >= least && Number(value) <= most) return value;
  return refuse(name, `an integer from ${least} to ${most}`, value);
};

/**
 * @param {number} least
 * @param {number} most
 * @returns {Check}
 */
export const number = (least, most) => (name, value) => {
  if (typeof value === "number" && value >= least && value <= most) return value;
  return refuse(name, `a number from ${least} to ${most}`, value);
};

/**
 * @param {readonly unknown[]} values
 * @returns {Check}
 */
export const oneOf = (values) => (name, value) => {
  if (values.includes(value)) return value;
  return refuse(name, `one of ${values.map((v) => JSON.stringify(v)).join(", ")}`, value);
};

/**
 * @param {string} type
 * @returns {Check}
 */
const ofType = (type) => (name, value) => (typeof value === type ? value : refuse(name, `a ${type}`, value));

export const boolean = ofType("boolean");
export const string = ofType("string");
export const callback = ofType("function");

/** @type {Check} */
export const signal = (name, value) =>
  value instanceof AbortSignal ? value : refuse(name, "an AbortSignal", value);

/**
 * Checks an object with these fields and no others. Absent fields stay absent.
 *
 * @param {Record<string, Check>} checks
 * @returns {(name: string, value: unknown) => Record<string, any>}
 */
export const object = (checks) => (name, value) => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) refuse(name, "an object", value);
  /** @type {Record<string, unknown>} */
  const sound = {};
  for (const [key, given] of Object.entries(value)) {
    const path = name === "options" || name === "request" ? key : `${name}.${key}`;
    const check = Object.prototype.hasOwnProperty.call(checks, key) ? checks[key] : undefined;
    if (check === undefined) {
      throw new OptionsError(`${path} is not known; there are ${Object.keys(checks).join(", ")}`, { field: path });
    }
    if (given !== undefined) sound[key] = check(path, given);
  }
  return sound;
};
