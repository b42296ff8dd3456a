"use strict";
// The layout of a graph: nodes in layers, with few crossings and straight long edges.

// Long edges with more bends than this in total are drawn without them.
const MOST_BENDS = 6000;

/**
 * Return the layout of nodes {width, height} and edges [from, to] between their numbers:
 * {x, y} of each node's upper left corner, the total size, and the points of each edge.
 */
function layered(nodes, edges, gapX = 22, gapY = 30) {
  const count = nodes.length;
  const into = nodes.map(() => []);
  const out = nodes.map(() => []);
  edges.forEach(([from, to]) => {
    out[from].push(to);
    into[to].push(from);
  });
  const layer = layersOf(count, into, out);
  // Long edges run through points of their own; edges of one node share them.
  const width = nodes.map((node) => node.width);
  const layers = [];
  const put = (item, at) => (layers[at] ??= []).push(item);
  for (let n = 0; n < count; n += 1) put(n, layer[n]);
  const up = nodes.map(() => []);
  const down = nodes.map(() => []);
  const link = (from, to) => {
    down[from].push(to);
    up[to].push(from);
  };
  const chains = nodes.map(() => []);
  let bends = 0;
  for (let n = 0; n < count; n += 1) {
    const furthest = Math.max(layer[n], ...out[n].map((to) => layer[to]));
    bends += Math.max(0, furthest - layer[n] - 1);
  }
  const bent = bends <= MOST_BENDS;
  for (let n = 0; n < count; n += 1) {
    const targets = out[n].filter((to) => layer[to] > layer[n]);
    let last = n;
    const furthest = Math.max(layer[n], ...targets.map((to) => layer[to]));
    const byLayer = new Map();
    for (const to of targets) byLayer.set(layer[to], [...(byLayer.get(layer[to]) ?? []), to]);
    for (let at = layer[n] + 1; at <= furthest; at += 1) {
      for (const to of byLayer.get(at) ?? []) link(last, to);
      if (at === furthest || !bent) {
        if (!bent) continue;
        break;
      }
      const bend = width.length;
      width.push(6);
      layer.push(at);
      up.push([]);
      down.push([]);
      put(bend, at);
      link(last, bend);
      chains[n].push(bend);
      last = bend;
    }
  }
  for (let at = 0; at < layers.length; at += 1) layers[at] ??= [];
  order(layers, layer, up, down, width.length);
  const x = across(layers, up, down, width, gapX, count);
  // The y coordinates of the layers.
  const top = [];
  let y = 0;
  const heights = layers.map((items) => Math.max(10, ...items.map((n) => nodes[n]?.height ?? 0)));
  heights.forEach((height, at) => {
    top[at] = y;
    y += height + gapY;
  });
  const places = nodes.map((node, n) => ({
    x: x[n] - node.width / 2,
    y: top[layer[n]] + (heights[layer[n]] - node.height) / 2,
  }));
  const paths = edges.map(([from, to], number) => {
    // Edges are straight through a layer, so that they do not cross the nodes beside them.
    const below = top[layer[from]] + heights[layer[from]];
    const points = [
      [x[from], places[from].y + nodes[from].height],
      [x[from], below],
    ];
    for (const bend of chains[from]) {
      if (layer[bend] >= layer[to]) break;
      points.push([x[bend], top[layer[bend]]], [x[bend], top[layer[bend]] + heights[layer[bend]]]);
    }
    const mine = into[to];
    const spread = Math.min(16, nodes[to].width / (mine.length + 1));
    const ports = [...new Set(mine)].sort((a, b) => last(a, to) - last(b, to));
    const port = ports.indexOf(from) - (ports.length - 1) / 2;
    const at = x[to] + port * spread;
    points.push([at, top[layer[to]]], [at, places[to].y]);
    return points;
  });
  /** Return the x coordinate of an edge from a node just above another. */
  function last(from, to) {
    const through = chains[from].filter((bend) => layer[bend] < layer[to]);
    return x[through.length ? through[through.length - 1] : from];
  }
  const total = Math.max(0, ...nodes.map((node, n) => places[n].x + node.width), ...x.slice(count));
  return {
    places,
    paths,
    width: total,
    height: Math.max(0, y - gapY),
    layer: layer.slice(0, count),
  };
}

/** Return each node's layer: below its operands; nodes without operands just above a user. */
function layersOf(count, into, out) {
  const layer = new Array(count).fill(0);
  const missing = into.map((each) => each.length);
  const ready = [];
  for (let n = 0; n < count; n += 1) if (!missing[n]) ready.push(n);
  for (let at = 0; at < ready.length; at += 1) {
    for (const to of out[ready[at]]) {
      layer[to] = Math.max(layer[to], layer[ready[at]] + 1);
      missing[to] -= 1;
      if (!missing[to]) ready.push(to);
    }
  }
  for (let n = 0; n < count; n += 1) {
    if (into[n].length || !out[n].length) continue;
    layer[n] = Math.max(0, Math.min(...out[n].map((to) => layer[to])) - 1);
  }
  return layer;
}

/** Order the items of each layer so that few edges cross. */
function order(layers, layer, up, down, count) {
  const place = new Float64Array(count);
  const number = (items) =>
    items.forEach((n, at) => {
      place[n] = at;
    });
  // The initial order is that of a walk up from the nodes without users.
  const met = new Uint8Array(count);
  const fresh = layers.map(() => []);
  for (const items of layers)
    for (const start of items) {
      if (down[start].length || met[start]) continue;
      const waiting = [start];
      while (waiting.length) {
        const n = waiting.pop();
        if (met[n]) continue;
        met[n] = 1;
        fresh[layer[n]].push(n);
        for (const next of [...up[n]].reverse()) if (!met[next]) waiting.push(next);
      }
    }
  layers.forEach((items, at) => {
    for (const n of items) if (!met[n]) fresh[at].push(n);
    items.splice(0, items.length, ...fresh[at]);
    number(items);
  });
  let best = layers.map((items) => [...items]);
  let fewest = crossings(layers, down, place);
  const turns = count > 3000 ? 4 : 14;
  for (let turn = 0; turn < turns && fewest; turn += 1) {
    const downwards = turn % 2 === 0;
    const near = downwards ? up : down;
    for (let step = 1; step < layers.length; step += 1) {
      const items = layers[downwards ? step : layers.length - 1 - step];
      const middle = new Map(
        items.map((n) => [
          n,
          near[n].length
            ? near[n].reduce((sum, other) => sum + place[other], 0) / near[n].length
            : place[n],
        ]),
      );
      items.sort((a, b) => middle.get(a) - middle.get(b) || place[a] - place[b]);
      number(items);
    }
    const now = crossings(layers, down, place);
    if (now < fewest) {
      fewest = now;
      best = layers.map((items) => [...items]);
    }
  }
  best.forEach((items, at) => layers[at].splice(0, items.length, ...items));
}

/** Return the number of crossings between neighboring layers. */
function crossings(layers, down, place) {
  let total = 0;
  for (let at = 0; at + 1 < layers.length; at += 1) {
    const size = layers[at + 1].length + 1;
    const tree = new Int32Array(size + 1);
    let seen = 0;
    for (const n of layers[at]) {
      const ends = down[n].map((to) => place[to]).sort((a, b) => a - b);
      for (const end of ends) {
        let before = 0;
        for (let k = end + 1; k > 0; k -= k & -k) before += tree[k];
        total += seen - before;
      }
      for (const end of ends) {
        for (let k = end + 1; k <= size; k += k & -k) tree[k] += 1;
        seen += 1;
      }
    }
  }
  return total;
}

/** Return x coordinates: each item near the middle of its neighbors, in order and separate. */
function across(layers, up, down, width, gap, count) {
  const x = new Array(width.length).fill(0);
  for (const items of layers) {
    let at = 0;
    for (const n of items) {
      x[n] = at + width[n] / 2;
      at += width[n] + gap;
    }
    for (const n of items) x[n] -= at / 2;
  }
  const settle = (items, near) => {
    const offsets = [];
    let offset = 0;
    items.forEach((n, k) => {
      if (k) offset += (width[items[k - 1]] + width[n]) / 2 + gap;
      offsets.push(offset);
    });
    // The nearest coordinates that keep the distances are averages over conflicting items
    // (pool adjacent violators).
    const blocks = [];
    items.forEach((n, k) => {
      const around = near(n);
      let weights = 0;
      let sum = 0;
      for (const other of around) {
        const straight = n >= count && other >= count ? 30 : n >= count || other >= count ? 2 : 1;
        weights += straight;
        sum += straight * x[other];
      }
      const weight = weights || 0.01;
      blocks.push({ sum: (weights ? sum : x[n] * weight) - offsets[k] * weight, weight, first: k });
      while (blocks.length > 1) {
        const b = blocks[blocks.length - 1];
        const a = blocks[blocks.length - 2];
        if (a.sum / a.weight <= b.sum / b.weight) break;
        a.sum += b.sum;
        a.weight += b.weight;
        blocks.pop();
      }
    });
    blocks.forEach((block, k) => {
      const end = blocks[k + 1]?.first ?? items.length;
      for (let n = block.first; n < end; n += 1)
        x[items[n]] = block.sum / block.weight + offsets[n];
    });
  };
  const turns = width.length > 3000 ? 4 : 12;
  for (let turn = 0; turn < turns; turn += 1) {
    for (let at = 1; at < layers.length; at += 1) settle(layers[at], (n) => up[n]);
    for (let at = layers.length - 2; at >= 0; at -= 1) settle(layers[at], (n) => down[n]);
  }
  for (const items of layers) settle(items, (n) => [...up[n], ...down[n]]);
  let left = Infinity;
  for (const items of layers) for (const n of items) left = Math.min(left, x[n] - width[n] / 2);
  return x.map((value) => value - (Number.isFinite(left) ? left : 0));
}
