"use strict";
// The start of the page: its view is created here.

{
  const began = performance.now();
  const root = el("div", { class: "page", id: "page" });
  document.body.append(root);
  // The names are for users of the browser's console.
  window.hlofront = page.view === "program" ? programPage(root) : diffPage(root);
  document.documentElement.dataset.drawn = (performance.now() - began).toFixed(0);
}
