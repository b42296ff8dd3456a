"use strict";
// The base of all views: elements, numbers as text, the program, the selection, long lists.

const page = JSON.parse(document.getElementById("data").textContent);

/** Return an element. Children are elements or text; text is never parsed as HTML. */
function el(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  assign(made, properties);
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

function svg(tag, properties = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  assign(made, properties);
  made.append(...children);
  return made;
}

function assign(element, properties) {
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(key, value === true ? "" : value);
    }
  }
}

// ---- numbers as text ----------------------------------------------------------------------------

function scaled(value, units, base) {
  let step = 0;
  while (Math.abs(value) >= base && step < units.length - 1) {
    value /= base;
    step += 1;
  }
  const digits = value >= 100 || Number.isInteger(value) ? 0 : value >= 10 ? 1 : 2;
  return `${value.toFixed(digits)} ${units[step]}`.trim();
}

function timeText(seconds) {
  for (const [unit, size] of [
    ["s", 1],
    ["ms", 1e-3],
    ["µs", 1e-6],
  ]) {
    if (seconds >= size) return `${(seconds / size).toPrecision(3)} ${unit}`;
  }
  return `${(seconds * 1e9).toPrecision(3)} ns`;
}

function figureText(key, value) {
  if (value === null || value === undefined) return "?";
  if (key === "seconds" || key === "measured") return timeText(value);
  if (key === "bytes") return scaled(value, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"], 1024);
  return scaled(value, ["", "k", "M", "G", "T", "P", "E"], 1000);
}

function shareText(share) {
  if (!share) return "";
  if (share >= 0.0995) return `${(share * 100).toFixed(0)} %`;
  return share >= 0.001 ? `${(share * 100).toFixed(1)} %` : "<0.1 %";
}

const countText = (count) => count.toLocaleString("en");
const many = (count, word) => `${countText(count)} ${word}${count === 1 ? "" : "s"}`;

/** Return the heat of a share in percent, with a minimum that shows small shares. */
const heatLevel = (share) => (share > 0 ? Math.round(16 + 64 * Math.sqrt(Math.min(share, 1))) : 0);

// ---- the program --------------------------------------------------------------------------------

const LINES = 1e7;
const lineKey = (file, line) => file * LINES + line;
const lineOf = (key) => ({ file: Math.floor(key / LINES), line: key % LINES });

function whereText(key) {
  const { file, line } = lineOf(key);
  return line ? `${page.files[file].name}:${line}` : page.files[file].name;
}

function codeOf(key) {
  const { file, line } = lineOf(key);
  return page.files[file].lines[line] ?? "";
}

const KINDS = [
  [
    "matrix",
    /^(dot|dot_general|convolution|conv_general_dilated|ragged.dot|cholesky|triangular.solve|fft)$/,
  ],
  ["collective", /^(all-|all_|reduce-scatter|collective|send|recv|ragged-all|psum|ppermute)/],
  [
    "control",
    /^(while|conditional|call|case|if|async|scan|cond|jit|pjit|closed_call|custom_jvp|custom_vjp|shard_map|remat)/,
  ],
  ["fusion", /^fusion$/],
  ["custom", /^custom.call$/],
  ["reduce", /^(reduce|argmax|argmin|cumsum|cum|sort|select-and-scatter|map$)/],
  [
    "move",
    /^(copy|transpose|reshape|broadcast|slice|dynamic|gather|scatter|concatenate|pad|reverse|bitcast|squeeze|rev$)/,
  ],
  [
    "plain",
    /^(parameter|argument|constant|tuple|get-tuple|get_tuple|iota|return|after-all|partition|replica)/,
  ],
];

const kindsByOpcode = new Map();

function kindOf(opcode) {
  let found = kindsByOpcode.get(opcode);
  if (found === undefined) {
    found = (KINDS.find(([, pattern]) => pattern.test(opcode)) ?? ["element"])[0];
    kindsByOpcode.set(opcode, found);
  }
  return found;
}

class Program {
  constructor(raw) {
    Object.assign(this, raw);
    this.count = this.names.length;
    this.home = new Int32Array(this.count);
    this.callers = this.computations.map(() => []);
    this.computations.forEach((computation, number) => {
      this.home.fill(number, computation.first, computation.end);
    });
    for (const [op, calls] of Object.entries(this.called)) {
      for (const [, computation] of calls) this.callers[computation].push(Number(op));
    }
    this.entries = this.computations.map((c, n) => n).filter((n) => this.computations[n].entry);
    if (!this.entries.length && this.computations.length) this.entries = [0];
    // Computations that no entry reaches, such as those of malformed texts, are shown too.
    this.top = [...this.entries];
    this.computations.forEach((c, n) => {
      if (!c.entry && !this.callers[n].length && !this.top.includes(n)) this.top.push(n);
    });
    this.rootSet = new Set(this.roots);
    this.insides = new Map();
  }

  opcode(op) {
    return this.tables.opcodes[this.opcodes[op]];
  }
  type(op) {
    return this.tables.types[this.types[op]];
  }
  path(op) {
    return this.paths[op] < 0 ? "" : this.tables.paths[this.paths[op]];
  }
  calls(op) {
    return this.called[op] ?? [];
  }
  label(op) {
    return this.names[op] || this.opcode(op);
  }

  /** Return the user's source lines, innermost first: {key, function}. */
  stack(op) {
    if (this.stacks[op] < 0) return [];
    const flat = this.tables.stacks[this.stacks[op]];
    const found = [];
    for (let n = 0; n < flat.length; n += 3) {
      found.push({ key: lineKey(flat[n], flat[n + 1]), function: page.functions[flat[n + 2]] });
    }
    return found;
  }

  line(op) {
    if (this.stacks[op] < 0) return -1;
    const flat = this.tables.stacks[this.stacks[op]];
    return lineKey(flat[0], flat[1]);
  }

  get users() {
    if (!this.usersKnown) {
      this.usersKnown = Array.from({ length: this.count }, () => []);
      this.operands.forEach((operands, op) => {
        for (const operand of new Set(operands)) this.usersKnown[operand].push(op);
      });
    }
    return this.usersKnown;
  }

  /** Return the work of a fusion in a few words. */
  summary(op) {
    const [, computation] = this.calls(op)[0] ?? [];
    if (computation === undefined) return "";
    const { first, end } = this.computations[computation];
    const counts = new Map();
    for (let inner = first; inner < end; inner += 1) {
      const opcode = this.opcode(inner);
      const kind = kindOf(opcode);
      if (kind === "plain" || /^(broadcast|bitcast|reshape|convert|copy)$/.test(opcode)) continue;
      counts.set(opcode, (counts.get(opcode) ?? 0) + 1);
    }
    return [...counts]
      .map(([opcode, count]) => (count > 1 ? `${count} ${opcode}` : opcode))
      .join(", ");
  }

  /** Return the lines that an operation and the computations it calls come from. */
  linesOf(op) {
    const own = this.line(op);
    const found = new Set(own < 0 ? [] : [own]);
    for (const [, computation] of this.calls(op)) {
      for (const key of this.linesInside(computation)) found.add(key);
    }
    return found;
  }

  linesInside(computation) {
    let found = this.insides.get(computation);
    if (!found) {
      found = new Set();
      this.insides.set(computation, found);
      const { first, end } = this.computations[computation];
      for (let op = first; op < end; op += 1) {
        const own = this.line(op);
        if (own >= 0) found.add(own);
        for (const [, inner] of this.calls(op)) {
          for (const key of this.linesInside(inner)) found.add(key);
        }
      }
    }
    return found;
  }

  index() {
    if (this.byLine) return;
    this.byLine = new Map();
    this.throughLine = new Map();
    const add = (map, key, op) => (map.has(key) ? map.get(key).push(op) : map.set(key, [op]));
    for (let op = 0; op < this.count; op += 1) {
      this.stack(op).forEach(({ key }, depth) => {
        add(depth ? this.throughLine : this.byLine, key, op);
      });
    }
  }

  /** Return the operations that come from a line or from code that it called. */
  opsAt(key) {
    this.index();
    return { own: this.byLine.get(key) ?? [], through: this.throughLine.get(key) ?? [] };
  }

  /** Return the operations that directly or indirectly call the operations' computations. */
  holding(ops) {
    const found = new Set();
    const waiting = [...new Set([...ops].map((op) => this.home[op]))];
    const seen = new Set(waiting);
    while (waiting.length) {
      for (const op of this.callers[waiting.pop()]) {
        found.add(op);
        if (!seen.has(this.home[op])) {
          seen.add(this.home[op]);
          waiting.push(this.home[op]);
        }
      }
    }
    return found;
  }

  metric(key) {
    return this.metrics.find((metric) => metric.key === key);
  }

  share(op, key) {
    const metric = this.metric(key);
    return metric && metric.total ? (metric.values[op] ?? 0) / metric.total : 0;
  }

  /** Return the operands' text: strings, and numbers of operations. */
  arguments(op) {
    if (this.inside[op] !== undefined) return [this.inside[op]];
    return this.mixed[op] ?? this.operands[op];
  }

  /** Return the operand for a parameter of a computation with a single caller. */
  given(op) {
    const [caller, ...others] = this.callers[this.home[op]];
    if (this.opcode(op) !== "parameter" || caller === undefined || others.length) return undefined;
    if (!/^(fusion|call)$/.test(this.opcode(caller))) return undefined;
    return this.operands[caller][Number(this.inside[op])];
  }

  /** Return the text of an operation's row that plain words of a search are looked up in. */
  haystack(op) {
    this.haystacks ??= new Array(this.count);
    return (this.haystacks[op] ??= [
      this.names[op],
      this.opcode(op),
      this.type(op),
      this.where(op),
      this.extra[op] ?? "",
    ]
      .join("\n")
      .toLowerCase());
  }

  /** Return the file name and number of an operation's source line. */
  where(op) {
    const key = this.line(op);
    return key < 0 ? "" : whereText(key);
  }

  code(op) {
    const key = this.line(op);
    return key < 0 ? "" : codeOf(key);
  }
}

// The fields of a search, as functions of a program and an operation.
const FIELDS = {
  name: (program, op) => program.names[op],
  op: (program, op) => program.opcode(op),
  shape: (program, op) => program.type(op),
  type: (program, op) => program.type(op),
  path: (program, op) => program.path(op),
  line: (program, op) => program.where(op),
  code: (program, op) => program.code(op),
};
const COMPARISONS = {
  ">": (value, limit) => value > limit,
  ">=": (value, limit) => value >= limit,
  "<": (value, limit) => value < limit,
  "<=": (value, limit) => value <= limit,
};

/** Return whether a source line such as `model.py:37` is meant by `37`, `model.py:37` or `model`. */
function isLine(where, text) {
  if (!/(^|:)\d+$/.test(text)) return where.includes(text);
  return where === text || where.endsWith(`:${text}`) || where.endsWith(`/${text}`);
}

/**
 * Return the tests of a query's words, functions of a program and an operation that all must hold.
 *
 * A plain word is looked up in the operation's row; `op:dot` in one field; `line:37` is the number of
 * a line; `bytes>1e6` compares a figure, which is unknown on pages without costs.
 */
function queryOf(text) {
  return text
    .toLowerCase()
    .split(/\s+/)
    .filter(Boolean)
    .map((word) => {
      const [, figure, sign, limit] = /^(bytes|flops|seconds|measured)([<>]=?)(.+)$/.exec(word) ?? [];
      if (figure && Number.isFinite(Number(limit)))
        return (program, op) => {
          const value = program.metric(figure)?.values[op];
          return typeof value === "number" && COMPARISONS[sign](value, Number(limit));
        };
      const [, field, rest] = /^(\w+):(.+)$/.exec(word) ?? [];
      if (!Object.hasOwn(FIELDS, field ?? ""))
        return (program, op) => program.haystack(op).includes(word);
      const holds = field === "line" ? isLine : (value, wanted) => value.includes(wanted);
      return (program, op) => holds(FIELDS[field](program, op).toLowerCase(), rest);
    });
}

/** Return the figures that a query compares and that no program has, as a sentence; or "". */
function unknownFigures(query, programs) {
  const wanted = [...query.toLowerCase().matchAll(/(?:^|\s)(bytes|flops|seconds|measured)[<>]/g)];
  const missing = wanted.map(([, key]) => key).filter((key) => programs.every((p) => !p.metric(key)));
  return missing.length ? `this page has no ${[...new Set(missing)].join(", ")}` : "";
}

/** Return the operations for which every word of a query holds. */
function find(program, query) {
  const tests = queryOf(query);
  const found = [];
  for (let op = 0; tests.length && op < program.count; op += 1)
    if (tests.every((holds) => holds(program, op))) found.push(op);
  return found;
}

// ---- selection ----------------------------------------------------------------------------------

const DARK = {
  strong: new Set(),
  holding: new Set(),
  weak: new Set(),
  lines: new Set(),
  outer: new Set(),
};

/**
 * The hovered or pinned target, with its listeners: an operation {op}, a line {line}, or a bundle of
 * a kernel {op, bundle, lines}, whose operation and lines are lit.
 */
class Light {
  constructor(program) {
    this.program = program;
    this.pinned = null;
    this.hovered = null;
    this.lit = DARK;
    this.listeners = [];
  }

  hover(target) {
    if (same(this.hovered, target)) return;
    this.hovered = target;
    if (!this.pinned) this.update();
  }

  /** Pin a target, or unpin it when it is pinned already or null. */
  pin(target, from = "") {
    this.pinned = same(this.pinned, target) ? null : target;
    if (!this.pinned) this.hovered = null;
    this.update("pin", from);
  }

  get target() {
    return this.pinned ?? this.hovered;
  }

  update(why = "hover", from = "") {
    const { target } = this;
    this.lit = target ? this.around(target) : DARK;
    for (const listener of this.listeners) listener(why, from);
  }

  around(target) {
    const program = this.program;
    if (target.op !== undefined) {
      const [, ...outer] = program.stack(target.op);
      return {
        strong: new Set([target.op]),
        holding: program.holding([target.op]),
        weak: new Set(),
        lines: target.lines ? new Set(target.lines) : program.linesOf(target.op),
        outer: new Set(outer.map(({ key }) => key)),
      };
    }
    const { own, through } = program.opsAt(target.line);
    return {
      strong: new Set(own),
      holding: program.holding([...own, ...through]),
      weak: new Set(through),
      lines: new Set([target.line]),
      outer: new Set(),
    };
  }
}

const same = (a, b) =>
  Boolean(a && b && a.op === b.op && a.line === b.line && a.bundle === b.bundle);

// ---- long lists ---------------------------------------------------------------------------------

/** A list that has elements for visible rows only. */
class LongList {
  constructor(element, rowHeight, draw) {
    this.element = element;
    this.rowHeight = rowHeight;
    this.draw = draw;
    this.count = 0;
    this.first = this.end = 0;
    this.body = el("div", { class: "long-body" });
    this.sight = el("div", { class: "long-sight" });
    this.body.append(this.sight);
    element.append(this.body);
    element.addEventListener("scroll", () => this.refresh(), { passive: true });
    new ResizeObserver(() => this.refresh()).observe(element);
  }

  setCount(count) {
    this.count = count;
    this.body.style.height = `${count * this.rowHeight}px`;
    this.refresh(true);
  }

  refresh(anew = false) {
    const { scrollTop, clientHeight } = this.element;
    const first = Math.max(0, Math.floor(scrollTop / this.rowHeight) - 12);
    const end = Math.min(this.count, Math.ceil((scrollTop + clientHeight) / this.rowHeight) + 12);
    if (!anew && first === this.first && end === this.end) return;
    this.first = first;
    this.end = end;
    this.sight.style.transform = `translateY(${first * this.rowHeight}px)`;
    this.sight.replaceChildren(
      ...Array.from({ length: end - first }, (_, n) => this.draw(first + n)),
    );
  }

  /** Return the element of a visible row. */
  row(index) {
    return index >= this.first && index < this.end ? this.sight.children[index - this.first] : null;
  }

  reveal(index, centered = false) {
    const top = index * this.rowHeight;
    const { scrollTop, clientHeight } = this.element;
    if (top < scrollTop || top + this.rowHeight > scrollTop + clientHeight) {
      const share = centered ? 2 : 3;
      this.element.scrollTop = Math.max(0, top - clientHeight / share);
    }
    this.refresh();
  }
}

/** Return a bar that resizes two panes by dragging or by the arrow keys. */
function divider(container, property, start) {
  const bar = el("div", {
    class: "divider",
    role: "separator",
    tabindex: "0",
    "aria-orientation": "vertical",
    "aria-label": "width of the left side",
    "aria-valuemin": "10",
    "aria-valuemax": "80",
  });
  let share = start;
  const set = (value) => {
    share = Math.min(80, Math.max(10, value));
    bar.setAttribute("aria-valuenow", Math.round(share));
    container.style.setProperty(property, `${share}%`);
  };
  bar.addEventListener("pointerdown", (event) => {
    bar.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  bar.addEventListener("pointermove", (event) => {
    if (!bar.hasPointerCapture(event.pointerId)) return;
    const box = container.getBoundingClientRect();
    set(((event.clientX - box.left) / box.width) * 100);
  });
  bar.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -2, ArrowRight: 2 }[event.key];
    if (step) set(share + step);
  });
  set(start);
  return bar;
}

/** Return a group of buttons of which one is active. */
function choice(label, options, chosen, onchange) {
  const group = el("div", { class: "choice", role: "radiogroup", "aria-label": label });
  const buttons = options.map(({ key, text, title }) =>
    el(
      "button",
      {
        type: "button",
        role: "radio",
        "data-key": key,
        title,
        onclick: () => {
          choose(key);
          onchange(key);
        },
      },
      text,
    ),
  );
  const choose = (key) =>
    buttons.forEach((button) => {
      const on = button.dataset.key === key;
      button.setAttribute("aria-checked", on);
      button.tabIndex = on ? 0 : -1;
    });
  group.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    const at = buttons.findIndex((button) => button.tabIndex === 0);
    const next = buttons[(at + step + buttons.length) % buttons.length];
    next.focus();
    next.click();
    event.preventDefault();
  });
  group.append(...buttons);
  group.choose = choose;
  choose(chosen);
  return group;
}

function themeButton() {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  return el(
    "button",
    {
      type: "button",
      class: "quiet",
      title: "light or dark",
      "aria-label": "light or dark",
      onclick: () => {
        const style = document.documentElement.style;
        const now = style.colorScheme || (dark.matches ? "dark" : "light");
        style.colorScheme = now === "dark" ? "light" : "dark";
      },
    },
    "◐",
  );
}
