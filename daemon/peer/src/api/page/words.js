// Numbers and times as people read them, and the few ways in which the page changes what it shows.

const byId = id => document.getElementById(id);
const UNITS = 2 ** 40;
const SUPERSCRIPTS = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

const isKnown = value => value !== null && value !== undefined;
const number = (value, digits) => isKnown(value) ? Number(value).toFixed(digits) : "–";
const megabytes = bytes => (bytes / 1e6).toFixed(1);
// The codec of what a peer sends, how that compares with f32, and why auto took it.
function encoded({ encoding, sent_bytes }) {
  if (!encoding) return "f64";
  const others = Object.entries(encoding.parcels).filter(([codec]) => codec !== encoding.codec);
  const also = others.map(([codec, count]) => ", " + count + " parcels in " + codec).join("");
  const whole = sent_bytes + encoding.saved_bytes;
  const why = encoding.reason ? " (" + encoding.reason + ")" : "";
  if (encoding.codec === "f32" || whole === 0) return encoding.codec + also + why;
  return encoding.codec + ": " + Math.round(100 * sent_bytes / whole) + " % of f32" + also + why;
}

const powerOfTen = exponent => "10" + [...String(exponent)].map(letter => SUPERSCRIPTS[letter]).join("");

function scientific(value) {
  if (!isKnown(value)) return "–";
  if (value === 0) return "0";
  if (value >= 0.001 && value < 1000) return value < 10 ? value.toPrecision(2) : value.toFixed(1);
  const [digits, exponent] = value.toExponential(1).split("e");
  return digits + " × " + powerOfTen(Number(exponent));
}

function span(seconds) {
  const s = Math.round(seconds);
  if (s < 60) return s + " s";
  if (s < 3600) return Math.floor(s / 60) + " min " + (s % 60) + " s";
  if (s < 172800) return Math.floor(s / 3600) + " h " + Math.floor(s % 3600 / 60) + " min";
  return Math.floor(s / 86400) + " days";
}

const moment = seconds => seconds < 60 ? seconds.toFixed(1) + " s" : span(seconds);

// Text from other peers only ever becomes text.
function put(parent, tag, text, className) {
  const element = document.createElement(tag);
  element.textContent = text;
  if (className) element.className = className;
  parent.append(element);
  return element;
}

// What has not changed is left alone, so that it can be selected and copied.
function say(element, text, className) {
  if (element.textContent !== text) element.textContent = text;
  if (className !== undefined && element.className !== className) element.className = className;
}

function show(element, visible) {
  if (element.hidden === visible) element.hidden = !visible;
}
