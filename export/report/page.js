"use strict";
// The script of the report page: timelines of all threads on a canvas, the
// neighborhood of a chosen stall, the list of all stalls. Texts from the data only ever
// become text nodes. No element stands for a stall but for those in the list's page.
(() => {
const $ = id => document.getElementById(id);
const data = JSON.parse($("data").textContent);
const S = data.stalls, N = S.us.length;
document.documentElement.classList.add("js-on");

// ---- What is chosen. Every change ends with redraw().

const whole = { from: data.from, to: data.to };
const view = { ...whole };      // the time on the screen, in microseconds from the epoch on
let chosen = -1;                // stall
let hot = -1;                   // finding whose stalls stand out
let isHot = null;               // of every stall, while hot >= 0

// ---- Numbers as text.

const grouped = v => String(v).replace(/\B(?=(\d{3})+(?!\d))/g, ",");

function length(us) {
  for (const [unit, size] of [["ns", 1e-3], ["µs", 1], ["ms", 1e3], ["s", 1e6]]) {
    const v = us / size;
    if (v < 999.5 || unit === "s")
      return (v >= 99.95 || unit === "ns" ? v.toFixed(0) : v >= 9.995 ? v.toFixed(1) : v.toFixed(2)) + "\u00a0" + unit;
  }
}

const day = 864e8, dayOffset = ((data.epoch * 1e3) % day + day) % day;

// clock writes a time of the day with so many decimals of the second.
function clock(t, decimals = 6) {
  const scale = 10 ** (6 - decimals);
  let us = Math.floor(((dayOffset + t) % day + day) % day / scale) * scale;
  const part = (size, digits) => { const v = Math.floor(us / size); us -= v * size; return String(v).padStart(digits, "0"); };
  const text = part(36e8, 2) + ":" + part(6e7, 2) + ":" + part(1e6, 2);
  return decimals ? text + "." + String(Math.floor(us)).padStart(6, "0").slice(0, decimals) : text;
}

function date(t) {
  const d = new Date(data.epoch + t / 1e3).toISOString();
  return data.yearless ? d.slice(d.indexOf("-", 1) + 1, d.indexOf("T")) : d.slice(0, d.indexOf("T"));
}

const when = i => S.end[i] === null ? "time unknown" : date(S.end[i]) + " " + clock(S.end[i]);
const thread = i => data.threads[S.thread[i]].name;

// ---- Elements.

function h(name, props, ...children) {
  const e = document.createElement(name);
  for (const [k, v] of Object.entries(props || {}))
    if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
    else if (k === "class") e.className = v;
    else if (v !== undefined && v !== false) e.setAttribute(k, v === true ? "" : v);
  return fill(e, ...children);
}

// fill gives an element new children; those that are null are none.
function fill(e, ...children) {
  e.replaceChildren(...children.flat().filter(c => c !== null && c !== undefined));
  return e;
}

const say = text => { const e = $("say"); if (e) e.textContent = text; };

// begin returns when a stall began. Lengths beyond all that is shown are a wrong clock's.
const begin = i => S.us[i] > whole.to - whole.from ? S.end[i] : S.end[i] - S.us[i];

// ---- Stalls by thread, in the order of time, and the scale of their lengths.

const lanes = data.threads.map(() => ({ stalls: [], most: 0 }));
let shortest = Infinity, longest = 0;
for (let i = 0; i < N; i++) {
  if (S.end[i] === null) continue;
  const lane = lanes[S.thread[i]], us = Math.max(S.us[i], 1e-3);
  lane.stalls.push(i);
  lane.most = Math.max(lane.most, us);
  shortest = Math.min(shortest, us);
  longest = Math.max(longest, us);
}

// share returns how high the bar of a length is, from 0.2 to 1.
const share = us => longest <= shortest ? 1 : .2 + .8 * Math.log(Math.max(us, 1e-3) / shortest) / Math.log(longest / shortest);

// since returns the index of the first stall of a lane that ended at t or later.
function since(lane, t) {
  let lo = 0, hi = lane.stalls.length;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (S.end[lane.stalls[mid]] < t) lo = mid + 1; else hi = mid;
  }
  return lo;
}

// within yields the stalls of a lane that lie in a time, in part at least.
function* within(lane, from, to) {
  for (let k = since(lane, from); k < lane.stalls.length; k++) {
    const i = lane.stalls[k];
    if (S.end[i] - lane.most > to) return;
    if (begin(i) <= to) yield i;
  }
}

// ---- The chart: rows from top to bottom, in CSS pixels.

const chart = $("chart");
if (chart) {
  const g = chart.getContext("2d");
  const mapHeight = 26, axisHeight = 24, trackHeight = 44;
  const rows = [];              // {lane | series, y, h}
  let width = 0, height = 0, colours = {}, map = null, pending = false;

  const ofThread = t => data.series.filter(s => s.thread === t);
  const alarms = data.series.filter(s => s.alarm);

  function layout() {
    const ratio = window.devicePixelRatio || 1;
    width = Math.max($("stage").clientWidth, 50);
    rows.length = 0;
    let y = mapHeight + axisHeight;
    const add = (row, h) => { rows.push({ ...row, y, h }); y += h; };
    const laneHeight = Math.max(30, Math.min(96, 560 / lanes.length));
    lanes.forEach((lane, t) => {
      add({ lane, thread: t }, lane.stalls.length ? laneHeight : 22);
      ofThread(t).forEach(series => add({ series }, trackHeight));
    });
    data.series.filter(s => s.thread < 0).forEach(series => add({ series }, trackHeight));
    height = y + 2;
    chart.width = Math.round(width * ratio);
    chart.height = Math.round(height * ratio);
    chart.style.height = height + "px";
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    map = null;
    recolour();
  }

  function recolour() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["bg", "surface", "raised", "text", "muted", "line", "accent", "alarm", "fnone", "f0", "f1", "f2", "f3", "f4", "f5", "f6", "s0"])
      colours[name] = style.getPropertyValue("--" + name).trim();
    map = null;
    redraw();
  }

  const colour = f => f < 0 ? colours.fnone : colours["f" + f % 7];
  const colourOf = i => colour(isHot && isHot[i] ? hot : S.finding[i]);
  const x = (t, v = view) => (t - v.from) / (v.to - v.from) * width;
  const time = px => view.from + px / width * (view.to - view.from);

  // bars draws the stalls of a lane. Those narrower than two pixels share columns of a
  // pixel, where the longest is drawn; those that stand out come last.
  function bars(lane, y, h, v, all) {
    for (const pass of isHot && all ? [false, true] : [null]) {
      const columns = new Map();
      g.globalAlpha = pass === false ? .22 : 1;
      for (const i of within(lane, v.from, v.to)) {
        if (pass !== null && !!isHot[i] !== pass) continue;
        const left = Math.max(x(begin(i), v), -2), right = x(S.end[i], v);
        if (right - left >= 2) {
          const top = h * share(S.us[i]);
          g.fillStyle = colourOf(i);
          g.fillRect(left, y + h - top, Math.min(right, width + 2) - left, top);
          continue;
        }
        const c = Math.round(right);
        if (!columns.has(c) || S.us[columns.get(c)] < S.us[i]) columns.set(c, i);
      }
      for (const [c, i] of columns) {
        const top = h * share(S.us[i]);
        g.fillStyle = colourOf(i);
        g.fillRect(c - 1, y + h - top, 2, top);
      }
    }
    g.globalAlpha = 1;
  }

  function label(text, px, y, align = "left", font = "12px system-ui, sans-serif", ink = colours.text) {
    g.font = font;
    g.textAlign = align;
    const w = g.measureText(text).width;
    g.globalAlpha = .82;
    g.fillStyle = colours.bg;
    g.fillRect(align === "right" ? px - w - 3 : align === "center" ? px - w / 2 - 2 : px - 3, y - 11, w + 6, 15);
    g.globalAlpha = 1;
    g.fillStyle = ink;
    g.fillText(text, px, y);
  }
  const small = "10.5px system-ui, sans-serif";

  function drawLane({ lane, thread, y, h }) {
    const base = y + h, room = h - 16;
    g.fillStyle = colours.line;
    g.fillRect(0, base - 1, width, 1);
    let free = Infinity;        // decades of length, where there is room for their names
    for (let d = 10 ** Math.ceil(Math.log10(shortest || 1)); d <= longest; d *= 10) {
      const at = base - 1 - room * share(d);
      if (free - at < 14 || !isFinite(at)) continue;
      free = at;
      g.globalAlpha = .6;
      g.fillStyle = colours.line;
      g.fillRect(0, at, width, 1);
      g.globalAlpha = 1;
    }
    bars(lane, y + 16, room - 1, view, true);
    free = Infinity;
    for (let d = 10 ** Math.ceil(Math.log10(shortest || 1)); d <= longest; d *= 10) {
      const at = base - 1 - room * share(d);
      if (free - at < 14 || !isFinite(at)) continue;
      free = at;
      label(length(d).replace(/\.0+/, ""), width - 5, at + 4, "right", small, colours.muted);
    }
    label(data.threads[thread].name, 5, y + 13, "left", "600 12px system-ui, sans-serif");
  }

  // drawTrack draws a series as columns, the highest of each pixel.
  function drawTrack({ series, y, h }) {
    const base = y + h, room = h - 18;
    let most = 0;
    const columns = new Map();
    for (const [from, to, value] of series.points) {
      if (to < view.from || from > view.to) continue;
      most = Math.max(most, value);
      const left = Math.max(Math.floor(x(from)), 0), right = Math.min(Math.max(Math.ceil(x(to)), left + 1), Math.ceil(width));
      for (let c = left; c < right; c++) columns.set(c, Math.max(columns.get(c) || 0, value));
    }
    g.fillStyle = series.alarm ? colours.alarm : colours.s0;
    g.globalAlpha = .75;
    for (const [c, value] of columns) {
      const top = most > 0 ? room * value / most : 0;
      g.fillRect(c, base - 1 - top, 1, top);
    }
    g.globalAlpha = 1;
    g.fillStyle = colours.line;
    g.fillRect(0, base - 1, width, 1);
    label(series.name, 5, y + 13, "left", small, colours.muted);
    if (most > 0) label("up to " + grouped(+most.toPrecision(6)) + " " + series.unit, width - 5, y + 13, "right", small, colours.muted);
  }

  // drawMap draws everything in small, and what of it is in view.
  function drawMap() {
    g.fillStyle = colours.raised;
    g.fillRect(0, 0, width, mapHeight);
    if (!map) {
      map = new Map();
      for (const lane of lanes)
        for (const i of lane.stalls) {
          const c = Math.round(x(S.end[i], whole));
          map.set(c, Math.max(map.get(c) || 0, share(S.us[i])));
        }
    }
    g.fillStyle = colours.muted;
    for (const [c, s] of map) g.fillRect(c - .5, mapHeight - s * (mapHeight - 4), 1.5, s * (mapHeight - 4));
    const left = x(view.from, whole), right = Math.max(x(view.to, whole), left + 2);
    g.globalAlpha = .55;
    g.fillStyle = colours.surface;
    g.fillRect(0, 0, left, mapHeight);
    g.fillRect(right, 0, width - right, mapHeight);
    g.globalAlpha = 1;
    g.strokeStyle = colours.accent;
    g.lineWidth = 2;
    g.strokeRect(left + 1, 1, right - left - 2, mapHeight - 2);
  }

  const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 2e6, 5e6, 1e7, 15e6, 3e7,
    6e7, 12e7, 3e8, 6e8, 9e8, 18e8, 36e8, 72e8, 216e8, 432e8, day, 2 * day, 7 * day, 28 * day, 364 * day];

  function drawAxis() {
    const y = mapHeight, room = width < 500 ? 95 : 120, span = view.to - view.from;
    const step = steps.find(s => s / span * width >= room) || span;
    const decimals = step >= 1e6 ? 0 : step >= 1e3 ? 3 : 6;
    for (let t = Math.ceil((view.from + dayOffset) / step) * step - dayOffset; t <= view.to; t += step) {
      const px = Math.round(x(t));
      g.fillStyle = colours.line;
      g.fillRect(px, y + 18, 1, height);
      g.fillStyle = colours.muted;
      g.font = small;
      g.textAlign = px < 40 ? "left" : px > width - 40 ? "right" : "center";
      g.fillText(step >= day ? date(t) : clock(t, decimals), px, y + 14);
    }
  }

  function draw() {
    pending = false;
    g.fillStyle = colours.bg;
    g.fillRect(0, 0, width, height);
    drawMap();
    drawAxis();
    g.save();
    g.beginPath();
    g.rect(0, mapHeight + axisHeight - 4, width, height);
    g.clip();
    g.globalAlpha = .13;        // rises of alarming counters, across all threads
    g.fillStyle = colours.alarm;
    for (const series of alarms)
      for (const [from, to, value] of series.points)
        if (value > 0 && to >= view.from && from <= view.to)
          g.fillRect(x(from), mapHeight + axisHeight, Math.max(x(to) - x(from), 1.5), height);
    g.globalAlpha = 1;
    for (const row of rows) row.lane ? drawLane(row) : drawTrack(row);
    if (chosen >= 0 && S.end[chosen] !== null) mark(chosen);
    if (drag && drag.select) {
      g.globalAlpha = .2;
      g.fillStyle = colours.accent;
      g.fillRect(Math.min(drag.x, drag.last), mapHeight, Math.abs(drag.last - drag.x), height);
      g.globalAlpha = 1;
    }
    g.restore();
    $("range").textContent = date(view.from) + " " + clock(view.from, 3) + " to " + (date(view.from) === date(view.to) ? "" : date(view.to) + " ") + clock(view.to, 3) + " (" + length(view.to - view.from) + ")";
    $("zoom-all").disabled = view.from === whole.from && view.to === whole.to;
  }

  // mark shows where the chosen stall is.
  function mark(i) {
    const { y, h, left, right } = place(i);
    g.strokeStyle = colours.text;
    g.lineWidth = 2;
    g.strokeRect(left - 3, y - 3, right - left + 6, h + 4);
    g.globalAlpha = .5;
    g.setLineDash([3, 3]);
    g.lineWidth = 1;
    g.beginPath();
    g.moveTo(Math.round(right) + .5, mapHeight + axisHeight - 4);
    g.lineTo(Math.round(right) + .5, height);
    g.stroke();
    g.setLineDash([]);
    g.globalAlpha = 1;
  }

  // place returns where the bar of a stall is.
  function place(i) {
    const row = rows.find(r => r.lane && r.thread === S.thread[i]);
    const h = (row.h - 17) * share(S.us[i]), right = x(S.end[i]);
    return { y: row.y + row.h - 1 - h, h, right, left: Math.min(x(begin(i)), right - 2) };
  }

  var redraw = () => { if (!pending) { pending = true; requestAnimationFrame(draw); } };

  // ---- Moving in time.

  function show(from, to) {
    const least = 20, most = whole.to - whole.from;
    const span = Math.min(Math.max(to - from, least), most), middle = (from + to) / 2;
    view.from = Math.min(Math.max(middle - span / 2, whole.from), whole.to - span);
    view.to = view.from + span;
    if (span >= most) Object.assign(view, whole);
    redraw();
  }
  const zoom = (factor, at = (view.from + view.to) / 2) =>
    show(at - (at - view.from) * factor, at + (view.to - at) * factor);
  const move = part => { const d = (view.to - view.from) * part; show(view.from + d, view.to + d); };
  // anchor is the time that stays where it is when a key zooms.
  const anchor = () => chosen >= 0 && S.end[chosen] >= view.from && S.end[chosen] <= view.to ? S.end[chosen] : undefined;

  // reveal brings a stall into view, with some room, as wide as the view is now.
  function reveal(i) {
    if (S.end[i] === null) return;
    const from = begin(i), to = S.end[i], span = view.to - view.from;
    if (from >= view.from && to <= view.to) return;
    if (to - from > span) return show(from - (to - from) * .2, to + (to - from) * .2);
    show((from + to - span) / 2, (from + to + span) / 2);
  }

  // ---- Choosing with keys.

  const eligible = i => !isHot || isHot[i];

  // step goes to the next stall of any thread in a direction.
  function step(by) {
    let i = chosen;
    if (i < 0 || S.end[i] === null) i = by > 0 ? -1 : N;
    do i += by; while (i >= 0 && i < N && (S.end[i] === null || !eligible(i)));
    if (i >= 0 && i < N) choose(i); else say("No further stall");
  }
  const first = () => { chosen = -1; step(1); };
  const last = () => { chosen = -1; step(-1); };

  // cross goes to the nearest stall, in time, of the next thread that has any.
  function cross(by) {
    if (chosen < 0 || S.end[chosen] === null) return first();
    for (let t = S.thread[chosen] + by; t >= 0 && t < lanes.length; t += by) {
      const near = lanes[t].stalls.filter(eligible).reduce((best, i) =>
        best < 0 || Math.abs(S.end[i] - S.end[chosen]) < Math.abs(S.end[best] - S.end[chosen]) ? i : best, -1);
      if (near >= 0) return choose(near);
    }
    say("No further thread");
  }

  const keys = {
    ArrowLeft: () => step(-1), ArrowRight: () => step(1), ArrowUp: () => cross(-1), ArrowDown: () => cross(1),
    Home: first, End: last, PageUp: () => move(-.5), PageDown: () => move(.5),
    "+": () => zoom(.5, anchor()), "=": () => zoom(.5, anchor()), "-": () => zoom(2, anchor()), "0": () => show(whole.from, whole.to),
    Enter: () => { if (chosen >= 0) $("detail").focus(); },
    Escape: () => { hideTip(); if (chosen >= 0) choose(-1); else highlight(-1); },
  };
  chart.addEventListener("keydown", e => {
    if (e.ctrlKey || e.metaKey || e.altKey || !keys[e.key]) return;
    e.preventDefault();
    keys[e.key]();
  });
  const press = { prev: () => step(-1), next: () => step(1), "zoom-in": () => zoom(.5, anchor()), "zoom-out": () => zoom(2, anchor()), "zoom-all": keys["0"] };
  for (const id in press) $(id).addEventListener("click", press[id]);

  // ---- Mouse, pen and fingers.

  const pointers = new Map();   // those that are down: where
  let drag = null;              // {x, last, moved, select | onMap}
  let pinch = 0;                // distance of two fingers
  const at = e => { const r = chart.getBoundingClientRect(); return { x: e.clientX - r.left, y: e.clientY - r.top }; };

  // hit returns the stall at a place: the longest within reach, and rather one that stands out.
  function hit(p) {
    const row = rows.find(r => r.lane && p.y >= r.y && p.y < r.y + r.h);
    if (!row) return -1;
    let best = -1;
    for (const i of within(row.lane, time(p.x - 6), time(p.x + 6))) {
      const better = best < 0 || (isHot && isHot[i] !== isHot[best] ? isHot[i] : S.us[i] > S.us[best]);
      if (better) best = i;
    }
    return best;
  }

  const toMap = px => { const half = (view.to - view.from) / 2, t = whole.from + px / width * (whole.to - whole.from); show(t - half, t + half); };
  const spread = () => { const [a, b] = [...pointers.values()]; return Math.max(Math.hypot(a.x - b.x, a.y - b.y), 1); };

  chart.addEventListener("pointerdown", e => {
    if (e.button > 0) return;
    const p = at(e);
    pointers.set(e.pointerId, p);
    chart.setPointerCapture(e.pointerId);
    if (pointers.size === 2) { pinch = spread(); drag = null; return; }
    drag = { x: p.x, last: p.x, moved: false, select: e.shiftKey, onMap: p.y < mapHeight };
    if (drag.onMap) toMap(p.x);
  });
  chart.addEventListener("pointermove", e => {
    const p = at(e);
    if (!pointers.has(e.pointerId)) return tip(hit(p), p);
    pointers.set(e.pointerId, p);
    if (pointers.size === 2) {
      const [a, b] = [...pointers.values()], now = spread();
      zoom(pinch / now, time((a.x + b.x) / 2));
      pinch = now;
      return;
    }
    if (!drag) return;
    if (Math.abs(p.x - drag.x) > 4) drag.moved = true;
    if (!drag.moved) return;
    hideTip();
    if (drag.onMap) toMap(p.x);
    else if (!drag.select) { chart.classList.add("grabbed"); move((drag.last - p.x) / width); }
    drag.last = p.x;
    redraw();
  });
  chart.addEventListener("pointerup", e => {
    const was = drag, p = at(e);
    release(e);
    if (!was) return;
    if (was.select && was.moved) show(...[time(was.x), time(p.x)].sort((a, b) => a - b));
    else if (!was.moved && !was.onMap) choose(hit(p));
  });
  function release(e) {
    pointers.delete(e.pointerId);
    drag = null;
    chart.classList.remove("grabbed");
    redraw();
  }
  chart.addEventListener("pointercancel", release);
  chart.addEventListener("pointerleave", hideTip);
  chart.addEventListener("dblclick", e => zoom(.25, time(at(e).x)));
  chart.addEventListener("wheel", e => {
    const sideways = Math.abs(e.deltaX) > Math.abs(e.deltaY) || e.shiftKey;
    if (!sideways && !e.ctrlKey && !e.metaKey && document.activeElement !== chart) return; // the page scrolls
    e.preventDefault();
    const lines = e.deltaMode === 1 ? 30 : 1;
    if (sideways) move((e.deltaX || e.deltaY) * lines / width);
    else zoom(Math.exp(Math.max(-1, Math.min(1, e.deltaY * lines / 300))), time(at(e).x));
  }, { passive: false });

  // ---- The tip beside a stall.

  function tip(i, p) {
    chart.style.cursor = i >= 0 ? "pointer" : "";
    if (i < 0) return hideTip();
    const t = $("tip"), f = isHot && isHot[i] ? hot : S.finding[i], d = S.detail[i];
    const why = d.causes ? d.causes[0].title : f >= 0 ? data.findings[f].title : (d.reasons || []).map(r => data.words[r]).join(", ");
    fill(t, h("b", null, length(S.us[i]) + " on " + thread(i)), when(i), h("br"), "iteration " + grouped(S.iteration[i]), why ? h("br") : null, why);
    t.hidden = false;
    t.style.left = Math.max(0, Math.min(p.x + 14, width - t.offsetWidth)) + "px";
    t.style.top = (p.y + 18 + t.offsetHeight > height ? Math.max(p.y - t.offsetHeight - 12, 0) : p.y + 18) + "px";
  }
  function hideTip() { $("tip").hidden = true; }

  // ---- For the rest of the page.

  var timeline = {
    reveal,
    tipOn(i) { if (i >= 0 && S.end[i] !== null) { const p = place(i); tip(i, { x: p.right, y: p.y }); } else hideTip(); },
    fit(list) {               // brings stalls into view
      let from = Infinity, to = -Infinity;
      for (const i of list) if (S.end[i] !== null) { from = Math.min(from, begin(i)); to = Math.max(to, S.end[i]); }
      if (from < to) show(from - (to - from) * .05, to + (to - from) * .05);
    },
  };
  new ResizeObserver(() => { if ($("stage").clientWidth !== width) layout(); }).observe($("stage"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
  layout();
} else {
  var redraw = () => {}, timeline = { reveal() {}, tipOn() {}, fit() {} };
}

// ---- Choosing a stall: the chart, the list, the address and the neighborhood follow.

function choose(i, { quiet = false } = {}) {
  chosen = i;
  history.replaceState(null, "", i < 0 ? location.pathname + location.search : "#stall-" + i);
  if (i >= 0) timeline.reveal(i);
  redraw();
  if (!quiet) timeline.tipOn(i);
  detail(i);
  for (const tr of document.querySelectorAll("#list [data-stall]")) tr.classList.toggle("chosen", +tr.dataset.stall === i);
  say(i < 0 ? "No stall chosen" : `Stall ${i + 1} of ${N}: ${length(S.us[i])} on ${thread(i)}, ${when(i)}${S.finding[i] >= 0 ? ", " + data.findings[S.finding[i]].title : ""}`);
}

function detail(i) {
  const box = $("detail");
  if (!box) return;
  box.hidden = i < 0;
  if (i < 0) return box.replaceChildren();
  const d = S.detail[i], fact = (name, ...value) => h("div", null, h("dt", null, name), h("dd", null, ...value));
  const findings = data.findings.flatMap((f, k) => f.stalls.includes(i) ? [h("a", { href: "#finding-" + (k + 1) }, f.title)] : []);
  fill(box,
    h("div", { class: "head" },
      h("h3", { id: "detail-h" }, length(S.us[i]) + " on " + thread(i)),
      h("button", { type: "button", onclick: () => { choose(-1); chart.focus(); } }, "Close")),
    h("dl", { class: "facts" },
      fact("Time", when(i)), fact("Iteration", grouped(S.iteration[i])), fact("Stall", `${i + 1} of ${N}`),
      d.reasons ? fact("Reported for", d.reasons.map(r => data.words[r]).join(", ")) : null,
      findings.length ? fact(findings.length > 1 ? "Findings" : "Finding", findings.flatMap((f, k) => k ? [", ", f] : [f])) : null,
      d.source ? fact("Source", data.words[d.source]) : null),
    d.causes ? h("ul", { "aria-label": "Causes" }, d.causes.map(c =>
      h("li", null, bar(c.percent), h("span", null, h("b", null, c.title), `: ${length(c.us)}, ${c.percent.toFixed(0)} %, ${c.how}`, c.evidence ? ` (${c.evidence})` : "")))) : null,
    d.rows ? neighborhood(i, d) : h("p", { class: "help" }, "Its neighborhood is not in what was read."));
}

// bar returns a small picture of a share.
function bar(percent) {
  const ns = "http://www.w3.org/2000/svg", svg = document.createElementNS(ns, "svg"), rect = document.createElementNS(ns, "rect");
  for (const [k, v] of [["class", "length"], ["viewBox", "0 0 100 10"], ["preserveAspectRatio", "none"], ["aria-hidden", "true"]]) svg.setAttribute(k, v);
  rect.setAttribute("width", Math.max(percent, .5));
  rect.setAttribute("height", 10);
  svg.append(rect);
  return svg;
}

function neighborhood(i, d) {
  const cycles = data.columns.indexOf("cycles"), note = data.columns.indexOf("note");
  const most = Math.max(1, ...d.rows.map(r => +r[cycles]));
  const hz = data.threads[S.thread[i]].hz || (d.culprit >= 0 && S.us[i] > 0 ? d.rows[d.culprit][cycles] / S.us[i] * 1e6 : 0);
  const head = data.columns.map((c, k) => h("th", { scope: "col", class: k === note ? "" : "n" }, c));
  head.splice(1, 0, h("th", { scope: "col", class: "n" }, "length"));
  const cells = r => {
    const all = r.map((v, k) => k === note ? h("td", null, data.words[v]) : h("td", { class: "n" }, grouped(v)));
    all.splice(1, 0, h("td", { class: "n" }, bar(100 * r[cycles] / most), h("span", { class: "beside" }, hz ? length(r[cycles] / hz * 1e6) : "-")));
    return all;
  };
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Neighborhood" },
    h("table", { class: "rows", id: "neighborhood" },
      h("caption", { class: "unseen" }, "Neighborhood of the stall, oldest iteration first"),
      h("thead", null, h("tr", null, head)),
      h("tbody", null, d.rows.map((r, k) => h("tr", k === d.culprit ? { class: "culprit", "aria-current": "true" } : null, cells(r))))));
}

// ---- Findings: colours, and standing out.

function highlight(f) {
  hot = f;
  isHot = null;
  if (f >= 0) {
    isHot = new Uint8Array(N);
    for (const i of data.findings[f].stalls) isHot[i] = 1;
  }
  for (const b of document.querySelectorAll("[data-finding]")) b.setAttribute("aria-pressed", String(+b.dataset.finding === f + 1));
  for (const e of document.querySelectorAll(".finding")) {
    e.classList.toggle("chosen", e.id === "finding-" + (f + 1));
    if (e.id === "finding-" + (f + 1)) for (const d of e.querySelectorAll("details")) d.open = true;
  }
  list.finding = f;
  list.page = 0;
  drawList();
  redraw();
  say(f < 0 ? "All stalls" : `${data.findings[f].stalls.length} stalls of finding ${f + 1} stand out`);
}

for (const b of document.querySelectorAll("button.show")) b.addEventListener("click", () => {
  const f = b.dataset.finding - 1;
  if (hot === f) return highlight(-1);
  highlight(f);
  timeline.fit(data.findings[f].stalls);
  if (chart) { $("timeline").scrollIntoView(); chart.focus({ preventScroll: true }); }
});

if ($("legend")) {
  data.findings.forEach((f, k) => {
    if (f.stalls.length === 0) return;
    $("legend").append(h("button", { type: "button", "data-finding": k + 1, "aria-pressed": "false", title: f.title, onclick: () => highlight(hot === k ? -1 : k) },
      h("i", { class: "dot c-" + k % 7 }), h("span", null, f.title)));
  });
  if (S.finding.includes(-1)) $("legend").append(h("span", { class: "other" }, h("i", { class: "dot c-none" }), data.findings.length ? "no finding" : "stall"));
}

// ---- The list of all stalls, a page of it at a time.

const list = { key: "us", down: true, finding: -1, page: 0, size: 25 };

function drawList() {
  const table = $("list");
  if (!table) return;
  const all = [];
  for (let i = 0; i < N; i++) if (list.finding < 0 || isHot[i]) all.push(i);
  const key = S[list.key], sign = list.down ? -1 : 1;
  all.sort((a, b) => sign * ((key[a] === null ? Infinity : +key[a]) - (key[b] === null ? Infinity : +key[b])) || a - b);
  const pages = Math.max(1, Math.ceil(all.length / list.size));
  list.page = Math.min(Math.max(list.page, 0), pages - 1);
  const shown = all.slice(list.page * list.size, (list.page + 1) * list.size);
  const column = (name, key, right) => h("th", { scope: "col", class: right ? "n" : "", "aria-sort": key === list.key && (list.down ? "descending" : "ascending") },
    key ? h("button", { type: "button", "data-sort": key, onclick: () => sortBy(key) }, name) : name);
  fill(table,
    h("thead", null, h("tr", null, column("Time", "end"), column("Thread", "thread"), column("Length", "us", true), column("Iteration", "iteration", true), column("Why"), column("Source"))),
    h("tbody", null, shown.map(listRow)));
  const turn = (name, sign, by) => h("button", { type: "button", disabled: by < 0 ? list.page === 0 : list.page === pages - 1, "aria-label": name, onclick: () => { list.page += by; drawList(); } }, sign);
  fill($("pager"), turn("Page before", "‹", -1), turn("Page after", "›", 1),
    h("span", null, all.length ? `${grouped(list.page * list.size + 1)} to ${grouped(list.page * list.size + shown.length)} of ${grouped(all.length)}` : "none"),
    list.finding >= 0 ? h("button", { type: "button", onclick: () => highlight(-1) }, "All stalls") : null);
}

function listRow(i) {
  const d = S.detail[i], why = (d.reasons || []).map(r => data.words[r]).join(", ");
  return h("tr", { "data-stall": i, class: i === chosen ? "chosen" : "", onclick: e => { if (e.target.tagName !== "A") go(i); } },
    h("td", null, h("i", { class: "dot " + (S.finding[i] < 0 ? "c-none" : "c-" + S.finding[i] % 7) }), h("a", { href: "#stall-" + i }, when(i))),
    h("td", null, thread(i)), h("td", { class: "n" }, length(S.us[i])), h("td", { class: "n" }, grouped(S.iteration[i])),
    h("td", null, why, d.causes ? [why ? h("br") : null, d.causes[0].title + (d.causes.length > 1 ? ` and ${d.causes.length - 1} more` : "")] : null),
    h("td", { class: "where" }, data.words[d.source || 0]));
}

function sortBy(key) {
  list.down = list.key === key ? !list.down : key === "us";
  list.key = key;
  list.page = 0;
  drawList();
  document.querySelector(`#list [data-sort=${key}]`).focus();
}
drawList();

// ---- Addresses: #stall-17 chooses a stall, from wherever it is linked.

function go(i) {
  choose(i, { quiet: true });
  if (chart) $("timeline").scrollIntoView();
}
function follow() {
  const m = /^#stall-(\d+)$/.exec(location.hash);
  if (m && +m[1] < N) go(+m[1]);
}
document.addEventListener("click", e => {
  const a = e.target.closest && e.target.closest("a[href^='#stall-']");
  if (!a) return;
  e.preventDefault();
  go(+a.getAttribute("href").slice(7));
});
window.addEventListener("hashchange", follow);
follow();
if ($("detail")) $("detail").addEventListener("keydown", e => { if (e.key === "Escape") chart.focus(); });

// ---- Commands to copy.

for (const b of document.querySelectorAll("button.copy")) b.addEventListener("click", async () => {
  const code = b.parentElement.querySelector("code");
  try {
    await navigator.clipboard.writeText(code.textContent);
  } catch {                     // not allowed: select it, for the keys to copy
    getSelection().selectAllChildren(code);
    b.textContent = "Selected";
    return;
  }
  b.textContent = "Copied";
  setTimeout(() => { b.textContent = "Copy"; }, 1500);
});
})();
