"use strict";
// The collectives of a program: mesh axes, bytes, what runs beside each, and the user's line.

/** The view of a program's collectives; a click on one pins it, or what runs beside it. */
class Links {
  constructor(program, light) {
    this.program = program;
    this.light = light;
    const { rows, axes } = program.collectives;
    const timed = rows.some(({ seconds }) => seconds);
    const heads = ["collective", "along", "bytes", ...(timed ? ["at least"] : []), "beside it", "line"];
    this.element = el(
      "div",
      { class: "links" },
      el(
        "p",
        { class: "dim" },
        axes.map(([along, bytes]) => `${figureText("bytes", bytes)} along ${along}`).join(" · "),
      ),
      el(
        "table",
        {},
        el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head)))),
        el("tbody", {}, rows.map((row) => this.row(row, timed))),
      ),
    );
  }

  row({ op, along, bytes, runs, seconds, beside, besideSeconds, place }, timed) {
    const pin = (which) => (event) => {
      this.light.pin({ op: which });
      event.stopPropagation();
    };
    const time = seconds === null ? "?" : timeText(seconds);
    return el(
      "tr",
      { "data-op": op, onclick: pin(op) },
      el("td", {}, el("code", { class: "collective" }, this.program.opcode(op).replace("-start", ""))),
      el("td", {}, along),
      el("td", { class: "number" }, figureText("bytes", bytes), runs === 1 ? "" : ` × ${runs ?? "?"}`),
      timed ? el("td", { class: "number" }, time) : null,
      el(
        "td",
        {},
        beside.length ? "" : "nothing",
        beside.slice(0, 3).map((each) =>
          el("button", { type: "button", class: "quiet", onclick: pin(each) }, this.program.label(each)),
        ),
        beside.length > 3 ? ` and ${beside.length - 3} more` : "",
        besideSeconds ? el("span", { class: "dim" }, ` ${timeText(besideSeconds)}`) : "",
      ),
      el("td", { class: "dim" }, place ? whereText(lineKey(...place)) : ""),
    );
  }
}
