/** Helpers for abort signals. In the oldest browsers a signal says that it was aborted, but not why. */

/**
 * Why a signal was aborted.
 *
 * @param {AbortSignal} signal
 * @returns {unknown}
 */
export function reasonOf(signal) {
  return signal.reason === undefined ? new DOMException("aborted", "AbortError") : signal.reason;
}

/**
 * @param {AbortSignal | undefined} signal
 * @returns {void}
 */
export function throwIfAborted(signal) {
  if (signal !== undefined && signal.aborted) throw reasonOf(signal);
}
