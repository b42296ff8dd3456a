"use strict";
// The plan of a computation's dataflow graph: nodes, edges and their coordinates.

// Of a larger computation only operations near the focus are drawn.
const MOST_NODES = 260;
const NEAREST = 140;
const CHARACTER = 6.65;
const LONGEST_LABEL = 34;
const PLUMBING = /^(constant|get-tuple-element|bitcast|tuple|iota|after-all)$/;

const clipped = (text, longest = LONGEST_LABEL) =>
  text.length > longest ? `${text.slice(0, longest - 1)}…` : text;

/** The plans of a computation's graph, with the computations unfolded in it. */
class Plans {
  constructor(program) {
    this.program = program;
    this.metric = "";
    this.computation = program.top[0] ?? 0;
    this.focus = null;
    this.limit = NEAREST;
    this.plumbing = false;
    // Whether blocks are drawn instead of operations; null: of large computations.
    this.grouping = null;
    // The operations to draw alone, with what they are, such as those of a block.
    this.only = null;
    this.note = el("span", { class: "note", role: "status" });
    this.unfolded = new Set();
    // A program that only calls another one has that one unfolded.
    const { first, end } = program.computations[this.computation] ?? { first: 0, end: 0 };
    for (let op = first; end - first < 20 && op < end; op += 1) {
      if (/^(call|jit|pjit)$/.test(program.opcode(op))) this.unfolded.add(op);
    }
  }

  hides(op) {
    return (
      !this.plumbing &&
      PLUMBING.test(this.program.opcode(op)) &&
      !this.program.rootSet.has(op) &&
      !this.program.calls(op).length
    );
  }

  /** Return the drawn operations that an operand comes from, through hidden ones. */
  origins(op, found = new Set(), depth = 0) {
    if (!this.hides(op) || depth > 40) found.add(op);
    else for (const operand of this.program.operands[op]) this.origins(operand, found, depth + 1);
    return found;
  }

  /** Return the nodes and edges of a computation; of a large one those near the focus. */
  contents(computation, nested) {
    const { program } = this;
    const { first, end } = program.computations[computation];
    let ops = [];
    for (let op = first; op < end; op += 1) if (!this.hides(op)) ops.push(op);
    let all = ops.length;
    let edges = [];
    const around = new Map(ops.map((op) => [op, []]));
    for (const op of ops) {
      const from = new Set();
      for (const operand of program.operands[op]) {
        for (const origin of this.origins(operand)) {
          if (origin >= first && origin < end && origin !== op) from.add(origin);
        }
      }
      for (const origin of from) {
        edges.push([origin, op]);
        around.get(op).push(origin);
        around.get(origin)?.push(op);
      }
    }
    let hidden = null;
    if (!nested) this.links = edges;
    if (!nested && this.only) {
      ops = ops.filter((op) => this.only.ops.has(op));
      edges = edges.filter(([a, b]) => this.only.ops.has(a) && this.only.ops.has(b));
      for (const op of ops)
        around.set(
          op,
          around.get(op).filter((other) => this.only.ops.has(other)),
        );
      all = ops.length;
    } else if (!nested && this.focus === null && (this.grouping ?? all > MOST_NODES)) {
      const blocks = blocksOf(program, ops, edges);
      if (blocks.length > 1 && blocks.length <= MOST_NODES && blocks.length < all)
        return this.asBlocks(blocks, edges, all);
    }
    if (all > MOST_NODES) {
      const inside =
        this.focus !== null && program.home[this.focus] === computation && around.has(this.focus);
      const start = inside ? this.focus : this.costliest(ops);
      if (!nested) this.focus = start;
      const kept = this.near(start, around);
      hidden = new Map(
        [...kept].map((op) => [op, around.get(op).filter((other) => !kept.has(other)).length]),
      );
      ops = ops.filter((op) => kept.has(op));
      if (!nested)
        this.note.textContent = `${countText(ops.length)} of ${countText(all)} operations: those nearest to ${program.label(start)}`;
    } else if (!nested)
      this.note.textContent = this.only
        ? `${this.only.label}: ${many(all, "operation")}`
        : many(all, "operation");
    const kept = new Set(ops);
    return { ops, edges: edges.filter(([a, b]) => kept.has(a) && kept.has(b)), hidden };
  }

  /** Return the nodes and edges of blocks, each of which stands for its costliest operation. */
  asBlocks(blocks, edges, all) {
    const stands = new Map();
    const drawn = new Map();
    for (const block of blocks) {
      const op = this.costliest(block.ops);
      drawn.set(op, block.label ? block : null);
      for (const each of block.ops) stands.set(each, op);
    }
    // Edges from a repetition back to the next one would hide the order of the blocks.
    const order = new Map([...drawn.keys()].map((op, n) => [op, n]));
    const linked = new Map();
    for (const [from, to] of edges) {
      const [a, b] = [stands.get(from), stands.get(to)];
      if (order.get(a) < order.get(b)) linked.set(`${a} ${b}`, [a, b]);
    }
    this.note.textContent = `${many(all, "operation")} in ${many(blocks.length, "block")}`;
    return { ops: [...drawn.keys()], edges: [...linked.values()], hidden: null, blocks: drawn };
  }

  costliest(ops) {
    const key = this.metric || this.program.metrics[0]?.key;
    let best = ops[ops.length - 1];
    for (const op of ops)
      if (key && this.program.share(op, key) > this.program.share(best, key)) best = op;
    return best;
  }

  near(start, around) {
    const kept = new Set([start]);
    const waiting = [start];
    for (let at = 0; at < waiting.length && kept.size < this.limit; at += 1) {
      const next = around.get(waiting[at]);
      // Values with many users, such as parameters, do not make their users near.
      if (next.length > 24 && waiting[at] !== start) continue;
      for (const other of next) {
        if (kept.size >= this.limit) break;
        if (kept.has(other)) continue;
        kept.add(other);
        waiting.push(other);
      }
    }
    return kept;
  }

  /** Return a computation with coordinates for its nodes and for unfolded computations. */
  plan(computation, depth = 0) {
    const { ops, edges, hidden, blocks } = this.contents(computation, depth > 0);
    const nodes = ops.map((op) => {
      const block = blocks?.get(op);
      return block ? this.blockBox(op, block) : this.box(op, depth, hidden?.get(op) ?? 0);
    });
    const numbers = new Map(ops.map((op, n) => [op, n]));
    const linked = edges.map(([from, to]) => [numbers.get(from), numbers.get(to)]);
    return { nodes, edges, ...layered(nodes, linked) };
  }

  blockBox(op, block) {
    const rows = [clipped(block.label), many(block.ops.length, "operation")];
    const width = Math.max(...rows.map((row, n) => row.length * CHARACTER + 18 + (n ? 0 : 16)));
    return { op, rows, block, calls: [], hidden: 0, width, height: 40 };
  }

  box(op, depth, hidden) {
    const { program } = this;
    const opcode = program.opcode(op);
    const name = program.names[op];
    const constants = this.plumbing
      ? []
      : program.operands[op]
          .filter((operand) => program.opcode(operand) === "constant" && this.hides(operand))
          .map((operand) => program.inside[operand]?.replace(/^dense<(.*)>$/, "$1") ?? "");
    let title = opcode;
    if (name)
      title = name.replace(/^%/, "").startsWith(opcode.slice(0, 6))
        ? name
        : opcode === "fusion"
          ? name
          : `${opcode} ${name}`;
    const number =
      opcode === "parameter" || opcode === "argument"
        ? ""
        : constants.filter((text) => text && text.length < 14).join(", ");
    const rows = [
      clipped(title),
      clipped(number ? `${program.type(op)} · ${number}` : program.type(op)),
    ];
    const given = program.given(op);
    if (given !== undefined) rows[0] = clipped(`▸ ${program.label(given)}`);
    if (opcode === "fusion") {
      const summary = program.summary(op);
      if (summary) rows.splice(1, 0, clipped(summary));
    }
    const calls = program.calls(op);
    const fold = calls.length ? 16 : 0;
    const box = {
      op,
      rows,
      calls,
      hidden,
      width: Math.max(56, ...rows.map((row, n) => row.length * CHARACTER + 18 + (n ? 0 : fold))),
      height: 14 * rows.length + 12,
    };
    if (calls.length && depth < 8 && this.unfolded.has(op)) {
      let x = 10;
      box.inner = [];
      const top = box.height + (calls.length > 1 ? 16 : 4);
      let height = 0;
      for (const [label, computation] of calls) {
        const plan = this.plan(computation, depth + 1);
        box.inner.push({ label: calls.length > 1 ? label : "", computation, plan, x, y: top });
        x += Math.max(plan.width, label.length * CHARACTER) + 24;
        height = Math.max(height, plan.height);
      }
      box.width = Math.max(box.width, x - 4);
      box.head = box.height;
      box.height = top + height + 12;
    }
    return box;
  }
}
