/** Events of an engine. */

/** Event: a device, context or worker was lost, and another has taken over. */
export interface Recovered {
  /** The backend that was lost. */
  from: string;
  /** The backend that took over; it may be the same. */
  to: string;
  /** Reason for the loss. */
  reason: string;
  /** Time from the loss until calls continued, in milliseconds. */
  ms: number;
}

/** Event: a session cannot be kept in the browser's storage. The session itself continues. */
export interface Unkept {
  /** Name of the session. */
  session: string;
  /** Reason, and what to do about it. */
  reason: string;
}

/** Results of the kernels of a decode step. They are the same on every backend up to rounding. */
export interface Step {
  /** Position of the step's token in the text. */
  position: number;
  /** Matrices in the order of the kernels. Each was copied before a later kernel reused its buffer or texture. */
  matrices: readonly StepMatrix[];
}

/** A matrix that a kernel of a step computed. */
export interface StepMatrix {
  /** Name of the kernel with its variant. */
  kernel: string;
  /** The weights or states that the kernel used, such as `blk.3.ffn_down.weight`; empty if there are none. */
  subject: string;
  /** The matrix's name in the graph; may be empty. */
  name: string;
  rows: number;
  cols: number;
  /** Values of the matrix, row by row. */
  values: Float32Array;
}
