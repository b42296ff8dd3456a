"use strict";
// The list of operations as a tree: computations below their callers, with folding and search.

const ROW = 24;
// Programs up to this size have loops and branches open initially.
const OPEN_AT_FIRST = 3000;

class OperationList {
  constructor(program, light) {
    this.program = program;
    this.light = light;
    this.open = new Set();
    this.hits = null;
    this.metric = "";
    this.active = 0;
    this.element = el("div", {
      class: "operations",
      role: "tree",
      tabindex: "0",
      "aria-label": "operations",
      onkeydown: (event) => this.key(event),
      onmouseover: (event) => this.over(event),
      onmouseleave: () => light.hover(null),
      onclick: (event) => this.click(event),
    });
    this.list = new LongList(this.element, ROW, (index) => this.draw(index));
    for (const computation of program.top) {
      if (program.computations[computation].entry) this.open.add(`c${computation}`);
    }
    if (program.count <= OPEN_AT_FIRST) this.openLoops();
    this.flatten();
    light.listeners.push((why, from) => this.paint(why, from));
  }

  /** Open everything except fusions and functions of reductions, from the entry down. */
  openLoops() {
    const walk = (path, computation, depth) => {
      const { first, end } = this.program.computations[computation];
      for (let op = first; depth < 12 && op < end; op += 1) {
        if (kindOf(this.program.opcode(op)) !== "control") continue;
        const inside = `${path}/${op}`;
        const calls = this.program.calls(op);
        if (calls.length) this.open.add(inside);
        calls.forEach(([label, callee], n) => {
          if (calls.length > 1) {
            if (label === "condition" || label === "cond") return;
            this.open.add(`${inside}:${n}`);
          }
          walk(calls.length > 1 ? `${inside}:${n}` : inside, callee, depth + 1);
        });
      }
    };
    for (const entry of this.program.entries) walk(`c${entry}`, entry, 0);
  }

  /** Return the visible rows: {path, depth, op} or {path, depth, computation, label}. */
  flatten() {
    const { program, hits } = this;
    const rows = [];
    const within = hits && program.holding(hits);
    const shown = hits && new Set([...hits, ...within]);
    // A computation with several callers is opened below one of them for a search.
    const met = new Set();
    const isOpen = (path, computation) => {
      if (!hits) return this.open.has(path);
      if (this.open.has(`-${path}`) || met.has(computation)) return this.open.has(path);
      met.add(computation);
      return true;
    };
    const block = (path, computation, depth) => {
      const { first, end } = program.computations[computation];
      for (let op = first; op < end; op += 1) {
        if (shown && !shown.has(op)) continue;
        const inside = `${path}/${op}`;
        const calls = program.calls(op);
        const row = { path: inside, depth, op, folds: calls.length > 0, open: false };
        rows.push(row);
        if (!calls.length || depth > 60) continue;
        const wanted = !hits || within.has(op);
        if (calls.length === 1) {
          row.open = wanted && isOpen(inside, calls[0][1]);
          if (row.open) block(inside, calls[0][1], depth + 1);
          continue;
        }
        row.open = hits ? wanted && !this.open.has(`-${inside}`) : this.open.has(inside);
        if (!row.open) continue;
        calls.forEach(([label, callee], n) => head(`${inside}:${n}`, callee, depth + 1, label));
      }
    };
    const head = (path, computation, depth, label) => {
      const { first, end } = program.computations[computation];
      let visible = end - first;
      if (shown) {
        visible = 0;
        for (let op = first; op < end; op += 1) visible += shown.has(op);
        if (!visible) return;
      }
      const row = {
        path,
        depth,
        computation,
        label,
        folds: true,
        open: isOpen(path, computation),
        visible,
      };
      rows.push(row);
      if (row.open) block(path, computation, depth + 1);
    };
    for (const computation of program.top) head(`c${computation}`, computation, 0, "");
    this.rows = rows;
    this.active = Math.min(this.active, Math.max(0, rows.length - 1));
    this.list.setCount(rows.length);
    this.element.setAttribute("aria-busy", "false");
  }

  draw(index) {
    const row = this.rows[index];
    const made = el("div", {
      class: "row",
      role: "treeitem",
      id: `row-${index}`,
      "data-row": index,
      "aria-level": row.depth + 1,
      "aria-expanded": row.folds ? String(row.open) : null,
    });
    made.style.setProperty("--depth", row.depth);
    made.append(el("span", { class: "fold" }, row.folds ? (row.open ? "▾" : "▸") : ""));
    if (row.op === undefined) this.drawHead(made, row);
    else this.drawOperation(made, row.op);
    this.mark(made, row, index);
    return made;
  }

  drawHead(made, row) {
    const { name, entry, first, end } = this.program.computations[row.computation];
    made.classList.add("head");
    made.append(
      el("span", { class: "label" }, row.label || (entry ? "entry" : "")),
      el("span", { class: "computation" }, name),
      el(
        "span",
        { class: "dim" },
        row.visible === end - first
          ? many(end - first, "operation")
          : `${countText(row.visible)} of ${many(end - first, "operation")}`,
      ),
    );
  }

  drawOperation(made, op) {
    const { program } = this;
    const opcode = program.opcode(op);
    const kind = kindOf(opcode);
    made.dataset.op = op;
    const inside = program
      .arguments(op)
      .map((each, n) => [
        n ? ", " : "",
        typeof each === "number"
          ? el("span", { class: "operand", "data-operand": each }, program.label(each))
          : el("span", { class: "literal" }, each.length > 60 ? `${each.slice(0, 57)}…` : each),
      ]);
    const summary = opcode === "fusion" ? program.summary(op) : "";
    const extra = summary ? `= ${summary}` : program.extra[op];
    const line = program.line(op);
    const given = program.given(op);
    const share = program.share(op, this.metric);
    const runs = program.runs[op];
    made.append(
      program.rootSet.has(op) ? el("span", { class: "root", title: "the result" }, "◆") : "",
      program.names[op] ? el("span", { class: "name" }, program.names[op]) : "",
      el("span", { class: `opcode ${kind}` }, opcode),
      el("span", { class: "inside" }, "(", ...inside, ")"),
      el("span", { class: "type" }, program.type(op)),
      given === undefined
        ? ""
        : el("span", { class: "operand", "data-operand": given }, `= ${program.label(given)}`),
      extra
        ? el("span", { class: "extra" }, extra.length > 160 ? `${extra.slice(0, 157)}…` : extra)
        : "",
      el("span", { class: "space" }),
      // The text stays visible when the row is wider than the list.
      el(
        "span",
        { class: "end" },
        runs === undefined
          ? ""
          : el("span", { class: "runs", title: "how often it runs" }, `×${runs ?? "?"}`),
        line < 0 ? "" : el("span", { class: "where" }, whereText(line)),
        el("span", { class: "share" }, shareText(share)),
      ),
    );
    made.style.setProperty("--heat", `${heatLevel(share)}%`);
    made.dataset.share = share.toFixed(4);
  }

  mark(made, row, index) {
    const { strong, holding, weak } = this.light.lit;
    const on = row.op !== undefined;
    made.classList.toggle("strong", on && strong.has(row.op));
    made.classList.toggle("holding", on && !row.open && holding.has(row.op) && !strong.has(row.op));
    made.classList.toggle("weak", on && weak.has(row.op) && !strong.has(row.op));
    made.classList.toggle("hit", on && Boolean(this.hits?.has(row.op)));
    made.classList.toggle("active", index === this.active);
    made.setAttribute("aria-selected", on && this.light.pinned?.op === row.op);
    made.classList.toggle("pinned", on && this.light.pinned?.op === row.op);
  }

  paint(why, from) {
    for (let n = this.list.first; n < this.list.end; n += 1) {
      const made = this.list.row(n);
      if (made) this.mark(made, this.rows[n], n);
    }
    if (why !== "pin" || from === "list" || !this.light.pinned) return;
    if (this.light.pinned.op !== undefined) this.show(this.light.pinned.op);
    else {
      const { strong, holding, weak } = this.light.lit;
      const lit = ({ op, open }) => strong.has(op) || weak.has(op) || (!open && holding.has(op));
      const sight = this.rows.findIndex((row) => row.op !== undefined && lit(row));
      if (sight >= 0) this.list.reveal(sight, true);
    }
  }

  heat(key) {
    this.metric = key;
    this.list.refresh(true);
  }

  filter(hits) {
    this.hits = hits && new Set(hits);
    this.element.scrollTop = 0;
    this.active = 0;
    this.flatten();
  }

  /** Unfold the parents of an operation, and scroll to it. */
  show(op) {
    let index = this.rows.findIndex((row) => row.op === op);
    if (index < 0) {
      for (const path of this.pathTo(op)) {
        this.open.add(path);
        this.open.delete(`-${path}`);
      }
      this.flatten();
      index = this.rows.findIndex((row) => row.op === op);
    }
    if (index >= 0) {
      this.active = index;
      this.list.reveal(index, true);
      this.activate();
    }
  }

  /** Return the paths that must be open to show an operation, by its first callers. */
  pathTo(op) {
    const { program } = this;
    const steps = [];
    let computation = program.home[op];
    const seen = new Set();
    while (
      !program.top.includes(computation) &&
      program.callers[computation].length &&
      !seen.has(computation)
    ) {
      seen.add(computation);
      const caller = program.callers[computation][0];
      const calls = program.calls(caller);
      const n = calls.findIndex(([, callee]) => callee === computation);
      steps.unshift({ caller, part: calls.length > 1 ? `:${n}` : "" });
      computation = program.home[caller];
    }
    let path = `c${computation}`;
    const paths = [path];
    for (const { caller, part } of steps) {
      path += `/${caller}`;
      paths.push(path);
      if (part) paths.push((path += part));
    }
    return paths;
  }

  toggle(index, open = !this.rows[index].open) {
    const { path } = this.rows[index];
    this.open[open ? "add" : "delete"](path);
    this.open[open ? "delete" : "add"](`-${path}`);
    this.flatten();
  }

  over(event) {
    const operand = event.target.closest?.("[data-operand]");
    const row = event.target.closest?.("[data-row]");
    if (operand) this.light.hover({ op: Number(operand.dataset.operand) });
    else if (row?.dataset.op) this.light.hover({ op: Number(row.dataset.op) });
    else this.light.hover(null);
  }

  click(event) {
    const operand = event.target.closest("[data-operand]");
    const row = event.target.closest("[data-row]");
    if (!row) return;
    const index = Number(row.dataset.row);
    this.active = index;
    if (operand) this.light.pin({ op: Number(operand.dataset.operand) });
    else if (event.target.closest(".fold") || this.rows[index].op === undefined) this.toggle(index);
    else this.light.pin({ op: this.rows[index].op }, "list");
    this.activate();
  }

  activate() {
    this.element.setAttribute("aria-activedescendant", `row-${this.active}`);
    this.paint("hover", "");
  }

  key(event) {
    const row = this.rows[this.active];
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20, Home: -1e9, End: 1e9 }[
      event.key
    ];
    if (step) {
      this.active = Math.min(this.rows.length - 1, Math.max(0, this.active + step));
      this.list.reveal(this.active);
      const now = this.rows[this.active];
      this.light.hover(now?.op === undefined ? null : { op: now.op });
    } else if (event.key === "ArrowRight" && row?.folds) {
      if (!row.open) this.toggle(this.active, true);
      else this.active = Math.min(this.rows.length - 1, this.active + 1);
    } else if (event.key === "ArrowLeft" && row) {
      if (row.open) this.toggle(this.active, false);
      else {
        let up = this.active;
        while (up > 0 && this.rows[up].depth >= row.depth) up -= 1;
        this.active = up;
        this.list.reveal(up);
      }
    } else if ((event.key === "Enter" || event.key === " ") && row) {
      if (row.op === undefined) this.toggle(this.active);
      else this.light.pin({ op: row.op }, "list");
    } else return;
    event.preventDefault();
    event.stopPropagation();
    this.activate();
  }
}
