"use strict";
// The page of a program: source on the left; operations, graph and details on the right.

/** Fill an element with the views of a program, by default the page's own. */
function programPage(root, shown = page) {
  const program = new Program(shown.program);
  const light = new Light(program);
  const sources = new Sources(program, light);
  // This view is created first, so that the next ones know the remaining space.
  const details = new Details(
    program,
    light,
    (op) => {
      show("graph");
      graph.open(program.home[op], op);
      graph.center(op);
    },
    (computation) => {
      show("graph");
      graph.open(computation);
    },
  );
  const list = new OperationList(program, light);
  const graph = new Graph(program, light);
  const heats = program.metrics.map(({ key, label }) => ({
    key,
    text: label,
    title: `color by share of ${label}`,
  }));
  heats.push({ key: "", text: "off", title: "no colors" });
  const heat = (key) => [sources, list, graph].forEach((view) => view.heat(key));
  const memory = program.memory ? new Memory(program, light) : null;
  const links = program.collectives ? new Links(program, light) : null;
  const View = { tpu: TpuKernels, gpu: GpuKernels }[program.compiledKernels?.kind];
  const kernels = View ? new View(program, light) : null;
  const views = el(
    "div",
    { class: "views" },
    list.element,
    graph.element,
    memory?.element,
    links?.element,
    kernels?.element,
  );
  const show = (key) => {
    views.dataset.view = key;
    tabs.choose(key);
    if (key === "graph") graph.appear();
    else if (key === "kernels") kernels.list.refresh();
    else list.list.refresh();
  };
  const tabs = choice(
    "view",
    [
      { key: "list", text: "List" },
      { key: "graph", text: "Graph" },
      ...(memory ? [{ key: "memory", text: "Memory", title: "bytes over the schedule" }] : []),
      ...(links ? [{ key: "links", text: "Links", title: "collectives between devices" }] : []),
      ...(kernels ? [{ key: "kernels", text: "Kernels", title: "the code of kernels" }] : []),
    ],
    "list",
    show,
  );
  const search = new Search(
    program,
    (hits) => {
      list.filter(hits);
      graph.filter(hits);
    },
    (op) => {
      if (light.pinned?.op !== op) light.pin({ op }, "search");
    },
  );
  const panes = el("main", { class: "panes" });
  panes.append(
    sources.element,
    divider(panes, "--left", 36),
    el(
      "div",
      { class: "right" },
      el(
        "div",
        { class: "bar" },
        tabs,
        search.element,
        el("span", { class: "space" }),
        heats.length > 1
          ? el("span", { class: "heat" }, "heat", choice("heat", heats, heats[0].key, heat))
          : "",
      ),
      views,
      details.element,
    ),
  );
  root.append(header(program, shown), panes);
  views.dataset.view = "list";
  heat(heats[0].key);
  document.addEventListener("keydown", (event) => {
    // Of several programs on a page one is shown.
    if (!root.isConnected) return;
    const typing = event.target.closest?.("input");
    if (event.key === "Escape") {
      if (typing && search.input.value) search.clear();
      else if (light.pinned) light.pin(null);
      typing?.blur();
    } else if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    else if (event.key === "/") search.input.focus();
    else if (event.key === "n") search.step(1);
    else if (event.key === "N") search.step(-1);
    else if (event.key === "g") show(views.dataset.view === "graph" ? "list" : "graph");
    else return;
    event.preventDefault();
  });
  light.listeners.push((why) => {
    if (why !== "pin" || shown !== page) return;
    const op = light.pinned?.op;
    const name = op === undefined ? "" : `#${encodeURIComponent(program.label(op))}`;
    // A page in a frame of a notebook has no address of its own.
    if (location.protocol !== "about:")
      history.replaceState(null, "", name || location.pathname);
  });
  const wanted = shown === page ? decodeURIComponent(location.hash.slice(1)) : "";
  const op = wanted ? program.names.indexOf(wanted) : -1;
  if (op >= 0) light.pin({ op });
  // An address may also name a view, as in step.html#memory.
  else if (tabs.querySelector(`[data-key="${CSS.escape(wanted)}"]`)) show(wanted);
  return { program, light, sources, list, graph, memory, kernels, search };
}

function header(program, { title, facts: known }) {
  const totals = program.metrics
    .filter(({ total }) => total)
    .map(({ key, label, total }) => [label, figureText(key, total)]);
  const kinds = { hlo: "HLO", stablehlo: "StableHLO", jaxpr: "jaxpr" };
  const counts = new Map();
  for (let op = 0; op < program.count; op += 1) {
    const opcode = program.opcode(op);
    counts.set(opcode, (counts.get(opcode) ?? 0) + 1);
  }
  // As hlotools.cost.estimates.count_operations counts them.
  let operations = program.count;
  for (const opcode of ["parameter", "constant", "tuple", "get-tuple-element"]) {
    operations -= counts.get(opcode) ?? 0;
  }
  const facts = [["operations", countText(operations)]];
  if (counts.get("fusion")) facts.push(["fusions", countText(counts.get("fusion"))]);
  for (const [label, value] of known) {
    facts.push([
      label,
      value.endsWith(" B") ? figureText("bytes", Number(value.slice(0, -2))) : value,
    ]);
  }
  return el(
    "header",
    { class: "top" },
    el("h1", {}, title),
    el("span", { class: "kind" }, kinds[program.kind] ?? program.kind),
    el(
      "dl",
      {},
      [...facts, ...totals].map(([label, value]) =>
        el("div", {}, el("dt", {}, label), el("dd", {}, value)),
      ),
    ),
    el("span", { class: "space" }),
    el(
      "span",
      { class: "dim keys" },
      el("kbd", {}, "/"),
      " search ",
      el("kbd", {}, "g"),
      " graph ",
      el("kbd", {}, "esc"),
      " let go",
    ),
    themeButton(),
  );
}

/** Return the search box: typing filters the list, Enter moves from hit to hit. */
class Search {
  constructor(program, filter, go) {
    this.program = program;
    this.filter = filter;
    this.go = go;
    this.hits = null;
    this.at = -1;
    this.count = el("span", { class: "count", role: "status" });
    this.input = el("input", {
      type: "search",
      placeholder: "search: name, opcode, shape, line …",
      "aria-label": "search operations",
      title:
        "words that all must be in a row; or of one field: op:dot shape:bf16 line:57 path:attention name:fusion code:einsum bytes>1e6 flops>1e9 seconds>1e-3",
      spellcheck: "false",
      autocomplete: "off",
      oninput: () => {
        clearTimeout(this.waiting);
        this.waiting = setTimeout(() => this.run(), program.count > 20000 ? 120 : 30);
      },
      onkeydown: (event) => {
        if (event.key !== "Enter") return;
        this.run();
        this.step(event.shiftKey ? -1 : 1);
        event.preventDefault();
      },
    });
    this.element = el("div", { class: "search", role: "search" }, this.input, this.count);
    this.last = "";
  }

  run() {
    clearTimeout(this.waiting);
    const query = this.input.value.trim();
    if (query === this.last) return;
    this.last = query;
    this.hits = query ? find(this.program, query) : null;
    this.at = -1;
    this.filter(this.hits);
    this.tell();
  }

  step(by) {
    if (!this.hits?.length) return;
    this.at = (this.at + by + this.hits.length) % this.hits.length;
    this.go(this.hits[this.at]);
    this.tell();
  }

  clear() {
    this.input.value = "";
    this.run();
  }

  tell() {
    const { hits, at } = this;
    const unknown = hits && unknownFigures(this.last, [this.program]);
    this.count.textContent = !hits
      ? ""
      : unknown ||
        (at < 0 ? many(hits.length, "hit") : `${at + 1} of ${countText(hits.length)}`);
  }
}

/** The details of the pinned target. */
class Details {
  constructor(program, light, draw, open) {
    this.program = program;
    this.light = light;
    this.drawIn = draw;
    this.openIn = open;
    this.element = el("section", { class: "details", "aria-label": "details", hidden: true });
    light.listeners.push((why) => {
      if (why === "pin") this.show();
    });
  }

  show() {
    const { pinned } = this.light;
    this.element.hidden = !pinned;
    if (!pinned) return;
    this.element.replaceChildren(
      el(
        "button",
        {
          type: "button",
          class: "quiet close",
          "aria-label": "let go",
          onclick: () => this.light.pin(null),
        },
        "×",
      ),
      ...(pinned.op === undefined
        ? this.ofLine(pinned.line)
        : pinned.bundle === undefined
          ? this.ofOperation(pinned.op)
          : this.ofBundle(pinned)),
    );
    this.element.scrollTop = 0;
  }

  link(op) {
    return el(
      "button",
      {
        type: "button",
        class: "link",
        title: this.program.type(op),
        onclick: () => this.light.pin({ op }),
        onmouseenter: () => this.light.hover({ op }),
      },
      this.program.label(op),
    );
  }

  links(label, ops) {
    if (!ops.length) return [];
    const more = ops.length > 40 ? ` and ${many(ops.length - 40, "other")}` : "";
    return [
      el("dt", {}, label),
      el(
        "dd",
        {},
        ops.slice(0, 40).flatMap((op, n) => [n ? ", " : "", this.link(op)]),
        more,
      ),
    ];
  }

  ofOperation(op) {
    const { program } = this;
    const rows = [];
    const add = (label, ...value) => rows.push(el("dt", {}, label), el("dd", {}, ...value));
    add("type", el("code", {}, program.type(op)));
    for (const { key, function: name } of program.stack(op)) {
      add(
        rows.some((row) => row.textContent === "from") ? "called at" : "from",
        el(
          "button",
          { type: "button", class: "link", onclick: () => this.light.pin({ line: key }) },
          whereText(key),
        ),
        name ? ` in ${name}` : "",
        "  ",
        el("code", { class: "dim" }, codeOf(key).trim()),
      );
    }
    if (program.path(op)) add("path", el("code", {}, program.path(op)));
    const figures = program.metrics.filter(
      ({ values }) => values[op] !== null && values[op] !== undefined && values[op] !== 0,
    );
    if (figures.length) {
      add(
        "cost",
        figures
          .map(
            ({ key, label, values }) =>
              `${label} ${figureText(key, values[op])} (${shareText(program.share(op, key)) || "0 %"})`,
          )
          .join(" · "),
      );
    }
    if (program.runs[op] !== undefined)
      add(
        "runs",
        program.runs[op] === null
          ? "not known how often: figures are of one run"
          : many(program.runs[op], "time"),
      );
    for (const event of program.histories[op] ?? [])
      add(rows.some((row) => row.textContent === "passes") ? "then" : "passes", event);
    rows.push(
      ...this.links("operands", [...new Set(program.operands[op])]),
      ...this.links("users", program.users[op]),
    );
    for (const [label, computation] of program.calls(op)) {
      add(
        label,
        el(
          "button",
          { type: "button", class: "link", onclick: () => this.openIn(computation) },
          program.computations[computation].name,
        ),
        ` ${many(program.computations[computation].end - program.computations[computation].first, "operation")}`,
      );
    }
    if (program.kernels[op]) {
      const [title, text] = program.kernels[op];
      add("kernel", el("details", {}, el("summary", {}, title), el("code", {}, text)));
    }
    if (program.inside[op]) add("value", el("code", {}, program.inside[op]));
    if (program.extra[op]) add("attributes", el("code", {}, program.extra[op]));
    if (program.hidden[op])
      add(program.kind === "stablehlo" ? "text" : "also", el("code", {}, program.hidden[op]));
    return [
      el(
        "h3",
        {},
        el("span", { class: `opcode ${kindOf(program.opcode(op))}` }, program.opcode(op)),
        " ",
        program.names[op],
        el("span", { class: "dim" }, ` in ${program.computations[program.home[op]].name} `),
        el(
          "button",
          { type: "button", class: "link", onclick: () => this.drawIn(op) },
          "show in graph",
        ),
      ),
      el("dl", {}, rows),
    ];
  }

  /** Return the details of a bundle: its instructions, and the lines that they come from. */
  ofBundle({ title, runs, code, lines, isPlaced }) {
    const rows = [el("dt", {}, "runs"), el("dd", {}, `${many(runs, "time")} in a call`)];
    const add = (label, ...value) => rows.push(el("dt", {}, label), el("dd", {}, ...value));
    if (!code.length) add("does", "nothing");
    code.forEach((instruction, n) =>
      add(n ? "" : "does", el("code", { class: `opcode ${unitOf(instruction)}` }, instruction)),
    );
    lines.forEach((key, n) =>
      add(
        n ? "" : isPlaced ? "from" : "from one of",
        el(
          "button",
          { type: "button", class: "link", onclick: () => this.light.pin({ line: key }) },
          whereText(key),
        ),
        "  ",
        el("code", { class: "dim" }, codeOf(key).trim()),
      ),
    );
    return [el("h3", {}, title), el("dl", {}, rows)];
  }

  ofLine(key) {
    const { program } = this;
    const { own, through } = program.opsAt(key);
    const counts = new Map();
    for (const op of own) counts.set(program.opcode(op), (counts.get(program.opcode(op)) ?? 0) + 1);
    const figures = program.lines.find(([file, line]) => lineKey(file, line) === key)?.[2];
    const rows = [];
    if (figures) {
      rows.push(
        el("dt", {}, "cost"),
        el(
          "dd",
          {},
          program.metrics
            .map(
              ({ key: name, label, total }, n) =>
                `${label} ${figureText(name, figures[n])} (${shareText(total ? figures[n] / total : 0) || "0 %"})`,
            )
            .join(" · "),
        ),
      );
    }
    if (own.length) {
      const listed = [...counts]
        .sort((a, b) => b[1] - a[1])
        .map(([opcode, count]) => `${count} ${opcode}`)
        .join(", ");
      rows.push(el("dt", {}, "operations"), el("dd", {}, listed), ...this.links("", own));
    }
    const kernels = bundlesByLine(program).get(key);
    if (kernels)
      rows.push(
        el("dt", {}, "bundles"),
        el("dd", {}, kernels.map(([name, count]) => `${countText(count)} of ${name}`).join(", ")),
      );
    if (through.length)
      rows.push(
        el("dt", {}, "calls"),
        el("dd", {}, `code of ${many(through.length, "operation")}`),
      );
    return [
      el("h3", {}, whereText(key), "  ", el("code", { class: "dim" }, codeOf(key).trim())),
      el("dl", {}, rows),
    ];
  }
}
