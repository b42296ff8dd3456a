"use strict";
// The table of a program's kernels, of TPUs and of GPUs: a row is a kernel, and one is chosen.

const percent = (share) => `${Math.round(share * 100)} %`;
const bytesText = (bytes) => (bytes ? figureText("bytes", bytes) : "0");
const knownText = (count) => (count === null ? "?" : countText(count));

/**
 * The table of a program's kernels.
 *
 * A column is {head, title, cell}: `cell` returns the text of a kernel's cell, or {text, use, title}
 * with the share of it that is filled, and a text on hovering.
 */
class KernelTable {
  constructor(raw, kernels, columns, light, choose) {
    this.raw = raw;
    this.kernels = kernels;
    this.columns = [...(raw.seconds ? this.timeColumns() : []), ...columns];
    this.light = light;
    this.choose = choose;
    this.body = el("tbody", {}, kernels.map((kernel, n) => this.row(kernel, n)));
    this.element = el(
      "div",
      { class: "kernel-table" },
      el("table", {}, this.head(), this.body),
      raw.notes.map((note) => el("p", { class: "dim" }, note)),
    );
  }

  timeColumns() {
    const share = ({ seconds }) => shareText((seconds ?? 0) / this.raw.seconds) || "0 %";
    const time = ({ seconds }) => (seconds === null ? "?" : timeText(seconds));
    return [
      { head: "part", title: "of the sum of all bounds", cell: share },
      { head: "bound", title: "the least time of all its calls", cell: time },
    ];
  }

  head() {
    const cells = [{ head: "kernel" }, ...this.columns].map(({ head, title }) =>
      el("th", { scope: "col", title }, head),
    );
    return el("thead", {}, el("tr", {}, cells));
  }

  row(kernel, n) {
    const cells = this.columns.map(({ cell }) => {
      const shown = cell(kernel);
      const { text, use, title } = typeof shown === "string" ? { text: shown } : shown;
      const made = el("td", { class: "number", title }, text);
      if (use) made.style.setProperty("--use", `${100 * use}%`);
      return made;
    });
    return el(
      "tr",
      {
        "data-kernel": n,
        tabindex: "0",
        "aria-selected": "false",
        onclick: () => this.choose(n),
        onkeydown: (event) => {
          if (event.key === "Enter") this.choose(n);
        },
        onmouseenter: () => this.light.hover(kernel.op === null ? null : { op: kernel.op }),
        onmouseleave: () => this.light.hover(null),
      },
      el(
        "th",
        { scope: "row" },
        el("code", { title: kernel.name }, kernel.name),
        kernel.calls > 1 ? ` × ${countText(kernel.calls)}` : "",
        el("span", { class: "dim" }, kernel.place ? whereText(lineKey(...kernel.place)) : ""),
      ),
      cells,
    );
  }

  select(n) {
    for (const row of this.body.children)
      row.setAttribute("aria-selected", row.dataset.kernel === String(n));
  }

  reveal(n) {
    this.body.children[n].scrollIntoView({ block: "nearest" });
  }

  /** Light the kernels of the target of the light: an operation, or a line. */
  paint() {
    const { target } = this.light;
    for (const row of this.body.children) {
      const { op, keys } = this.kernels[row.dataset.kernel];
      const isLit = target?.line === undefined ? target?.op === op : keys.has(target.line);
      row.classList.toggle("strong", Boolean(target) && isLit);
    }
  }
}

/** Return the heading of the chosen kernel: its name, facts, and a link to its operation. */
function kernelTitle(kernel, facts, light) {
  const pin = () => light.pin({ op: kernel.op });
  return [
    el("b", {}, kernel.name),
    el("span", { class: "dim" }, facts.join(" · ")),
    kernel.op === null
      ? ""
      : el("button", { type: "button", class: "link", onclick: pin }, "its operation"),
  ];
}
