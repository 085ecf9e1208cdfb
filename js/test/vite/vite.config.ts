import { defineConfig } from "vite";

export default defineConfig({
  // Any path of any host.
  base: "./",
  // The development server is to leave the package's worker and wasm where they are.
  optimizeDeps: { exclude: ["anygpu"] },
});
