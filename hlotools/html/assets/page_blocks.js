"use strict";
// The blocks of a large graph: what one scope or function of the user's made, once per repetition.

// Parts of name stacks that are no names of the user's.
const NO_SCOPE =
  /^(jit|pjit|while|body|cond|closed_call|checkpoint|rematted_computation|remat|scan|shard_map|vmap|branch_\d+|custom_\w+)?$/;
// The largest number of blocks in which repetitions are blocks of their own.
const MOST_BLOCKS = 48;
// The largest table of repetitions, in numbers.
const MOST_REPETITIONS = 1.2e7;

/** Return the names of the user's scopes around an operation, outermost first. */
function scopesOf(path) {
  const scopes = [];
  for (const part of path.split(";")[0].split("/").slice(1, -1)) {
    const wrapped = part.match(/^((?:\w+\()+)([^()]*)\)+$/);
    const name = wrapped ? (/^p?jit\(/.test(part) ? "" : wrapped[2]) : part;
    if (!NO_SCOPE.test(name)) scopes.push(name);
  }
  return scopes;
}

/**
 * Return the blocks of some operations, as {label, ops}: those of one scope, or where there is none of
 * one function of the user's; what comes back after others, as a further layer does, is a block of its
 * own, if these are few enough to read. Most blocks depend on each other in one direction only.
 */
function blocksOf(program, ops, edges) {
  const paths = ops.map((op) => (program.paths[op] < 0 ? "" : program.tables.paths[program.paths[op]]));
  const scopes = paths.map(scopesOf);
  for (let depth = 1; depth < 6; depth += 1) {
    const labels = ops.map((op, n) => {
      if (program.opcode(op) === "parameter") return "arguments";
      const frame = program.stack(op)[0];
      const name = scopes[n].slice(0, depth).join("/") || frame?.function || "";
      return name && (paths[n].includes("transpose(") ? `${name} · backward` : name);
    });
    const distinct = [...new Set(labels)];
    if (distinct.length < 3 && depth < 5) continue;
    return repeated(ops, edges, labels, distinct);
  }
  return [];
}

function repeated(ops, edges, labels, distinct) {
  if (ops.length * distinct.length > MOST_REPETITIONS) return [];
  const row = new Map(ops.map((op, n) => [op, n]));
  const key = new Map(distinct.map((label, n) => [label, n]));
  const into = ops.map(() => []);
  for (const [from, to] of edges) into[row.get(to)].push(row.get(from));
  // For each operation and label: the last repetition among what the operation needs, and itself.
  const width = distinct.length;
  const last = new Int16Array(ops.length * width).fill(-1);
  const blocks = new Map();
  ops.forEach((op, n) => {
    const own = key.get(labels[n]);
    let repetition = 0;
    for (const from of into[n]) {
      const seen = last[from * width + own];
      repetition = Math.max(repetition, labels[from] === labels[n] ? seen : seen + 1);
      for (let at = 0; at < width; at += 1) {
        const mine = n * width + at;
        last[mine] = Math.max(last[mine], last[from * width + at]);
      }
    }
    last[n * width + own] = Math.max(last[n * width + own], repetition);
    // What has no name is no block: constants, parameters, what a compiler put in.
    const name = labels[n] ? `${labels[n]}\n${repetition}` : `\n${op}`;
    if (!blocks.has(name)) blocks.set(name, { label: labels[n], repetition, ops: [] });
    blocks.get(name).ops.push(op);
  });
  const times = new Map();
  for (const { label } of blocks.values()) times.set(label, (times.get(label) ?? 0) + 1);
  const named = [...blocks.values()].map(({ label, repetition, ops }) => ({
    label: label && times.get(label) > 1 ? `${label} · ${repetition + 1}` : label,
    ops,
  }));
  if (named.length <= MOST_BLOCKS) return named;
  // Too many to read: the repetitions of a name are one block.
  const together = new Map();
  for (const { label, ops } of blocks.values()) {
    const name = label || `\n${ops[0]}`;
    if (!together.has(name)) {
      const count = times.get(label);
      together.set(name, { label: label && count > 1 ? `${label} × ${count}` : label, ops: [] });
    }
    together.get(name).ops.push(...ops);
  }
  return [...together.values()];
}

/** Return the operations on paths from one to another, along edges; empty if there is none. */
function between(from, to, edges) {
  const reach = (start, [source, target]) => {
    const next = new Map();
    for (const edge of edges) {
      if (!next.has(edge[source])) next.set(edge[source], []);
      next.get(edge[source]).push(edge[target]);
    }
    const seen = new Set([start]);
    for (const op of seen) for (const other of next.get(op) ?? []) seen.add(other);
    return seen;
  };
  const after = reach(from, [0, 1]);
  if (!after.has(to)) return new Set();
  const before = reach(to, [1, 0]);
  return new Set([...after].filter((op) => before.has(op)));
}
