import resolve from "@rollup/plugin-node-resolve";

export default {
  input: {
    main: "src/placed.js",
    worker: "anygpu/worker",
    "suite-worker": "anygpu/suite-worker",
    "format-worker": "anygpu/format-worker",
  },
  output: { dir: "dist/rollup" },
  plugins: [resolve()],
};
