// Curves as SVG: what was measured after which round, with a readout for the pointer and the arrow keys.

const MOST_POINTS = 2000;
const HEIGHT = 210;
const svgPart = (tag, attributes, text) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
};

class Chart {
  constructor(id, look) {
    this.look = look;
    this.points = [];
    this.at = null;
    const section = byId(id);
    this.readout = section.querySelector("output");
    this.svg = svgPart("svg", { role: "img", tabindex: 0 });
    section.querySelector("h2").after(this.svg);
    this.svg.addEventListener("pointermove", event => this.pointAt(event));
    this.svg.addEventListener("pointerleave", () => this.choose(null));
    this.svg.addEventListener("blur", () => this.choose(null));
    this.svg.addEventListener("keydown", event => this.onKey(event));
    new ResizeObserver(() => this.plan()).observe(this.svg);
  }

  add(round, value) {
    if (!Number.isFinite(value) || (this.look.log && value <= 0)) return;
    if (this.points.length === MOST_POINTS) {
      // The whole run stays in sight, with half as many points.
      this.points = this.points.filter((_, index) => index % 2 === 0);
      this.at = null;
    }
    this.points.push([round, value]);
    this.plan();
  }

  plan() {
    if (this.planned) return;
    this.planned = true;
    requestAnimationFrame(() => { this.planned = false; this.draw(); });
  }

  draw() {
    const parts = this.points.length ? this.curve() : [svgPart("text", { x: 4, y: 20 }, "nothing measured yet")];
    this.svg.replaceChildren(...parts);
    this.svg.setAttribute("aria-label", this.summary());
    this.tellPoint();
  }

  curve() {
    const { points, look } = this;
    const measure = value => look.log ? Math.log10(value) : value;
    const values = points.map(point => measure(point[1]));
    const heights = this.heights(values);
    const rounds = ticks(points[0][0], Math.max(points[points.length - 1][0], points[0][0] + 1), 5, 1);
    const [first, last] = [points[0][0], Math.max(points[points.length - 1][0], points[0][0] + 1)];
    const [low, high] = [heights[0], heights[heights.length - 1]];
    const box = { left: 44, right: this.svg.clientWidth - 12, top: 8, bottom: HEIGHT - 22 };
    const x = this.x = round => box.left + (round - first) / (last - first) * (box.right - box.left);
    const y = value => box.bottom - (value - low) / (high - low) * (box.bottom - box.top);
    const parts = [];
    for (const value of heights) {
      parts.push(svgPart("path", { class: "grid", d: `M${box.left},${y(value).toFixed(1)}H${box.right}` }));
      const label = look.log ? powerOfTen(value) : String(Number(value.toPrecision(6)));
      parts.push(svgPart("text", { x: box.left - 7, y: y(value) + 4, "text-anchor": "end" }, label));
    }
    for (const round of rounds.filter(round => round >= first && round <= last)) {
      parts.push(svgPart("path", { class: "grid", d: `M${x(round).toFixed(1)},${box.bottom}v4` }));
      parts.push(svgPart("text", { x: x(round), y: HEIGHT - 5, "text-anchor": "middle" }, String(round)));
    }
    parts.push(svgPart("text", { x: 0, y: HEIGHT - 5 }, "round"));
    if (look.factor > 0 && points.length > 1) parts.push(...this.forecast(values[0], { x, y, first, last, low }));
    const places = points.map((point, index) => x(point[0]).toFixed(1) + "," + y(values[index]).toFixed(1));
    parts.push(svgPart("polyline", { class: "line", points: places.join(" ") }));
    const shown = this.at ?? points.length - 1;
    if (this.at !== null) parts.push(svgPart("path", { class: "at", d: `M${x(points[shown][0]).toFixed(1)},${box.top}V${box.bottom}` }));
    parts.push(svgPart("circle", { class: "end", cx: x(points[shown][0]), cy: y(values[shown]), r: 3 }));
    return parts;
  }

  heights(values) {
    const { look } = this;
    // An r2 may be below 0.
    if (!look.log) return ticks(Math.min(look.low, ...values), look.high ?? Math.max(...values), 4);
    const low = Math.floor(Math.min(...values)), high = Math.max(Math.ceil(Math.max(...values)), low + 1);
    return ticks(low, high, 5, 1);
  }

  // From the first measurement on, down to the lower edge.
  forecast(start, { x, y, first, last, low }) {
    const slope = Math.log10(this.look.factor);
    const end = slope < 0 ? Math.min(last, first + (low - start) / slope) : last;
    const [x1, y1, x2, y2] = [x(first), y(start), x(end), y(start + slope * (end - first))].map(place => place.toFixed(1));
    return [svgPart("path", { class: "forecast", d: `M${x1},${y1}L${x2},${y2}` })];
  }

  summary() {
    const { points, look } = this;
    if (!points.length) return look.name + ": nothing measured yet";
    const tell = point => look.tell(point[1]) + " after round " + point[0];
    return look.name + ": " + tell(points[0]) + ", " + tell(points[points.length - 1]) + ". Arrow keys read the curve.";
  }

  choose(at) {
    if (this.at === at) return;
    this.at = at;
    this.plan();
  }

  pointAt(event) {
    if (!this.points.length || !this.x) return;
    const place = event.clientX - this.svg.getBoundingClientRect().left;
    const distance = index => Math.abs(this.x(this.points[index][0]) - place);
    this.choose(this.points.reduce((best, _, index) => distance(index) < distance(best) ? index : best, 0));
  }

  onKey(event) {
    const end = this.points.length - 1;
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20, Home: -end, End: end }[event.key];
    if (step === undefined || end < 0) return;
    event.preventDefault();
    this.choose(Math.min(end, Math.max(0, (this.at ?? end) + step)));
  }

  tellPoint() {
    const point = this.points[this.at ?? this.points.length - 1];
    say(this.readout, point ? this.look.tell(point[1]) + ", round " + point[0] : "");
  }
}

// Round numbers from at most `low` to at least `high`, about so many, no closer than `least`.
function ticks(low, high, count, least = 0) {
  if (!(high > low)) high = low + 1;
  const rough = Math.max((high - low) / count, least);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(times => times * power).find(step => step >= rough * 0.999);
  const found = [];
  for (let at = Math.floor(low / step + 1e-9); at <= Math.ceil(high / step - 1e-9); at++) found.push(at * step);
  return found;
}
