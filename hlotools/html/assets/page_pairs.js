"use strict";
// The pairs of a diff: the parts of operations, and the words of lines that differ.
// The visible rows are those that differ, rows around them, and unfolded or matching ones.

const AROUND = 3;
const SHORTEST_FOLD = 4;
const STATES = { "=": "same", "~": "changed", "-": "removed", "+": "added", "%": "regrouped" };
const SIGNS = { "=": "", "~": "~", "-": "−", "+": "+", "%": "⇄" };

/** One side of a diff: a program, or lines of text. */
class Side {
  constructor(raw) {
    this.program = raw.texts ? null : new Program(raw);
    this.raw = raw;
  }

  line(n) {
    if (this.program) return this.program.line(n);
    const [file, line] = this.raw.stacks[n];
    return file === undefined ? -1 : lineKey(file, line);
  }

  /** Return what a search looks in: the program, or lines of text whose fields are their text. */
  searched() {
    const { texts } = this.raw;
    const where = (n) => (this.line(n) < 0 ? "" : whereText(this.line(n)));
    const text = (n) => texts[n];
    return (this.searching ??= this.program ?? {
      names: texts,
      opcode: text,
      type: text,
      path: text,
      where,
      code: (n) => (this.line(n) < 0 ? "" : codeOf(this.line(n))),
      metric: () => undefined,
      haystack: (n) => `${texts[n]}\n${where(n)}`.toLowerCase(),
    });
  }

  /** Return the parts of an operation with their classes, to compare and to show. */
  parts(n, short = true) {
    const { program } = this;
    if (!program) return [["text", this.raw.texts[n]]];
    const cut = (text, longest) =>
      short && text.length > longest ? `${text.slice(0, longest - 1)}…` : text;
    const found = [
      ["name", program.names[n]],
      [`opcode ${kindOf(program.opcode(n))}`, program.opcode(n)],
      ["dim", "("],
    ];
    program.arguments(n).forEach((each, k) => {
      if (k) found.push(["dim", ", "]);
      found.push(
        typeof each === "number"
          ? ["operand", program.label(each), each]
          : ["literal", cut(each, 60)],
      );
    });
    found.push(["dim", ")"], ["type", program.type(n)]);
    for (const part of split(program.extra[n] ?? "")) found.push(["extra", cut(part, 90)]);
    if (!short && program.hidden[n])
      for (const part of program.hidden[n].split("\n")) found.push(["extra", part]);
    return found;
  }
}

/** Return a list of attributes, split at the commas between them. */
function split(text) {
  const found = [];
  let depth = 0;
  let start = 0;
  let quoted = false;
  for (let n = 0; n < text.length; n += 1) {
    if (text[n] === '"' && text[n - 1] !== "\\") quoted = !quoted;
    if (quoted) continue;
    if ("{[(".includes(text[n])) depth += 1;
    else if ("}])".includes(text[n])) depth -= 1;
    else if (text[n] === "," && !depth) {
      found.push(text.slice(start, n).trim());
      start = n + 1;
    }
  }
  if (text.slice(start).trim()) found.push(text.slice(start).trim());
  return found;
}

/** Return the words of two texts as two lists of [text, whether it is on this side only]. */
function wordsApart(a, b) {
  const first = a.match(/[\w.]+|\s+|[^\w\s.]/g) ?? [];
  const second = b.match(/[\w.]+|\s+|[^\w\s.]/g) ?? [];
  if (first.length * second.length > 250000) return [[[a, true]], [[b, true]]];
  const width = second.length + 1;
  const longest = new Uint16Array((first.length + 1) * width);
  for (let n = first.length - 1; n >= 0; n -= 1) {
    for (let m = second.length - 1; m >= 0; m -= 1) {
      longest[n * width + m] =
        first[n] === second[m]
          ? longest[(n + 1) * width + m + 1] + 1
          : Math.max(longest[(n + 1) * width + m], longest[n * width + m + 1]);
    }
  }
  const sides = [[], []];
  let n = 0;
  let m = 0;
  while (n < first.length || m < second.length) {
    if (n < first.length && m < second.length && first[n] === second[m]) {
      sides[0].push([first[n], false]);
      sides[1].push([second[m], false]);
      n += 1;
      m += 1;
    } else if (
      m >= second.length ||
      (n < first.length && longest[(n + 1) * width + m] >= longest[n * width + m + 1])
    ) {
      sides[0].push([first[n], true]);
      n += 1;
    } else {
      sides[1].push([second[m], true]);
      m += 1;
    }
  }
  return sides;
}

/** The visible rows of two programs. */
class PairRows {
  constructor(raw) {
    this.raw = raw;
    this.a = new Side(raw.a);
    this.b = new Side(raw.b);
    this.open = new Set();
    this.everything = !raw.changes.length;
    this.query = "";
    this.rows = [];
    this.partner = new Map();
    for (const { a, b, states } of raw.sections) {
      a.forEach((n, row) => {
        if (n >= 0 && b[row] >= 0 && states[row] !== "%") this.partner.set(n, b[row]);
      });
    }
    this.changedWithin = raw.sections.map(() => undefined);
    this.openChanged(0, "s0", 0);
  }

  /** Return the number of rows of each state. */
  counts() {
    const found = {};
    for (const { states, a, b } of this.raw.sections) {
      // Rows inside an added or removed operation are counted with it.
      if (a.every((n) => n < 0) || b.every((n) => n < 0)) continue;
      for (const state of states) found[state] = (found[state] ?? 0) + 1;
    }
    return found;
  }

  /** Return whether a section, or one that it calls, has rows that differ. */
  differs(number, depth = 0) {
    if (this.changedWithin[number] !== undefined || depth > 40)
      return this.changedWithin[number] ?? false;
    this.changedWithin[number] = false;
    const { states, calls } = this.raw.sections[number];
    const own = /[^=]/.test(states);
    const inside = Object.values(calls).some((each) =>
      each.some(([, callee]) => this.differs(callee, depth + 1)),
    );
    this.changedWithin[number] = own || inside;
    return this.changedWithin[number];
  }

  /** Open initially the sections with differences inside matching operations. */
  openChanged(number, path, depth) {
    if (depth > 20 || this.open.size > 400) return;
    const { states, calls } = this.raw.sections[number];
    for (const [row, called] of Object.entries(calls)) {
      if (!"=~".includes(states[row])) continue;
      called.forEach(([, callee], n) => {
        if (!this.differs(callee)) return;
        const inside = `${path}/${row}:${n}`;
        this.open.add(`${path}/${row}`).add(inside);
        this.openChanged(callee, inside, depth + 1);
      });
    }
  }

  flatten() {
    const rows = [];
    const words = queryOf(this.query);
    const block = (number, path, depth) => {
      const section = this.raw.sections[number];
      const { states, calls } = section;
      const shown = new Uint8Array(states.length);
      const interesting = (row) =>
        states[row] !== "=" || (calls[row] ?? []).some(([, callee]) => this.differs(callee));
      for (let row = 0; row < states.length; row += 1) {
        if (this.everything || words.length || interesting(row)) {
          const around = words.length || this.everything ? 0 : AROUND;
          for (
            let near = Math.max(0, row - around);
            near <= Math.min(states.length - 1, row + around);
            near += 1
          )
            shown[near] = 1;
        }
      }
      for (let row = 0; row < states.length; row += 1) {
        if (!shown[row]) {
          let end = row;
          while (end < states.length && !shown[end]) end += 1;
          const key = `${path}/gap${row}`;
          if (end - row >= SHORTEST_FOLD && !this.open.has(key)) {
            rows.push({ gap: end - row, key, depth });
            row = end - 1;
            continue;
          }
          shown.fill(1, row, end);
        }
        const hit = words.length > 0 && this.fits(section, row, words);
        const called = calls[row] ?? [];
        const item = {
          section,
          row,
          depth,
          hit,
          state: states[row],
          path: `${path}/${row}`,
          number,
        };
        if (!words.length || hit || called.length) rows.push(item);
        const before = rows.length;
        const size = called.reduce(
          (sum, [, callee]) => sum + this.raw.sections[callee].states.length,
          0,
        );
        if (size) {
          item.key = item.path;
          item.folds = true;
          item.open =
            this.open.has(item.key) ||
            (words.length > 0 && called.some(([, callee]) => this.differs(callee)));
          if (item.open && depth < 40)
            called.forEach(([label, callee], n) => {
              const inside = `${path}/${row}:${n}`;
              if (called.length === 1) block(callee, inside, depth + 1);
              else {
                const open = this.open.has(inside);
                rows.push({
                  head: label,
                  callee,
                  key: inside,
                  depth: depth + 1,
                  open,
                  size: this.raw.sections[callee].states.length,
                });
                if (open) block(callee, inside, depth + 2);
              }
            });
        }
        // In sections without hits, only rows with hits inside are visible.
        if (words.length && !hit && called.length && !rows.slice(before).some((each) => each.hit))
          rows.length = before - 1;
      }
    };
    block(0, "s0", 0);
    this.rows = rows;
  }

  /** Return whether every word of a query holds for an operation of a row's two sides. */
  fits(section, row, words) {
    const sides = [
      [this.a, section.a[row]],
      [this.b, section.b[row]],
    ].filter(([, n]) => n >= 0);
    return words.every((holds) => sides.some(([side, n]) => holds(side.searched(), n)));
  }

  /** Return the numbers of the parts of a change. */
  parts(change) {
    return this.raw.changes.flatMap(({ under }, n) => (under === change ? [n] : []));
  }

  /** Show or hide the parts of a change. */
  unfoldParts(change, open) {
    const fold = this.items[change].querySelector(".fold");
    if (!fold) return;
    fold.textContent = open ? "▾" : "▸";
    for (const n of this.parts(change)) this.items[n].hidden = !open;
  }

  /** Unfold the sections around the first row of a change. */
  unfoldTo(change) {
    const seen = new Set();
    const walk = (number, path) => {
      if (seen.has(number)) return false;
      seen.add(number);
      const { changes, calls } = this.raw.sections[number];
      if (Object.values(changes).some((told) => told.includes(change))) return true;
      for (const [row, called] of Object.entries(calls)) {
        for (const [n, [, callee]] of called.entries()) {
          if (walk(callee, `${path}/${row}:${n}`)) {
            this.open.add(`${path}/${row}`).add(`${path}/${row}:${n}`);
            return true;
          }
        }
      }
      return false;
    };
    const found = walk(0, "s0");
    if (found) this.flatten();
    return found;
  }
}
