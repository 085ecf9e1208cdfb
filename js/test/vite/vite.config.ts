import { defineConfig } from "vite";

export default defineConfig({
  // Works below any path of any host.
  base: "./",
  // The development server must leave the package's worker and wasm where they are.
  optimizeDeps: { exclude: ["anygpu"] },
});
