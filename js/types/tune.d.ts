/** Tuning: options and results. */

import type { AnyGpu } from "./engine.js";
import type { LoadOptions } from "./load.js";

/** Options of {@link AnyGpu.tune}. */
export interface TuneOptions extends LoadOptions {
  /** Called with a description of each measurement. Exceptions from it are reported, not thrown. */
  onTrial?: (what: string) => void;
}

/** Values of a backend's tunables that differ from its defaults, by name. */
export type TunedValues = Record<string, number>;

/** Result of tuning: the values tried on a device, and the best ones. */
export interface TuneReport {
  /** The report as text for people. */
  text: string;
  /** Length of the prompt, in tokens. */
  prefill_tokens: number;
  /** Number of tokens decoded after the prompt. */
  decode_tokens: number;
  /** All runs in order; the first has the defaults. Times in milliseconds. */
  trials: { values: TunedValues; prefill_ms: number; decode_ms_per_token: number }[];
  /** The fastest values; empty if the defaults are best, or nothing can be tuned. */
  winner: { rung: string; adapter: string; values: TunedValues };
  /**
   * Times of the best values divided by those of the defaults, measured in turn: prefill and decode. Null if no value
   * helped.
   */
  ratios: [prefill: number, decode: number] | null;
  /** Whether the browser stored the values, so that loading uses them from now on. */
  kept: boolean;
}
