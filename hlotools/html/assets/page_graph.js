"use strict";
// The dataflow graph of a computation; computations that an operation calls unfold inside it.

class Graph extends Plans {
  constructor(program, light) {
    super(program);
    this.light = light;
    this.hits = null;
    this.nodes = new Map();
    this.drawn = null;
    this.view = { x: 0, y: 0, scale: 1 };
    this.trail = el("nav", { class: "trail", "aria-label": "computation" });
    const plumbing = el("input", {
      type: "checkbox",
      onchange: () => {
        this.plumbing = plumbing.checked;
        this.draw();
      },
    });
    this.blocks = el("input", {
      type: "checkbox",
      onchange: () => {
        this.grouping = this.blocks.checked;
        this.open(this.computation);
      },
    });
    this.whole = el(
      "button",
      { type: "button", hidden: "", onclick: () => this.open(this.computation) },
      "all",
    );
    this.bar = el(
      "div",
      { class: "graph-bar" },
      this.trail,
      this.note,
      this.whole,
      el("span", { class: "space" }),
      el(
        "label",
        { title: "what one scope, or one of your functions, made; once per repetition" },
        this.blocks,
        " blocks",
      ),
      el(
        "label",
        { title: "constants, tuples and their elements, bitcasts" },
        plumbing,
        " plumbing",
      ),
      el("button", { type: "button", "aria-label": "nearer", onclick: () => this.zoom(1.25) }, "+"),
      el("button", { type: "button", "aria-label": "farther", onclick: () => this.zoom(0.8) }, "−"),
      el("button", { type: "button", onclick: () => this.fit() }, "fit"),
    );
    this.stage = svg("g");
    this.svg = svg(
      "svg",
      {
        class: "drawing",
        role: "group",
        tabindex: "0",
        "aria-label": "dataflow",
        onwheel: (event) => this.wheel(event),
        onpointerdown: (event) => this.grab(event),
        onpointermove: (event) => this.drag(event),
        onkeydown: (event) => this.key(event),
        onmouseleave: () => light.hover(null),
      },
      this.stage,
    );
    this.frame = svg("rect", { class: "overview-frame" });
    this.overview = svg(
      "svg",
      {
        class: "overview",
        "aria-hidden": "true",
        onpointerdown: (event) => this.jump(event),
        onpointermove: (event) => event.buttons & 1 && this.jump(event),
      },
      svg("g"),
      this.frame,
    );
    const hint = "shift and a click on a second operation: the paths between the two";
    this.svg.append(svg("title"));
    this.svg.lastChild.textContent = hint;
    this.element = el("div", { class: "graph" }, this.bar, this.svg, this.overview);
    light.listeners.push((why, from) => this.paint(why, from));
  }

  // ---- drawing ----------------------------------------------------------------------------------

  draw() {
    const began = performance.now();
    this.nodes.clear();
    this.edges = [];
    this.stage.replaceChildren();
    this.drawn = this.plan(this.computation);
    this.put(this.stage, this.drawn);
    this.drawTrail();
    this.drawOverview();
    this.blocks.checked = this.drawn.nodes.some(({ block }) => block);
    this.whole.hidden = !this.only && this.focus === null;
    this.paint("draw");
    this.svg.dataset.ms = (performance.now() - began).toFixed(0);
  }

  /** Draw the graph if drawing was postponed while it was hidden. */
  appear() {
    if (!this.drawn || this.stale) {
      this.stale = false;
      this.draw();
      this.fit();
      if (this.light.pinned) this.paint("pin", "");
    }
  }

  put(group, plan) {
    const lines = svg("g", { class: "edges" });
    group.append(lines);
    plan.edges.forEach(([from, to], n) => {
      const line = svg("path", {
        class: "edge",
        d: curve(plan.paths[n]),
        "data-from": from,
        "data-to": to,
      });
      line.append(
        svg(
          "title",
          {},
          `${this.program.label(from)} → ${this.program.label(to)}\n${this.program.type(from)}`,
        ),
      );
      lines.append(line);
      this.edges.push({ from, to, line });
    });
    plan.nodes.forEach((box, n) => group.append(this.node(box, plan.places[n])));
  }

  node(box, place) {
    const { program } = this;
    const { op } = box;
    const kind = kindOf(program.opcode(op));
    const shares = (box.block?.ops ?? [op]).map((each) => program.share(each, this.metric));
    const share = shares.reduce((sum, each) => sum + each, 0);
    const group = svg("g", {
      class: `node ${kind}${box.inner ? " unfolded" : ""}${box.block ? " block" : ""}`,
      transform: `translate(${place.x} ${place.y})`,
      role: "button",
      tabindex: "-1",
      "data-op": op,
      "data-share": share.toFixed(4),
      "aria-label": `${program.opcode(op)} ${program.names[op]} ${program.type(op)} ${shareText(share)}`,
      onmouseover: (event) => {
        event.stopPropagation();
        this.light.hover({ op });
      },
      onclick: (event) => {
        event.stopPropagation();
        if (this.moved) return;
        const other = this.light.pinned?.op;
        if (event.shiftKey && other !== undefined && other !== op) this.paths(other, op);
        else this.light.pin({ op }, "graph");
      },
    });
    group.style.setProperty("--heat", `${heatLevel(share)}%`);
    group.append(svg("rect", { class: "box", width: box.width, height: box.height, rx: 5 }));
    group.append(
      svg("rect", { class: "edge-of-kind", width: 4, height: box.head ?? box.height, rx: 2 }),
    );
    box.rows.forEach((row, n) => {
      const text = svg("text", { class: n ? "second" : "first", x: 10, y: 16 + 14 * n });
      text.textContent = row;
      group.append(text);
    });
    if (share > 0.0005) {
      const text = svg("text", {
        class: "node-share",
        x: box.width - 4,
        y: -3,
        "text-anchor": "end",
      });
      text.textContent = shareText(share);
      group.append(text);
    }
    if (box.calls.length || box.block) {
      const fold = svg(
        "g",
        {
          class: "node-fold",
          role: "button",
          "aria-label": box.inner ? "fold" : "unfold",
          "aria-expanded": String(Boolean(box.inner)),
          onclick: (event) => {
            event.stopPropagation();
            if (box.block) this.look(box.block.ops, box.block.label);
            else this.toggle(op);
          },
        },
        svg("rect", { x: box.width - 19, y: 3, width: 16, height: 16, rx: 3 }),
      );
      const sign = svg("text", { x: box.width - 11, y: 15, "text-anchor": "middle" });
      sign.textContent = box.inner ? "−" : "+";
      fold.append(sign);
      group.append(fold);
    }
    if (box.hidden) {
      const more = svg(
        "g",
        {
          class: "more",
          role: "button",
          "aria-label": `${box.hidden} more beside it`,
          onclick: (event) => {
            event.stopPropagation();
            this.around(op);
          },
        },
        svg("title"),
        svg("rect", { x: box.width - 10, y: box.height - 9, width: 30, height: 14, rx: 7 }),
      );
      more.querySelector("title").textContent =
        `${many(box.hidden, "neighbor")} not drawn: draw what is near this one`;
      const text = svg("text", { x: box.width + 5, y: box.height + 1.5, "text-anchor": "middle" });
      text.textContent = `+${box.hidden}`;
      more.append(text);
      group.append(more);
    }
    for (const { label, plan, x, y } of box.inner ?? []) {
      const inner = svg("g", { class: "inner", transform: `translate(${x} ${y})` });
      if (label) {
        const text = svg("text", { class: "inner-label", x: 0, y: -5 });
        text.textContent = label;
        inner.append(text);
      }
      this.put(inner, plan);
      group.append(inner);
    }
    this.nodes.set(op, { group, box });
    return group;
  }

  drawTrail() {
    const { program } = this;
    const steps = [this.computation];
    const seen = new Set(steps);
    while (program.callers[steps[0]].length && !program.top.includes(steps[0])) {
      const next = program.home[program.callers[steps[0]][0]];
      if (seen.has(next)) break;
      seen.add(next);
      steps.unshift(next);
    }
    this.trail.replaceChildren(
      ...steps.flatMap((computation, n) => [
        n ? " › " : "",
        el(
          "button",
          {
            type: "button",
            "aria-current": computation === this.computation ? "page" : null,
            onclick: () => this.open(computation),
          },
          program.computations[computation].name,
        ),
      ]),
    );
  }

  // ---- navigation -------------------------------------------------------------------------------

  open(computation, focus = null) {
    this.computation = computation;
    this.only = null;
    this.focus = focus;
    this.limit = NEAREST;
    this.redraw();
  }

  /** Draw some operations of the computation alone. */
  look(ops, label) {
    this.only = { ops: new Set(ops), label };
    this.focus = null;
    this.redraw();
  }

  /** Draw the operations on all paths between two, in either direction, through hidden ones. */
  paths(from, to) {
    const { program } = this;
    let ops = between(from, to, this.links);
    if (!ops.size) {
      ops = between(to, from, this.links);
      [from, to] = [to, from];
    }
    if (ops.size) this.look(ops, `from ${program.label(from)} to ${program.label(to)}`);
    else this.note.textContent = `no path between ${program.label(from)} and ${program.label(to)}`;
  }

  around(op) {
    this.only = null;
    this.focus = op;
    this.draw();
    this.center(op);
  }

  redraw() {
    if (!this.element.offsetParent) {
      this.stale = true;
      return;
    }
    this.draw();
    this.fit();
  }

  /** Unfold or fold the computations of an operation, with its button at a fixed position. */
  toggle(op) {
    const place = () =>
      this.nodes.get(op)?.group.querySelector(".node-fold").getBoundingClientRect();
    const before = place();
    if (!this.unfolded.delete(op)) this.unfolded.add(op);
    this.draw();
    const after = place();
    if (!before || !after) return;
    this.view.x += before.left - after.left;
    this.view.y += before.top - after.top;
    this.apply();
  }

  apply() {
    const { x, y, scale } = this.view;
    this.stage.setAttribute("transform", `translate(${x} ${y}) scale(${scale})`);
    const { clientWidth, clientHeight } = this.svg;
    const { width = 0, height = 0 } = this.drawn ?? {};
    // Where all of it is in sight there is no need of an overview.
    const inside =
      x >= 0 && y >= 0 && x + width * scale <= clientWidth && y + height * scale <= clientHeight;
    this.overview.toggleAttribute("hidden", inside || !width);
    const frame = { x: -x / scale, y: -y / scale };
    frame.width = clientWidth / scale;
    frame.height = clientHeight / scale;
    for (const [name, value] of Object.entries(frame)) this.frame.setAttribute(name, value);
  }

  /** Draw all nodes, small, with a frame around those in sight. */
  drawOverview() {
    const { nodes, places, width, height } = this.drawn;
    this.overview.setAttribute("viewBox", `0 0 ${width || 1} ${height || 1}`);
    this.overview.firstChild.replaceChildren(
      ...nodes.map((box, n) =>
        svg("rect", { ...places[n], width: box.width, height: box.height, class: "overview-node" }),
      ),
    );
  }

  /** Bring what is under the pointer in the overview to the middle. */
  jump(event) {
    event.preventDefault();
    const matrix = this.overview.getScreenCTM();
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix.inverse());
    const { scale } = this.view;
    this.view.x = this.svg.clientWidth / 2 - point.x * scale;
    this.view.y = this.svg.clientHeight / 2 - point.y * scale;
    this.apply();
  }

  fit() {
    if (!this.drawn) return;
    const { clientWidth, clientHeight } = this.svg;
    const { width, height } = this.drawn;
    const whole = Math.min((clientWidth - 40) / (width || 1), (clientHeight - 40) / (height || 1));
    // The letters are 12 pixels at a scale of 1: a graph that would need a smaller scale than
    // this to be seen whole opens at its beginning, or at the operation in focus.
    const scale = Math.min(1.15, Math.max(whole, 0.9));
    this.view = {
      scale,
      x: Math.max(20, (clientWidth - width * scale) / 2),
      y: Math.max(20, (clientHeight - height * scale) / 2),
    };
    if (width * scale > clientWidth) {
      const { nodes, places } = this.drawn;
      const top = Math.min(...places.map((place) => place.y));
      const first = places.findIndex((place) => place.y === top);
      const middle = (places[first].x + nodes[first].width / 2) * scale;
      const leftmost = clientWidth - 20 - width * scale;
      this.view.x = Math.min(20, Math.max(leftmost, clientWidth / 2 - middle));
    }
    this.apply();
    if (whole < scale && this.focus !== null) this.center(this.focus);
  }

  hottest() {
    let best = null;
    for (const op of this.nodes.keys()) {
      if (
        best === null ||
        this.program.share(op, this.metric) > this.program.share(best, this.metric)
      )
        best = op;
    }
    return best;
  }

  center(op) {
    const known = this.nodes.get(op);
    if (!known) return;
    const node = known.group.getBoundingClientRect();
    const frame = this.svg.getBoundingClientRect();
    this.view.x += frame.left + frame.width / 2 - (node.left + node.width / 2);
    this.view.y +=
      frame.top + frame.height / 2 - (node.top + Math.min(node.height, frame.height) / 2);
    this.apply();
  }

  zoom(factor, x = this.svg.clientWidth / 2, y = this.svg.clientHeight / 2) {
    const scale = Math.min(4, Math.max(0.05, this.view.scale * factor));
    const ratio = scale / this.view.scale;
    this.view = { scale, x: x - (x - this.view.x) * ratio, y: y - (y - this.view.y) * ratio };
    this.apply();
  }

  wheel(event) {
    event.preventDefault();
    const frame = this.svg.getBoundingClientRect();
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      this.view.x -= event.deltaX || event.deltaY;
      this.apply();
    } else
      this.zoom(
        Math.exp(-event.deltaY / 500),
        event.clientX - frame.left,
        event.clientY - frame.top,
      );
  }

  grab(event) {
    this.held = { x: event.clientX, y: event.clientY };
    this.moved = false;
  }

  drag(event) {
    if (!this.held || !(event.buttons & 1)) return;
    const x = event.clientX - this.held.x;
    const y = event.clientY - this.held.y;
    if (!this.moved && Math.hypot(x, y) < 4) return;
    this.moved = true;
    this.view.x += x;
    this.view.y += y;
    this.held = { x: event.clientX, y: event.clientY };
    this.apply();
  }

  /** Handle keys: arrows follow edges, Enter pins, space unfolds, + and - zoom. */
  key(event) {
    const now = this.light.hovered?.op ?? this.light.pinned?.op;
    const node = this.nodes.get(now);
    const go = (op) => {
      if (op === undefined) return;
      if (this.light.pinned) this.light.pin({ op }, "graph");
      else this.light.hover({ op });
      this.center(op);
    };
    const { key } = event;
    if (key === "+" || key === "=") this.zoom(1.25);
    else if (key === "-") this.zoom(0.8);
    else if (key === "0") this.fit();
    else if (!node && key.startsWith("Arrow")) go(this.hottest());
    else if (key === "ArrowDown") go(this.edges.find(({ from }) => from === now)?.to);
    else if (key === "ArrowUp") go(this.edges.find(({ to }) => to === now)?.from);
    else if (key === "ArrowRight" || key === "ArrowLeft") {
      const parent = this.edges.find(({ to }) => to === now)?.from;
      const beside = this.edges.filter(({ from }) => from === parent).map(({ to }) => to);
      const at = beside.indexOf(now) + (key === "ArrowRight" ? 1 : -1);
      go(beside[(at + beside.length) % beside.length]);
    } else if (key === "Enter" && node) this.light.pin({ op: now }, "graph");
    else if (key === " " && node?.box.calls.length) this.toggle(now);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  // ---- highlighting -----------------------------------------------------------------------------

  heat(key) {
    this.metric = key;
    if (this.drawn) this.element.offsetParent ? this.draw() : (this.stale = true);
  }

  filter(hits) {
    this.hits = hits && new Set(hits);
    this.within = hits ? this.program.holding(hits) : null;
    this.paint("filter");
  }

  paint(why, from) {
    if (!this.drawn || !this.element.offsetParent) {
      if (why === "pin" && from !== "graph") this.follow();
      return;
    }
    const { strong, holding, weak } = this.light.lit;
    const found = ({ block }) => Boolean(this.hits && block?.ops.some((op) => this.hits.has(op)));
    for (const [op, { group, box }] of this.nodes) {
      group.classList.toggle("strong", strong.has(op));
      const holds = holding.has(op) || box.block?.ops.some((each) => strong.has(each));
      group.classList.toggle("holding", !strong.has(op) && !box.inner && Boolean(holds));
      group.classList.toggle("weak", weak.has(op) && !strong.has(op));
      group.classList.toggle("pinned", this.light.pinned?.op === op);
      group.classList.toggle(
        "faint",
        Boolean(this.hits) && !this.hits.has(op) && !this.within.has(op) && !found(box),
      );
      group.classList.toggle("hit", Boolean(this.hits?.has(op)) || found(box));
    }
    for (const { from: start, to, line } of this.edges) {
      line.classList.toggle("lit", strong.size === 1 && (strong.has(start) || strong.has(to)));
    }
    if (why === "pin" && from !== "graph") {
      this.follow();
      const op = this.light.pinned?.op;
      if (op !== undefined && this.nodes.has(op)) this.center(op);
    }
  }

  /** Show the computation of a target pinned elsewhere, if it is not drawn yet. */
  follow() {
    const op = this.light.pinned?.op;
    if (op === undefined || this.nodes.has(op)) return;
    const home = this.program.home[op];
    this.computation = home;
    this.only = null;
    this.focus = this.hides(op) ? ([...this.origins(op)][0] ?? null) : op;
    this.redraw();
  }
}

/** Return a smooth path through points, vertical at each. */
function curve(points) {
  const number = (value) => Math.round(value * 10) / 10;
  let text = `M${number(points[0][0])} ${number(points[0][1])}`;
  for (let n = 1; n < points.length; n += 1) {
    const [x, y] = points[n - 1];
    const [toX, toY] = points[n];
    const middle = number((y + toY) / 2);
    text +=
      Math.abs(x - toX) < 0.5
        ? `L${number(toX)} ${number(toY)}`
        : `C${number(x)} ${middle} ${number(toX)} ${middle} ${number(toX)} ${number(toY)}`;
  }
  return text;
}
