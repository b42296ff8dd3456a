"use strict";
// The user's source: the lines that operations come from and lines around them, others folded.

const CONTEXT = 3;
const PYTHON =
  /(#.*$)|([rbfuRBFU]{0,2}(?:"""|'''))|([rbfuRBFU]{0,2}"(?:[^"\\]|\\.)*"?|[rbfuRBFU]{0,2}'(?:[^'\\]|\\.)*'?)|(@[\w.]+)|\b(and|as|assert|async|await|break|class|continue|def|del|elif|else|except|finally|for|from|global|if|import|in|is|lambda|nonlocal|not|or|pass|raise|return|try|while|with|yield|True|False|None)\b|\b(\d[\w.]*)\b/g;

/** Return a line of Python in colors; `open` is the quote of a string that began earlier. */
function pythonLine(text, open) {
  const parts = [];
  let at = 0;
  const add = (kind, end) => {
    if (end > at)
      parts.push(
        kind ? el("span", { class: `py-${kind}` }, text.slice(at, end)) : text.slice(at, end),
      );
    at = end;
  };
  if (open) {
    const close = text.indexOf(open);
    add("string", close < 0 ? text.length : close + 3);
    if (close < 0) return { parts, open };
  }
  PYTHON.lastIndex = at;
  for (let found; (found = PYTHON.exec(text));) {
    add("", found.index);
    if (found[2]) {
      const quote = found[2].slice(-3);
      const close = text.indexOf(quote, PYTHON.lastIndex);
      add("string", close < 0 ? text.length : close + 3);
      if (close < 0) return { parts, open: quote };
      PYTHON.lastIndex = at;
      continue;
    }
    const kind = found[1]
      ? "comment"
      : found[3]
        ? "string"
        : found[4]
          ? "decorator"
          : found[5]
            ? "keyword"
            : "number";
    add(kind, PYTHON.lastIndex);
  }
  add("", text.length);
  return { parts, open: "" };
}

/**
 * Return the code of a line. The indentation is out of the flow, so that a long word that follows
 * it cannot wrap away from it, and continuation rows are indented further than the first one.
 */
function codeLine(text, open) {
  const indent = open ? "" : text.match(/^\s*/)[0];
  const columns = [...indent].reduce((n, c) => (c === "\t" ? n + 8 - (n % 8) : n + 1), 0);
  const code = el(
    "code",
    {},
    indent ? el("span", { class: "indent" }, indent) : "",
    pythonLine(text.slice(indent.length), open).parts,
  );
  code.style.setProperty("--indent", `${columns}ch`);
  return code;
}

class Sources {
  constructor(program, light) {
    this.program = program;
    this.light = light;
    this.rows = new Map();
    this.active = null;
    this.figures = new Map(
      program.lines.map(([file, line, figures]) => [lineKey(file, line), figures]),
    );
    this.bundles = bundlesByLine(program);
    program.index();
    this.element = el("div", {
      class: "sources",
      role: "listbox",
      tabindex: "0",
      "aria-label": "source lines",
      onkeydown: (event) => this.key(event),
      onmouseleave: () => light.hover(null),
    });
    const used = page.files.map(() => new Set());
    const known = [program.byLine, program.throughLine, this.bundles];
    for (const key of known.flatMap((lines) => [...lines.keys()])) {
      used[lineOf(key).file].add(lineOf(key).line);
    }
    const order = page.files.map((_, file) => file).filter((file) => used[file].size);
    const weight = (file) =>
      [...used[file]].reduce(
        (sum, line) => sum + (program.byLine.get(lineKey(file, line)) ?? []).length,
        0,
      );
    order.sort((a, b) => weight(b) - weight(a));
    for (const file of order) this.element.append(this.file(file, used[file]));
    if (!order.length) {
      this.element.append(
        el("p", { class: "empty" }, "The program does not say which lines it comes from."),
      );
    }
    light.listeners.push((why, from) => this.paint(why, from));
  }

  file(file, used) {
    const { name, path, lines } = page.files[file];
    const group = el(
      "section",
      { role: "group", "aria-label": name },
      el(
        "h2",
        { title: path },
        el("b", {}, name),
        " ",
        el("span", {}, path.slice(0, -name.length)),
      ),
    );
    const known = Object.keys(lines).map(Number);
    const states = new Map();
    let open = "";
    for (const line of known) {
      states.set(line, open);
      open = pythonLine(lines[line], open).open;
    }
    const last = known.length ? Math.max(...known) : 0;
    const shown = new Set();
    for (const line of used) {
      for (let n = line - CONTEXT; n <= line + CONTEXT; n += 1)
        if (lines[n] !== undefined) shown.add(n);
      shown.add(line);
    }
    // A gap of one or two lines is not shorter when folded.
    for (const line of [...shown]) {
      for (const span of [2, 3]) {
        if (!shown.has(line + span) || shown.has(line + 1)) continue;
        for (let n = line + 1; n < line + span; n += 1) if (lines[n] !== undefined) shown.add(n);
      }
    }
    const body = el("div", { class: "code" });
    const draw = (line) => this.line(file, line, lines[line], states.get(line), used.has(line));
    let before = 0;
    for (const line of [...shown].sort((a, b) => a - b)) {
      if (line > before + 1 && known.length)
        body.append(this.gap(before + 1, line - 1, lines, draw));
      body.append(draw(line));
      before = line;
    }
    if (last > before) body.append(this.gap(before + 1, last, lines, draw));
    if (!known.length)
      group.append(
        el("p", { class: "empty" }, "The file is not here: only its lines' numbers are known."),
      );
    group.append(body);
    return group;
  }

  gap(first, last, lines, draw) {
    const inside = [];
    for (let n = first; n <= last; n += 1) if (lines[n] !== undefined) inside.push(n);
    const text = many(last - first + 1, "line");
    if (!inside.length) return el("div", { class: "gap" }, `⋯ ${text}`);
    const button = el(
      "button",
      {
        type: "button",
        class: "gap",
        tabindex: "-1",
        title: "unfold",
        onclick: () => button.replaceWith(...inside.map(draw)),
      },
      `⋯ ${text}`,
    );
    return button;
  }

  line(file, line, text, open, used) {
    const key = lineKey(file, line);
    const row = el(
      "div",
      { class: used ? "line used" : "line", "data-line": `${file}:${line}` },
      el(
        "span",
        { class: "gutter" },
        el("span", { class: "number" }, line),
        el("span", { class: "share" }),
        el("span", { class: "count" }),
      ),
      codeLine(text ?? "", open),
    );
    if (!used) return row;
    const { own, through } = this.program.opsAt(key);
    const bundles = (this.bundles.get(key) ?? []).reduce((sum, [, count]) => sum + count, 0);
    assign(row, {
      role: "option",
      id: `line-${file}-${line}`,
      "aria-selected": "false",
      onmouseenter: () => this.light.hover({ line: key }),
      onclick: () => {
        this.active = key;
        this.light.pin({ line: key }, "sources");
      },
    });
    const count = row.querySelector(".count");
    count.title = own.length
      ? `${many(own.length, "operation")} from this line`
      : bundles
        ? `${many(bundles, "bundle")} of kernels from this line`
        : `${many(through.length, "operation")} from what it calls`;
    count.textContent = own.length
      ? countText(own.length)
      : bundles
        ? `▤${countText(bundles)}`
        : `↳${countText(through.length)}`;
    this.rows.set(key, row);
    return row;
  }

  /** Color the lines by their cost in one metric. */
  heat(key) {
    const place = this.program.metrics.findIndex((metric) => metric.key === key);
    for (const [line, row] of this.rows) {
      const value = place < 0 ? null : this.figures.get(line)?.[place];
      const total = place < 0 ? 0 : this.program.metrics[place].total;
      const share = value && total ? value / total : 0;
      row.style.setProperty("--heat", `${heatLevel(share)}%`);
      row.dataset.share = share.toFixed(4);
      row.querySelector(".share").textContent = shareText(share);
      row.title =
        place < 0 || !value
          ? ""
          : this.program.metrics
              .map(
                (metric, n) =>
                  `${metric.label}: ${figureText(metric.key, this.figures.get(line)[n])}`,
              )
              .join("\n");
    }
  }

  paint(why, from) {
    const { lines, outer } = this.light.lit;
    const pinned = this.light.pinned?.line;
    for (const [key, row] of this.rows) {
      row.classList.toggle("strong", lines.has(key));
      row.classList.toggle("weak", outer.has(key) && !lines.has(key));
      row.setAttribute("aria-selected", key === pinned);
    }
    if (why === "pin" && from !== "sources" && this.light.pinned?.op !== undefined) {
      const { op, lines: ofBundle } = this.light.pinned;
      const key = ofBundle?.[0] ?? this.program.line(op);
      const first = this.rows.get(key) ?? this.rows.get([...lines][0]);
      first?.scrollIntoView({ block: "nearest" });
    }
  }

  key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      const keys = [...this.rows.keys()];
      const at = keys.indexOf(this.active);
      this.active = keys[Math.min(keys.length - 1, Math.max(0, at < 0 ? 0 : at + step))];
      const row = this.rows.get(this.active);
      if (row) {
        this.element.setAttribute("aria-activedescendant", row.id);
        for (const other of this.rows.values()) other.classList.toggle("active", other === row);
        row.scrollIntoView({ block: "nearest" });
        this.light.hover({ line: this.active });
      }
      event.preventDefault();
    } else if ((event.key === "Enter" || event.key === " ") && this.active !== null) {
      this.light.pin({ line: this.active }, "sources");
      event.preventDefault();
    }
  }
}
