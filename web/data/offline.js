// The worker that opens the page at once with what was known last. Keeps nothing itself.

/** Registers the worker, where a browser has workers: on https and on this machine. */
export function registerWorker() {
  const script = document.querySelector("meta[name=worker]")?.getAttribute("content");
  if (!script || !("serviceWorker" in navigator)) return;
  navigator.serviceWorker.register(script, { scope: "./" }).catch(() => {});
}
