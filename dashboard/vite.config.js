// Builds into the room that embeds the result. Names carry a hash of their
// content, so they may be cached for ever; nothing is inlined, because the
// content policy lets no inline script or style run.
import { defineConfig } from 'vite'

export default defineConfig({
  build: {
    outDir: '../internal/dashboard/dist',
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: 'es2023',
    cssTarget: ['chrome125', 'firefox125', 'safari18'],
    reportCompressedSize: false,
  },
})
