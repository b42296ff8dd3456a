"use strict";
// The page of differences: both programs side by side, with matching operations in one row.

const DIFF_ROW = 24;

class DiffView extends PairRows {
  constructor(raw) {
    super(raw);
    this.pinned = null;
    this.active = 0;
    this.list = el("div", {
      class: "rows",
      role: "tree",
      tabindex: "0",
      "aria-label": "both programs",
      onkeydown: (event) => this.key(event),
      onclick: (event) => this.click(event),
      onmouseover: (event) => this.hover(event),
    });
    this.long = new LongList(this.list, DIFF_ROW, (index) => this.draw(index));
    this.detail = el("section", { class: "details pair", "aria-label": "details" });
    this.input = el("input", {
      type: "search",
      placeholder: "search both sides …",
      "aria-label": "search both sides",
      spellcheck: "false",
      oninput: () => {
        clearTimeout(this.waiting);
        this.waiting = setTimeout(() => this.search(), 60);
      },
      onkeydown: (event) => {
        if (event.key === "Enter") {
          this.search();
          this.step(event.shiftKey ? -1 : 1, (row) => row.hit);
        }
      },
    });
    this.found = el("span", { class: "count", role: "status" });
    this.all = el("input", {
      type: "checkbox",
      checked: this.everything,
      onchange: () => {
        this.everything = this.all.checked;
        this.flatten();
      },
    });
    const counts = this.counts();
    this.element = el("main", { class: "panes diff" });
    this.element.append(
      this.changes(),
      divider(this.element, "--left", 26),
      el(
        "div",
        { class: "right" },
        el(
          "div",
          { class: "bar" },
          el(
            "button",
            {
              type: "button",
              class: "step",
              title: "previous change (p)",
              onclick: () => this.toChange(-1),
            },
            "↑",
          ),
          el(
            "button",
            {
              type: "button",
              class: "step",
              title: "next change (n)",
              onclick: () => this.toChange(1),
            },
            "↓",
          ),
          el("div", { class: "search", role: "search" }, this.input, this.found),
          el("span", { class: "space" }),
          ...Object.entries(STATES)
            .slice(1)
            .filter(([state]) => counts[state])
            .map(([state, name]) =>
              el(
                "span",
                { class: `tally ${name}` },
                `${SIGNS[state]} ${countText(counts[state])} ${name}`,
              ),
            ),
          el("label", {}, this.all, " unchanged too"),
        ),
        el(
          "div",
          { class: "sides" },
          ...["a", "b"].map((side, n) =>
            el("div", { class: "side-name" }, el("b", {}, side), " ", raw.sides[n]),
          ),
        ),
        this.list,
        this.detail,
      ),
    );
    this.flatten();
    this.show(null);
  }

  /** Return the list of changes as sentences. */
  changes() {
    const { raw } = this;
    const totals = raw.totals.map(([key, before, after]) => {
      const shown = (value) =>
        key.endsWith("bytes") ? figureText("bytes", value) : figureText("", value);
      const share = before ? (after - before) / before : 0;
      return el(
        "tr",
        {},
        el("th", { scope: "row" }, key.replaceAll("_", " ")),
        el("td", {}, shown(before)),
        el("td", {}, "→"),
        el("td", {}, shown(after)),
        el(
          "td",
          { class: after > before ? "more" : "less" },
          before
            ? `${share > 0 ? "+" : ""}${(share * 100).toFixed(Math.abs(share) < 0.1 ? 1 : 0)} %`
            : "",
        ),
      );
    });
    this.items = raw.changes.map((change, n) =>
      el(
        "li",
        {
          class: change.under < 0 ? null : "part",
          "data-kind": change.kind,
          hidden: change.under >= 0,
          role: "option",
          "aria-selected": "false",
          id: `change-${n}`,
          "data-change": n,
          onclick: () => this.toRow(n),
        },
        raw.changes[n + 1]?.under === n ? el("span", { class: "fold" }, "▸") : "",
        el("span", { class: "what" }, change.text),
        ...[
          ["a", change.a],
          ["b", change.b],
        ]
          .flatMap(([, places]) => places)
          .filter(([, line]) => line)
          .filter(
            ([file, line], k, all) =>
              all.findIndex((other) => other[0] === file && other[1] === line) === k,
          )
          .slice(0, 4)
          .map(([file, line]) =>
            el(
              "span",
              { class: "place" },
              `${page.files[file].name}:${line} `,
              el("code", {}, (page.files[file].lines[line] ?? "").trim()),
            ),
          ),
      ),
    );
    this.menu = el(
      "ol",
      {
        class: "change-list",
        role: "listbox",
        tabindex: "0",
        "aria-label": "changes",
        onkeydown: (event) => {
          const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
          if (!step || !this.items.length) return;
          const seen = this.items.filter((item) => !item.hidden);
          const at = seen.findIndex((item) => item.getAttribute("aria-selected") === "true");
          const next = seen[Math.min(seen.length - 1, Math.max(0, at + step))];
          this.toRow(this.items.indexOf(next), false);
          event.preventDefault();
        },
      },
      this.items,
    );
    return el(
      "aside",
      { class: "changes" },
      raw.changes.length ? "" : el("p", { class: "empty" }, "Nothing differs."),
      totals.length ? el("table", { class: "totals" }, totals) : "",
      this.menu,
    );
  }

  // ---- rows -------------------------------------------------------------------------------------

  flatten() {
    super.flatten();
    this.active = Math.min(this.active, Math.max(0, this.rows.length - 1));
    this.long.setCount(this.rows.length);
  }

  draw(index) {
    const row = this.rows[index];
    const made = el("div", {
      class: "pair-row",
      role: "treeitem",
      id: `row-${index}`,
      "data-row": index,
      "aria-level": row.depth + 1,
      "aria-expanded": row.folds || row.head ? String(row.open) : row.gap ? "false" : null,
    });
    made.style.setProperty("--depth", row.depth);
    if (row.gap) {
      made.classList.add("fold-row");
      made.append(
        el("span", {}, `⋯ ${many(row.gap, `unchanged ${this.a.program ? "operation" : "line"}`)}`),
      );
      return made;
    }
    if (row.head) {
      made.classList.add("head-row");
      made.append(
        el("span", { class: "fold" }, row.open ? "▾" : "▸"),
        el("b", {}, row.head),
        " ",
        this.raw.sections[row.callee].title,
        el("span", { class: "dim" }, ` ${many(row.size, "operation")}`),
      );
      return made;
    }
    made.classList.add(STATES[row.state]);
    made.append(...this.cells(row));
    this.mark(made, row, index);
    return made;
  }

  cells({ section, row, state, folds, open }) {
    const a = section.a[row];
    const b = section.b[row];
    const drawn = this.difference(a, b, state, true);
    const cell = (side, n, parts, name) => {
      if (n < 0) return el("div", { class: "cell none" });
      const key = side.line(n);
      return el(
        "div",
        { class: `cell ${name}` },
        el("span", { class: "sign" }, SIGNS[state]),
        el("span", { class: "fold" }, folds ? (open ? "▾" : "▸") : ""),
        el("span", { class: "body" }, parts),
        key < 0 ? "" : el("span", { class: "where" }, whereText(key)),
      );
    };
    return [cell(this.a, a, drawn[0], "a"), cell(this.b, b, drawn[1], "b")];
  }

  /**
   * Return the parts of both sides as elements, with differences highlighted. In unchanged rows
   * only operands can differ: those that were added or removed, which have their own changes.
   */
  difference(a, b, state, short) {
    const sides = [
      [this.a, a],
      [this.b, b],
    ].map(([side, n]) => (n < 0 ? [] : side.parts(n, short)));
    const plain = (parts) => parts.flatMap(([kind, text]) => this.part(kind, text, false));
    const changed = state === "~";
    if (a < 0 || b < 0 || !(changed || (state === "=" && this.a.program))) return sides.map(plain);
    if (!this.a.program) {
      return wordsApart(sides[0][0][1], sides[1][0][1]).map((words) =>
        words.map(([text, only]) => (only ? el("mark", {}, text) : text)),
      );
    }
    const texts = sides.map((parts) => new Set(parts.map(([kind, text]) => `${kind}\0${text}`)));
    const operands = sides.map(
      (parts) => new Set(parts.filter(([kind]) => kind === "operand").map(([, , n]) => n)),
    );
    const partners = new Set([...operands[0]].map((n) => this.partner.get(n)));
    const apart = (kind, text, other) =>
      changed && kind !== "name" && kind !== "dim" && !texts[other].has(`${kind}\0${text}`);
    const marks = [
      ([kind, text, n]) =>
        kind === "operand" ? !operands[1].has(this.partner.get(n)) : apart(kind, text, 1),
      ([kind, text, n]) => (kind === "operand" ? !partners.has(n) : apart(kind, text, 0)),
    ];
    return sides.map((parts, side) =>
      parts.flatMap((part) => this.part(part[0], part[1], marks[side](part))),
    );
  }

  part(kind, text, marked) {
    const space = kind === "extra" || kind === "type" || kind.startsWith("opcode") ? " " : "";
    return [space, el(marked ? "mark" : "span", { class: kind }, text)];
  }

  mark(made, row, index) {
    made.classList.toggle("active", index === this.active);
    made.classList.toggle("pinned", this.pinned === row.path);
    made.classList.toggle("hit", Boolean(row.hit));
    const told = row.section?.changes[row.row] ?? [];
    made.classList.toggle("told", this.chosen !== undefined && told.includes(this.chosen));
  }

  paint() {
    for (let n = this.long.first; n < this.long.end; n += 1) {
      const made = this.long.row(n);
      if (made && this.rows[n].section) this.mark(made, this.rows[n], n);
    }
  }

  // ---- hover ------------------------------------------------------------------------------------

  show(row) {
    if (!row?.section) {
      if (!this.pinned)
        this.detail.replaceChildren(
          el(
            "p",
            { class: "dim" },
            "Point at a row to see its source lines and all of its text; click to keep them.",
          ),
        );
      return;
    }
    const { section, row: at, state } = row;
    const a = section.a[at];
    const b = section.b[at];
    const told = section.changes[at] ?? [];
    const full = this.difference(a, b, state, false);
    this.detail.replaceChildren(
      told.length
        ? el(
            "ul",
            { class: "told-list" },
            told.slice(0, 6).map((n) => el("li", {}, this.raw.changes[n].text)),
          )
        : "",
      el(
        "div",
        { class: "both" },
        ...[
          [this.a, a, "a"],
          [this.b, b, "b"],
        ].map(([side, n, name], k) =>
          el(
            "div",
            { class: `one ${name}` },
            n < 0
              ? el("span", { class: "dim" }, `not in ${name}`)
              : [this.source(side, n), el("code", { class: "full" }, full[k])],
          ),
        ),
      ),
    );
    for (const [n, item] of this.items.entries()) item.classList.toggle("lit", told.includes(n));
  }

  source(side, n) {
    const key = side.line(n);
    if (key < 0) return el("div", { class: "dim" }, "no line is known");
    const { file, line } = lineOf(key);
    const near = [line - 1, line, line + 1].filter(
      (each) => page.files[file].lines[each] !== undefined,
    );
    return el(
      "div",
      { class: "source-lines" },
      el("div", { class: "dim" }, whereText(key)),
      near.map((each) =>
        el(
          "div",
          { class: each === line ? "line strong" : "line" },
          el("span", { class: "gutter" }, el("span", { class: "number" }, each)),
          codeLine(page.files[file].lines[each], ""),
        ),
      ),
    );
  }

  hover(event) {
    const at = event.target.closest?.("[data-row]");
    if (at && !this.pinned) this.show(this.rows[at.dataset.row]);
  }

  click(event) {
    const at = event.target.closest("[data-row]");
    if (!at) return;
    this.active = Number(at.dataset.row);
    const row = this.rows[this.active];
    if (row.gap || row.head || event.target.closest(".fold")) this.toggle(row);
    else this.pin(row);
  }

  pin(row) {
    this.pinned = row && this.pinned !== row.path ? row.path : null;
    this.show(row);
    this.paint();
  }

  toggle(row) {
    if (!row.key) return;
    if (!this.open.delete(row.key)) this.open.add(row.key);
    this.flatten();
  }

  /** Scroll to the first row of a change or of its parts, unfolding the sections around it. */
  toRow(change, turn = true) {
    const parts = this.parts(change);
    if (turn && parts.length) this.unfoldParts(change, this.items[parts[0]].hidden);
    if (this.raw.changes[change].under >= 0) this.unfoldParts(this.raw.changes[change].under, true);
    this.chosen = change;
    this.items.forEach((item, n) => item.setAttribute("aria-selected", n === change));
    this.menu.setAttribute("aria-activedescendant", `change-${change}`);
    this.items[change].scrollIntoView({ block: "nearest" });
    const row = parts[0] ?? change;
    const is = (each) => each.section?.changes[each.row]?.includes(row);
    let index = this.rows.findIndex(is);
    if (index < 0 && this.unfoldTo(row)) index = this.rows.findIndex(is);
    if (index >= 0) {
      this.active = index;
      this.long.reveal(index, true);
      this.pinned = null;
      this.pin(this.rows[index]);
    }
    this.paint();
  }

  step(by, wanted) {
    const count = this.rows.length;
    for (let n = 1; n <= count; n += 1) {
      const index = (this.active + by * n + count * n) % count;
      if (!wanted(this.rows[index])) continue;
      this.active = index;
      this.long.reveal(index, true);
      this.pinned = null;
      this.pin(this.rows[index]);
      return;
    }
  }

  toChange(by) {
    this.step(by, (row) => row.state && row.state !== "=");
  }

  search() {
    clearTimeout(this.waiting);
    if (this.query === this.input.value.trim()) return;
    this.query = this.input.value.trim();
    this.flatten();
    this.list.scrollTop = 0;
    this.active = 0;
    const sides = [this.a.searched(), this.b.searched()];
    this.found.textContent = this.query
      ? unknownFigures(this.query, sides) || many(this.rows.filter((row) => row.hit).length, "hit")
      : "";
  }

  key(event) {
    const row = this.rows[this.active];
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20, Home: -1e9, End: 1e9 }[
      event.key
    ];
    if (step) {
      this.active = Math.min(this.rows.length - 1, Math.max(0, this.active + step));
      this.long.reveal(this.active);
      if (!this.pinned) this.show(this.rows[this.active]);
      this.paint();
    } else if ((event.key === "ArrowRight" || event.key === "ArrowLeft") && row?.key) {
      if (Boolean(row.open) !== (event.key === "ArrowRight")) this.toggle(row);
    } else if ((event.key === "Enter" || event.key === " ") && row)
      row.section ? this.pin(row) : this.toggle(row);
    else return;
    this.list.setAttribute("aria-activedescendant", `row-${this.active}`);
    event.preventDefault();
    event.stopPropagation();
  }
}

function diffPage(root) {
  const views = page.diffs.map(() => null);
  // The programs themselves, each drawn when it is chosen first.
  const programs = (page.programs ?? []).map(() => null);
  let now = 0;
  const body = el("div", { class: "diff-body" });
  const choose = (n) => {
    now = n;
    if (n >= views.length) {
      const which = n - views.length;
      if (!programs[which]) {
        programs[which] = el("div", { class: "one-program" });
        body.replaceChildren(programs[which]);
        programPage(programs[which], page.programs[which]);
      }
      body.replaceChildren(programs[which]);
      return;
    }
    views[n] ??= new DiffView(page.diffs[n]);
    body.replaceChildren(views[n].element);
    views[n].long.refresh(true);
  };
  const named = [...page.diffs, ...(page.programs ?? [])].map(({ label }, n) => ({
    key: String(n),
    text: label || `diff ${n + 1}`,
  }));
  const kinds = { hlo: "HLO", stablehlo: "StableHLO", jaxpr: "jaxpr" };
  root.append(
    el(
      "header",
      { class: "top" },
      el("h1", {}, page.title),
      page.diffs.length ? el("span", { class: "kind" }, kinds[page.diffs[0].kind]) : "",
      named.length > 1 ? choice("which", named, "0", (key) => choose(Number(key))) : "",
      el("span", { class: "space" }),
      el(
        "span",
        { class: "dim keys" },
        el("kbd", {}, "n"),
        " ",
        el("kbd", {}, "p"),
        " next, previous ",
        el("kbd", {}, "/"),
        " search ",
        el("kbd", {}, "esc"),
        " let go",
      ),
      themeButton(),
    ),
    page.table ? figures(page.table) : "",
    body,
  );
  if (named.length) choose(0);
  document.addEventListener("keydown", (event) => {
    const view = views[now];
    if (!view) return;
    const typing = event.target.closest?.("input[type=search]");
    if (event.key === "Escape") {
      if (typing) {
        view.input.value = "";
        view.search();
        typing.blur();
      }
      view.pinned = null;
      view.show(null);
      view.paint();
    } else if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    else if (event.key === "n") view.toChange(1);
    else if (event.key === "p") view.toChange(-1);
    else if (event.key === "/") view.input.focus();
    else return;
    event.preventDefault();
  });
  return {
    get view() {
      return views[now];
    },
  };
}

/** Return the table of a comparison, with a column per program. */
function figures({ heads, rows, errors, notes }) {
  return el(
    "div",
    { class: "figures" },
    el(
      "table",
      {},
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          el("th"),
          heads.map((head) => el("th", { scope: "col" }, head)),
        ),
      ),
      el(
        "tbody",
        {},
        rows.map(([title, values]) =>
          el(
            "tr",
            {},
            el("th", { scope: "row" }, title),
            values.map((value) => el("td", {}, value)),
          ),
        ),
      ),
    ),
    (errors ?? []).map(([label, text]) =>
      el("p", { class: "removed" }, `${label}: not compiled: ${text}`),
    ),
    (notes ?? []).map(([title, texts]) => {
      const items = texts.map((text) => el("li", {}, el("code", {}, text)));
      return el("details", { open: true }, el("summary", {}, title), el("ul", {}, items));
    }),
  );
}
