"use strict";
// The kernels of a GPU's program: their table, instructions by class, and PTX.

const PTX_ROW = 20;
// The kind of operation whose color a class of instructions has.
const CLASS_KINDS = {
  tensor: "matrix",
  float: "element",
  special: "fusion",
  global: "move",
  shared: "move",
  local: "move",
  sync: "reduce",
  control: "control",
};
const CLASS_TITLES = {
  tensor: "products of matrices",
  float: "arithmetic of floats",
  special: "exponentials, roots and the like",
  integer: "arithmetic of integers and addresses",
  global: "accesses to global memory",
  shared: "accesses to shared memory",
  local: "accesses to local memory, such as spills",
  sync: "barriers and shuffles",
  control: "branches and returns",
};

const sizesText = (sizes) => (sizes === null ? "?" : sizes.join("×").replace(/(×1)+$/, ""));

/** The view of the kernels of a GPU's program; one of them is shown with its instructions. */
class GpuKernels {
  constructor(program, light) {
    this.light = light;
    this.raw = program.compiledKernels;
    this.kernels = this.raw.rows.map((row) => ({
      ...row,
      keys: new Map(row.lines.map(([file, line, work]) => [lineKey(file, line), { work }])),
    }));
    this.table = new KernelTable(this.raw, this.kernels, this.columns(), light, (n) =>
      this.choose(n),
    );
    this.title = el("div", { class: "kernel-title" });
    this.chart = el("div", { class: "class-chart" });
    this.note = el("p", { class: "dim kernel-note", role: "status" });
    this.scroller = el("div", { class: "bundles", tabindex: "0", "aria-label": "PTX" });
    this.list = new LongList(this.scroller, PTX_ROW, (index) => this.line(index));
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
    light.listeners.push((why) => this.paint(why));
  }

  columns() {
    const count = (key) => (kernel) => knownText(kernel[key]);
    const occupancy = (kernel) =>
      kernel.occupancy === null
        ? "?"
        : {
            text: percent(kernel.occupancy),
            use: kernel.occupancy,
            title: kernel.occupancy < 1 ? `limited by ${kernel.occupancyLimit}` : "",
          };
    const spills = ({ spills: bytes }) => (bytes === null ? "?" : bytesText(bytes));
    const waves = ({ waves: number }) => (number === null ? "?" : String(+number.toPrecision(2)));
    return [
      { head: "limit", title: "the resource that the bound is of", cell: ({ limit }) => limit || "?" },
      { head: "grid", title: "blocks of a launch", cell: ({ grid }) => sizesText(grid) },
      { head: "threads", title: "of a block", cell: ({ threads }) => sizesText(threads) },
      { head: "registers", title: "of a thread", cell: count("registers") },
      { head: "spills", title: "bytes that a thread stores and loads for lack of registers", cell: spills },
      { head: "shared", title: "shared memory of a block", cell: ({ shared }) => bytesText(shared) },
      { head: "occupancy", title: "threads that are resident, of those possible", cell: occupancy },
      { head: "waves", title: "blocks of a launch by those that are resident at a time", cell: waves },
      ...this.raw.classes.map((head, n) => ({
        head,
        title: CLASS_TITLES[head],
        cell: ({ instructions }) => countText(instructions[n]),
      })),
      { head: "HBM", title: "bytes that all calls move", cell: ({ bytes }) => bytesText(bytes) },
    ];
  }

  choose(n) {
    this.chosen = n;
    const kernel = this.kernels[n];
    this.table.select(n);
    const facts = [many(kernel.calls, "call"), `grid ${sizesText(kernel.grid)}`];
    facts.push(`${sizesText(kernel.threads)} threads`);
    if (kernel.registers !== null) facts.push(many(kernel.registers, "register"));
    if (kernel.occupancy !== null)
      facts.push(
        `occupancy ${percent(kernel.occupancy)}` +
          (kernel.occupancy < 1 ? `, limited by ${kernel.occupancyLimit}` : ""),
      );
    this.title.replaceChildren(...kernelTitle(kernel, facts, this.light));
    this.chart.replaceChildren(...this.bars(kernel));
    const lines = [...kernel.keys].map(([key, { work }]) => `${whereText(key)} ${work}`);
    this.note.textContent = kernel.code.length
      ? lines.join(" · ")
      : "Its PTX is not listed, as those of kernels that take longer fill the 2 MB that this page has.";
    this.list.setCount(kernel.code.length);
    this.scroller.scrollTop = 0;
    this.list.refresh(true);
    this.paint();
  }

  /** Return the instructions of a kernel by class, as bars. */
  bars({ instructions }) {
    const most = Math.max(...instructions, 1);
    return this.raw.classes.flatMap((name, n) => {
      if (!instructions[n]) return [];
      const bar = el("span", { class: `class-bar ${CLASS_KINDS[name] ?? "plain"}` });
      bar.style.setProperty("width", `${(100 * instructions[n]) / most}%`);
      return [
        el("span", { class: "dim", title: CLASS_TITLES[name] }, name),
        el("span", { class: "class-lane" }, bar),
        el("span", { class: "class-count" }, countText(instructions[n])),
      ];
    });
  }

  line(index) {
    const { code, kinds } = this.kernels[this.chosen];
    const kind = CLASS_KINDS[this.raw.classes[kinds[index]]] ?? "plain";
    const isInner = !/^[$.]/.test(code[index]);
    return el(
      "div",
      { class: "bundle" },
      el("span", { class: "address" }, String(index + 1)),
      el("span", { class: `instruction ${kind}` }, (isInner ? "  " : "") + code[index]),
    );
  }

  /** Light the kernels of the pinned line or operation, and show the first of them. */
  paint(why) {
    this.table.paint();
    const target = this.light.pinned;
    if (why !== "pin" || !target) return;
    const fits = ({ op, keys }) =>
      target.line === undefined ? op === target.op : keys.has(target.line);
    if (fits(this.kernels[this.chosen])) return;
    const other = this.kernels.findIndex(fits);
    if (other < 0) return;
    this.choose(other);
    this.table.reveal(other);
  }
}
