// Exports a folder for a static host, under the path that the test serves it at.
export default { output: "export", basePath: "/some/path" };
