// The plan's picture, with this peer and the state of its links marked.

// The picture's own style sheet stays in its shadow, and so does what marks the links. It is drawn on white: in the dark its
// lightness is turned round, and its hues are kept.
const MARKS = `
  svg { display: block; max-width: 100%; height: auto; margin: 0 auto; }
  .card { fill: none; stroke: none; }
  .links .down { fill: #dc2626 !important; fill-opacity: .95; } .down .node { fill: #dc2626; }
  .links .suspended { fill: #f59e0b !important; fill-opacity: .95; } .suspended .node { fill: #f59e0b; }
  .links .left { fill-opacity: .08; }
  .me .node { stroke: #0284c7; stroke-width: 4; }
  @media (prefers-color-scheme: dark) {
    svg { filter: invert(1) hue-rotate(180deg); }
    .name { stroke: #dae3f4; }
  }`;
const NARROW = matchMedia("(max-width: 760px)");

let picture = null;
let whole = "";

async function loadPlan() {
  const host = byId("plan");
  try {
    const answer = await fetch("/plan.svg");
    const text = await answer.text();
    if (!answer.ok) throw new Error(JSON.parse(text).error.message);
    showPicture(host, text);
  } catch (error) {
    host.textContent = "The plan cannot be drawn: " + error.message;
  }
}

function showPicture(host, text) {
  // The policy lets no style sheet in with a document, so the rules are taken out first.
  const rules = [];
  const bare = text.replace(/<style>([^<]*)<\/style>/g, (_, css) => { rules.push(css); return ""; });
  const svg = new DOMParser().parseFromString(bare, "image/svg+xml").documentElement;
  if (svg.nodeName !== "svg") throw new Error("not a picture");
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(rules.join("") + MARKS);
  const fresh = document.createElement("div");
  picture = fresh.attachShadow({ mode: "open" });
  picture.adoptedStyleSheets = [sheet];
  picture.append(document.importNode(svg, true));
  whole = svg.getAttribute("viewBox");
  host.replaceChildren(fresh);
  fitPicture();
  markPlan();
}

// On a phone the legend and the steps would be too small to read: only nodes and links are shown there.
function fitPicture() {
  const svg = picture && picture.querySelector("svg");
  if (!svg) return;
  const box = NARROW.matches ? aroundNodes() : whole;
  const [, , width, height] = box.split(" ");
  for (const [name, value] of Object.entries({ viewBox: box, width, height })) svg.setAttribute(name, value);
  show(byId("plan-words"), NARROW.matches);
  say(byId("plan-words"), svg.querySelector("title").textContent);
}

function aroundNodes() {
  const boxes = [...picture.querySelectorAll(".links, g[class^=n] > .node")].map(part => part.getBBox()).filter(box => box.width);
  const left = Math.min(...boxes.map(box => box.x)), top = Math.min(...boxes.map(box => box.y));
  const right = Math.max(...boxes.map(box => box.x + box.width)), bottom = Math.max(...boxes.map(box => box.y + box.height));
  return [left - 6, top - 6, right - left + 12, bottom - top + 12].join(" ");
}
NARROW.addEventListener("change", fitPicture);

function markPlan() {
  if (!picture || !snapshot || snapshot.node === null) return;
  const me = Number(snapshot.node);
  picture.querySelectorAll(".n" + me).forEach(node => node.classList.add("me"));
  for (const peer of snapshot.neighbours) {
    const other = Number(peer.node);
    const marked = ".f" + me + ".t" + other + ",.f" + other + ".t" + me + ",.n" + other;
    picture.querySelectorAll(marked).forEach(element => {
      element.classList.remove("up", "down", "suspended", "left");
      element.classList.add(peer.state);
    });
  }
}
