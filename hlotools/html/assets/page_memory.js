"use strict";
// Memory over time: a chart of the bytes at each operation, and the buffers at one of them.

const CHART = { width: 1000, height: 240, columns: 1000, rows: 200 };

/** The view of a program's memory; an operation that is pointed at shows its buffers. */
class Memory {
  constructor(program, light) {
    this.program = program;
    this.light = light;
    this.use = program.memory;
    this.at = this.use.peak;
    this.pinned = this.use.peak;
    this.title = el("p", { class: "memory-title" });
    this.table = el("ol", { class: "buffers" });
    this.marker = svg("line", { class: "marker", y1: 0, y2: CHART.height });
    this.element = el("div", { class: "memory" }, this.facts(), this.chart(), this.title, this.table);
    this.show(this.at);
  }

  facts() {
    const { bytes, peak, assigned } = this.use;
    const texts = [`peak ${figureText("bytes", bytes[peak])}`];
    if (assigned !== null) texts.push(`XLA's buffers ${figureText("bytes", assigned)}`);
    texts.push(`${many(bytes.length, "operation")} in the order of the schedule`);
    return el("p", { class: "dim memory-facts" }, texts.join(" · "));
  }

  x(moment) {
    return (moment / this.use.bytes.length) * CHART.width;
  }

  /** Return the chart: each of its columns has the most bytes of the operations in it. */
  chart() {
    const { bytes, peak } = this.use;
    const count = bytes.length;
    const columns = Math.min(count, CHART.columns);
    const most = Math.max(bytes[peak], 1);
    let path = `M0 ${CHART.height}`;
    for (let column = 0; column < columns; column += 1) {
      const [start, end] = [0, 1].map((n) => Math.floor(((column + n) * count) / columns));
      let top = 0;
      for (let moment = start; moment < end; moment += 1) top = Math.max(top, bytes[moment]);
      const y = CHART.height * (1 - (0.95 * top) / most);
      path += `L${this.x(start).toFixed(2)} ${y.toFixed(1)}L${this.x(end).toFixed(2)} ${y.toFixed(1)}`;
    }
    const middle = this.x(peak + 0.5);
    this.svg = svg(
      "svg",
      {
        class: "memory-chart",
        viewBox: `0 0 ${CHART.width} ${CHART.height}`,
        preserveAspectRatio: "none",
        tabindex: "0",
        role: "slider",
        "aria-label": "memory over time",
        "aria-valuemin": 1,
        "aria-valuemax": count,
        onpointermove: (event) => this.show(this.momentAt(event)),
        onpointerleave: () => this.show(this.pinned),
        onclick: (event) => this.pin(this.momentAt(event)),
        onkeydown: (event) => {
          const step = { ArrowLeft: -1, ArrowRight: 1, Home: -count, End: count }[event.key];
          if (!step) return;
          this.pin(Math.min(count - 1, Math.max(0, this.pinned + step)));
          event.preventDefault();
        },
      },
      svg("path", { class: "area", d: `${path}L${CHART.width} ${CHART.height}Z` }),
      svg("line", { class: "peak", x1: middle, x2: middle, y1: 0, y2: CHART.height }),
      this.marker,
    );
    return this.svg;
  }

  momentAt(event) {
    const box = this.svg.getBoundingClientRect();
    const share = (event.clientX - box.left) / box.width;
    return Math.min(this.use.bytes.length - 1, Math.max(0, Math.floor(share * this.use.bytes.length)));
  }

  pin(moment) {
    this.pinned = moment;
    this.show(moment);
    this.light.pin({ op: this.use.moments[moment] });
  }

  /** Show the buffers that are live at a moment, the largest first. */
  show(moment) {
    const { bytes, peak, moments, buffers } = this.use;
    this.at = moment;
    const op = moments[moment];
    const middle = this.x(moment + 0.5);
    this.marker.setAttribute("x1", middle);
    this.marker.setAttribute("x2", middle);
    this.svg.setAttribute("aria-valuenow", moment + 1);
    const live = buffers.filter(([, , , first, last]) => first <= moment && moment <= last);
    live.sort((one, other) => other[1] - one[1]);
    const words = [
      moment === peak ? "the peak: " : "",
      `${figureText("bytes", bytes[moment])} at operation ${countText(moment + 1)}, `,
    ];
    this.title.replaceChildren(
      words.join(""),
      el("code", {}, `${this.program.label(op)} ${this.program.opcode(op)}`),
    );
    this.table.replaceChildren(
      ...live.slice(0, CHART.rows).map((buffer) => this.row(buffer, bytes[moment])),
      live.length > CHART.rows ? el("li", { class: "dim" }, `and ${live.length - CHART.rows} more`) : "",
    );
  }

  row([op, size, kind], total) {
    const key = this.program.line(op);
    return el(
      "li",
      {
        "data-op": op,
        onclick: () => this.light.pin({ op }),
      },
      el("meter", { min: 0, max: Math.max(total, 1), value: size }),
      el("span", { class: "size" }, figureText("bytes", size)),
      el("span", { class: "dim" }, kind),
      el("code", {}, `${this.program.label(op)} ${this.program.type(op)}`),
      key < 0 ? "" : el("span", { class: "dim place" }, whereText(key)),
    );
  }
}
