/** The oldest browsers that everything runs in, by their names in the compatibility data. */
export const FLOOR = { chrome: 80, firefox: 79, safari: 15 };
