"use strict";
// Which page this is.

{
  const began = performance.now();
  const root = el("div", { class: "page", id: "page" });
  document.body.append(root);
  // Named for those who look at a page from its console.
  window.hlofront = page.view === "program" ? programPage(root) : diffPage(root);
  document.documentElement.dataset.drawn = (performance.now() - began).toFixed(0);
}
