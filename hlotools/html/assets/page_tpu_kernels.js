"use strict";
// The kernels of a TPU's program: their table, the use of slots over the bundles, and the bundles.

const BUNDLE_ROW = 20;
const LANES = ["MXU", "XLU", "VALU", "EUP", "VPOP", "load", "store", "scalar"];
// The parts of two slots that are for values without a register.
const SPILLED = { load: "fills", store: "spills" };
const FULL = 25;
const LANE = 24;

// The kinds of instructions, by their names.
const UNITS = [
  ["matrix", /^(vmat|vpop\.\S*mr|vdwg)/],
  ["move", /^(vld|vst|dma|sld|sst|vsync|inlined_call)/],
  ["reduce", /^(vrot|vperm|vxpose|vpop|\S*xlane|vbcast)/],
  ["fusion", /^(vpow|vexp|vlog|vrcp|vrsqrt|vtanh|verf|vsin|vcos)/],
  ["control", /^(sbr|sfence|scall|shalt|sphi)/],
  ["element", /^v/],
];

function unitOf(instruction) {
  const name = instruction.replace(/^%\S+ = /, "");
  return (UNITS.find(([, pattern]) => pattern.test(name)) ?? ["plain"])[0];
}

const letterShare = (letter) => (letter.charCodeAt(0) - 97) / FULL;

/** Return pairs of numbers, a file and a line each, as lines. */
function keysOf(flat) {
  const keys = [];
  for (let n = 0; n < flat.length; n += 2) keys.push(lineKey(flat[n], flat[n + 1]));
  return keys;
}

/** Return the kernels of a TPU's program, none for other programs. */
function tpuKernelsOf({ compiledKernels }) {
  return compiledKernels?.kind === "tpu" ? compiledKernels.rows : [];
}

/** Return the bundles of a program's kernels by line: their names, with the number of bundles. */
function bundlesByLine(program) {
  const found = new Map();
  for (const { name, lines } of tpuKernelsOf(program)) {
    for (const [file, line, , bundles] of lines) {
      const key = lineKey(file, line);
      if (bundles) found.set(key, [...(found.get(key) ?? []), [name, bundles]]);
    }
  }
  return found;
}

/** One kernel: its bundles, and the lines that they come from. */
class Kernel {
  constructor(raw, places) {
    Object.assign(this, raw);
    this.keys = new Map(
      raw.lines.map(([file, line, work, bundles, columns]) => [
        lineKey(file, line),
        { work, bundles, columns },
      ]),
    );
    this.places = places;
    this.width = Math.max(0, ...Object.values(this.uses).map((letters) => letters.length));
  }

  /** Whether libtpu says which line each bundle is for: it does for hand-written kernels. */
  get isPlaced() {
    return this.from.length > 0;
  }

  /** Return the lines of a listed bundle; of a fusion, those of all its operations. */
  linesOf(bundle) {
    if (!this.isPlaced) return [...this.keys.keys()];
    const place = this.from[bundle - this.first];
    return place === undefined ? [] : keysOf(this.places[place]);
  }

  /** Return the instructions of a listed bundle. */
  instructions(bundle) {
    return this.code[bundle - this.first].split(" ;; ").filter(Boolean);
  }

  /** Return how often a bundle runs in a call. */
  times(bundle) {
    return this.loops
      .filter(([start, stop]) => start <= bundle && bundle < stop)
      .reduce((times, [, , trips]) => times * (trips ?? 1), 1);
  }

  share(slot, column) {
    return letterShare(this.uses[slot]?.[column] ?? "a");
  }
}

/** The view of the kernels of a TPU's program; one of them is shown with its slots and bundles. */
class TpuKernels {
  constructor(program, light) {
    this.program = program;
    this.light = light;
    const raw = program.compiledKernels;
    this.raw = raw;
    this.kernels = raw.rows.map((row) => new Kernel(row, raw.places));
    this.table = new KernelTable(raw, this.kernels, this.columns(), light, (n) => this.choose(n));
    this.title = el("div", { class: "kernel-title" });
    this.chart = el("div", { class: "kernel-chart" });
    this.note = el("p", { class: "dim kernel-note", role: "status" });
    this.scroller = el("div", {
      class: "bundles",
      tabindex: "0",
      "aria-label": "bundles",
      onmouseover: (event) => this.hover(event),
      onmouseleave: () => this.light.hover(null),
      onclick: (event) => this.click(event),
      onkeydown: (event) => this.key(event),
    });
    this.list = new LongList(this.scroller, BUNDLE_ROW, (index) => this.bundle(index));
    this.element = el(
      "div",
      { class: "kernels" },
      this.table.element,
      this.title,
      this.chart,
      this.note,
      this.scroller,
    );
    this.choose(0);
    light.listeners.push((why, from) => this.paint(why, from));
  }

  columns() {
    const count = (key) => (kernel) => knownText(kernel[key]);
    const slot = (head) => ({
      head,
      cell: ({ slots }) =>
        slots[head] ? { text: percent(slots[head]), use: slots[head] } : head in slots ? "·" : "?",
    });
    const vmem = (kernel) => ({
      text: bytesText(kernel.vmem),
      title: `${bytesText(kernel.smem)} of SMEM`,
    });
    return [
      {
        head: "limit",
        title: "what the bound is of: memory (HBM), the fullest slot, or latency",
        cell: ({ limit }) => limit,
      },
      { head: "bundles", title: "instruction words (VLIW) of its code", cell: count("bundles") },
      {
        head: "cycles",
        title: "of one call: bundles by the trips of loops, and waits for results",
        cell: count("cycles"),
      },
      ...this.raw.slots.map(slot),
      { head: "fills", title: "loads of values that had no register", cell: count("fills") },
      { head: "spills", title: "stores of values that had no register", cell: count("spills") },
      { head: "VMEM", title: "that it allocates itself", cell: vmem },
      { head: "HBM", title: "bytes that all calls move", cell: ({ bytes }) => bytesText(bytes) },
    ];
  }

  // ---- one kernel -------------------------------------------------------------------------------

  choose(n) {
    this.chosen = n;
    this.marked = null;
    const kernel = this.kernels[n];
    this.table.select(n);
    const trips = kernel.loops.map(([, , count]) => (count === null ? "?" : countText(count)));
    const facts = [
      many(kernel.calls, "call"),
      many(kernel.bundles, "bundle"),
      ...(trips.length ? [`loops of ${trips.slice(0, 8).join(", ")} trips`] : []),
      `limit: ${kernel.limit}`,
    ];
    this.title.replaceChildren(...kernelTitle(kernel, facts, this.light));
    this.chart.replaceChildren(...this.lanes(kernel));
    this.tell(null);
    this.list.setCount(kernel.code.length);
    this.scroller.scrollTop = 0;
    this.list.refresh(true);
    this.paint();
  }

  /** Return the chart: a lane for each slot, with bars as high as bundles fill it. */
  lanes(kernel) {
    if (!kernel.width)
      return [el("p", { class: "dim" }, "The dumps do not say which slots the bundles use.")];
    const { width } = kernel;
    const used = LANES.filter((slot) => /[^a]/.test(kernel.uses[slot] ?? ""));
    const height = used.length * LANE;
    const bars = (slot, top) =>
      [...(kernel.uses[slot] ?? "")]
        .map((letter, column) => {
          const high = letterShare(letter) * (LANE - 4);
          return high ? `M${column} ${top + LANE - 2}v${-high.toFixed(1)}h1v${high.toFixed(1)}z` : "";
        })
        .join("");
    this.lit = svg("path", { class: "lit" });
    this.marker = svg("rect", { class: "marker", y: 0, width: 1, height, visibility: "hidden" });
    this.svg = svg(
      "svg",
      {
        viewBox: `0 0 ${width} ${height}`,
        preserveAspectRatio: "none",
        tabindex: "0",
        role: "slider",
        "aria-label": "bundles of the kernel",
        "aria-valuemin": 0,
        "aria-valuemax": kernel.bundles - 1,
        onpointermove: (event) => this.tell(this.columnAt(event)),
        onpointerleave: () => this.tell(null),
        onclick: (event) => this.open(this.columnAt(event)),
        onkeydown: (event) => {
          const step = { ArrowLeft: -1, ArrowRight: 1, Home: -width, End: width }[event.key];
          if (!step) return;
          this.open(Math.min(width - 1, Math.max(0, (this.marked ?? 0) + step)));
          event.preventDefault();
        },
      },
      this.lit,
      ...used.flatMap((slot, lane) => [
        svg("path", { class: "base", d: `M0 ${(lane + 1) * LANE - 1}h${width}` }),
        svg("path", { class: `bars ${slot}`, d: bars(slot, lane * LANE) }),
        svg("path", { class: "bars spilled", d: bars(SPILLED[slot], lane * LANE) }),
      ]),
      this.marker,
    );
    this.svg.style.height = `${height}px`;
    const share = (bundle) => `${(100 * bundle) / kernel.bundles}%`;
    const frames = (className, spans) =>
      el(
        "div",
        { class: className },
        spans.map(([start, stop, text]) => {
          const made = el("span", { title: text }, text);
          made.style.setProperty("left", share(start));
          made.style.setProperty("width", share(stop - start));
          return made;
        }),
      );
    const loops = kernel.loops.map(([start, stop, trips]) => [start, stop, `× ${trips ?? "?"}`]);
    const end = kernel.first + kernel.code.length;
    const isPart = kernel.code.length && kernel.code.length < kernel.bundles;
    return [
      el(
        "div",
        { class: "lane-names" },
        loops.length ? el("span", { class: "loops-name" }, "loops") : "",
        used.map((slot) => el("span", {}, slot)),
      ),
      el(
        "div",
        { class: "lane-bars" },
        loops.length ? frames("loops", loops) : "",
        this.svg,
        isPart ? frames("listed", [[kernel.first, end, "listed below"]]) : "",
      ),
    ];
  }

  columnAt(event) {
    const { width } = this.kernels[this.chosen];
    const box = this.svg.getBoundingClientRect();
    const share = (event.clientX - box.left) / box.width;
    return Math.min(width - 1, Math.max(0, Math.floor(share * width)));
  }

  /** Say what is at a column of the chart, or else what the list of bundles is of. */
  tell(column) {
    const kernel = this.kernels[this.chosen];
    this.marker?.setAttribute("visibility", column === null ? "hidden" : "visible");
    if (column === null) {
      this.note.replaceChildren(...this.about(kernel));
      return;
    }
    this.marker.setAttribute("x", column);
    const first = Math.ceil((column * kernel.bundles) / kernel.width);
    const last = Math.max(first, Math.ceil(((column + 1) * kernel.bundles) / kernel.width) - 1);
    this.svg.setAttribute("aria-valuenow", first);
    const used = [...LANES, ...Object.values(SPILLED)]
      .filter((slot) => kernel.share(slot, column))
      .map((slot) => `${slot} ${percent(kernel.share(slot, column))}`);
    const name = first === last ? `bundle ${hex(first)}` : `bundles ${hex(first)} to ${hex(last)}`;
    const runs = kernel.times(first);
    this.note.textContent = [
      `${name}${runs > 1 ? ` × ${countText(runs)}` : ""}: `,
      used.join(", ") || "no slot in use",
    ].join("");
  }

  about(kernel) {
    const { length } = kernel.code;
    const prints = [" ", el("code", {}, `show … --bundles ${kernel.name}`), " prints all."];
    const parts = [];
    if (!length && kernel.bundles)
      parts.push(
        `Its ${many(kernel.bundles, "bundle")} are not listed, as those of kernels that take`,
        " longer fill the 2 MB that this page has for them:",
        ...prints,
      );
    else if (length < kernel.bundles)
      parts.push(
        `Bundles ${hex(kernel.first)} to ${hex(kernel.first + length - 1)} are listed, those of`,
        ` ${countText(kernel.bundles)} that run most often:`,
        ...prints,
      );
    if (!kernel.isPlaced && kernel.keys.size > 1 && length)
      parts.push(
        `${parts.length ? " " : ""}libtpu does not say which bundle of a fusion is for which of`,
        ` its ${kernel.keys.size} lines.`,
      );
    return parts;
  }

  /** Show and pin the first bundle in a column of the chart. */
  open(column) {
    const kernel = this.kernels[this.chosen];
    this.marked = column;
    this.tell(column);
    const bundle = Math.ceil((column * kernel.bundles) / kernel.width);
    const index = bundle - kernel.first;
    if (index < 0 || index >= kernel.code.length) return;
    this.list.reveal(index, true);
    this.pin(bundle);
  }

  // ---- bundles ----------------------------------------------------------------------------------

  bundle(index) {
    const kernel = this.kernels[this.chosen];
    const bundle = kernel.first + index;
    const runs = kernel.times(bundle);
    const places = kernel.isPlaced ? kernel.linesOf(bundle) : [];
    const made = el(
      "div",
      { class: "bundle", "data-bundle": bundle },
      el("span", { class: "address" }, hex(bundle)),
      el("span", { class: "runs" }, runs > 1 ? `×${countText(runs)}` : ""),
      el(
        "span",
        { class: "instructions" },
        kernel.instructions(bundle).map((part) => el("span", { class: `instruction ${unitOf(part)}` }, part)),
      ),
      places.length
        ? el("span", { class: "end" }, places.map((key) => whereText(key)).join(" "))
        : "",
    );
    this.mark(made, bundle);
    return made;
  }

  /** Return a bundle as a target of the light. */
  target(bundle) {
    const kernel = this.kernels[this.chosen];
    if (kernel.op === null) return null;
    return {
      op: kernel.op,
      bundle,
      lines: kernel.linesOf(bundle),
      title: `bundle ${hex(bundle)} of ${kernel.name}`,
      runs: kernel.times(bundle),
      code: kernel.instructions(bundle),
      isPlaced: kernel.isPlaced,
    };
  }

  hover(event) {
    const at = event.target.closest?.("[data-bundle]");
    if (at && !this.light.pinned) this.light.hover(this.target(Number(at.dataset.bundle)));
  }

  click(event) {
    const at = event.target.closest("[data-bundle]");
    if (at) this.pin(Number(at.dataset.bundle));
  }

  pin(bundle) {
    const target = this.target(bundle);
    if (target) this.light.pin(target, "kernels");
  }

  key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const kernel = this.kernels[this.chosen];
    const pinned = this.light.pinned?.bundle;
    if (!step || pinned === undefined) return;
    const next = pinned + step;
    const index = next - kernel.first;
    if (index >= 0 && index < kernel.code.length) {
      this.list.reveal(index);
      this.pin(next);
    }
    event.preventDefault();
  }

  // ---- light ------------------------------------------------------------------------------------

  mark(made, bundle) {
    const kernel = this.kernels[this.chosen];
    const { target } = this.light;
    const isThis = target?.bundle === bundle && target.op === kernel.op;
    const isOfLine = target?.line !== undefined && kernel.keys.has(target.line);
    const isSure = kernel.isPlaced || kernel.keys.size === 1;
    made.classList.toggle("pinned", isThis);
    made.classList.toggle(
      "strong",
      isThis || (isOfLine && isSure && kernel.linesOf(bundle).includes(target.line)),
    );
    made.classList.toggle("weak", isOfLine && !isSure);
  }

  paint(why, from) {
    const { target } = this.light;
    if (why === "pin" && from !== "kernels" && target) this.follow(target);
    const kernel = this.kernels[this.chosen];
    this.table.paint();
    for (let index = this.list.first; index < this.list.end; index += 1) {
      const made = this.list.row(index);
      if (made) this.mark(made, kernel.first + index);
    }
    const columns = kernel.keys.get(target?.line)?.columns ?? [];
    this.lit?.setAttribute("d", columns.map((column) => `M${column} 0h1V9999h-1z`).join(""));
  }

  /** Show the kernel of a pinned line or operation, at its first bundle. */
  follow({ op, line, bundle }) {
    if (bundle !== undefined) return;
    const fits = (kernel) => (line === undefined ? kernel.op === op : kernel.keys.has(line));
    const wanted = this.kernels.findIndex(
      (kernel) => line !== undefined && kernel.keys.get(line)?.bundles,
    );
    const now = this.kernels[this.chosen];
    if (!(fits(now) && (wanted < 0 || now.keys.get(line)?.bundles))) {
      const other = wanted < 0 ? this.kernels.findIndex(fits) : wanted;
      if (other < 0) return;
      this.choose(other);
    }
    const kernel = this.kernels[this.chosen];
    this.table.reveal(this.chosen);
    if (!kernel.isPlaced || line === undefined) return;
    const index = kernel.code.findIndex((_, n) => kernel.linesOf(kernel.first + n).includes(line));
    if (index >= 0) this.list.reveal(index, true);
  }
}

const hex = (bundle) => `0x${bundle.toString(16)}`;
