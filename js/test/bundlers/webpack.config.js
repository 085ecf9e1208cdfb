export default { mode: "production", entry: { main: "./src/moved.js" }, output: { path: `${import.meta.dirname}/dist/webpack` } };
