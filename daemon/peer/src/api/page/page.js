// Follows the peer's snapshots and events, and shows them.

const OVER = ["done", "stopped", "failed"];
const MOST_EVENTS = 300;
const RETRY_MS = 3000;
const curves = {
  first: new Chart("first-curve", { name: "", low: 0, tell: value => value.toFixed(3) }),
  second: new Chart("second-curve", { name: "", low: 0, tell: value => value.toFixed(3) }),
  disagreement: new Chart("disagreement-curve", { name: "Disagreement", log: true, factor: null, tell: scientific }),
};
let snapshot = null;
let lostSince = null;
let lastEvent = 0;

function showStatus(next) {
  // A new life of the peer begins anew.
  if (snapshot && next.at_ms < snapshot.at_ms) { location.reload(); return; }
  const before = snapshot;
  snapshot = next;
  showState();
  showNumbers(next);
  showFacts(next);
  showNeighbours(next.neighbours);
  showPlan(before);
}

// Those that are not the name itself.
const STATES = {
  waiting_for_plan: "waiting for a plan",
  waiting_for_model: "waiting for a model",
  waiting_for_trainer: "waiting for its trainer",
};

const stateInWords = () => STATES[snapshot.state] ?? snapshot.state.replaceAll("_", " ");

function showState() {
  const isOver = snapshot !== null && OVER.includes(snapshot.state);
  const isLost = lostSince !== null && !isOver;
  document.body.classList.toggle("stale", isLost);
  if (snapshot) {
    const state = isLost ? "lost" : stateInWords();
    const done = snapshot.round + " of " + snapshot.rounds;
    const left = isOver || isLost || !isKnown(snapshot.eta_s) ? "" : ", " + span(snapshot.eta_s) + " left";
    document.title = state + " " + snapshot.round + "/" + snapshot.rounds + " – mingle";
    say(byId("progress-words"), "round " + done + left);
    byId("progress").max = Math.max(snapshot.rounds, 1);
    byId("progress").value = snapshot.round;
    say(byId("state"), state, "badge " + badge(isLost, isOver));
    const place = snapshot.node === null ? "" : "node " + snapshot.node + (snapshot.plan ? " of " + snapshot.plan.nodes : "");
    say(byId("who"), [place, snapshot.peer, snapshot.task].filter(Boolean).join(" · "));
  } else {
    say(byId("state"), lostSince ? "no answer" : "connecting", lostSince ? "badge down" : "badge");
  }
  showNotice(isOver, isLost);
}

function badge(isLost, isOver) {
  if (isLost || snapshot.state === "failed") return "down";
  return isOver ? "over" : snapshot.state === "training" || snapshot.state === "solving" || snapshot.state === "waiting_for_neighbours" ? "up" : "";
}

// The one thing that the reader should know before all others, if there is any.
function showNotice(isOver, isLost) {
  const [text, kind] = notice(isOver, isLost);
  const element = byId("notice");
  show(element, text !== "");
  say(element, text, kind);
}

function notice(isOver, isLost) {
  if (isOver) return ["The peer has ended (" + snapshot.state + "). What is shown is its last word.", snapshot.state === "failed" ? "down" : ""];
  if (isLost || lostSince) return ["The peer has not answered since " + lostSince.toLocaleTimeString() + ". What is shown is older; the page keeps asking.", "down"];
  if (!snapshot) return ["", ""];
  const away = snapshot.neighbours.filter(peer => peer.state === "down" || peer.state === "suspended");
  if (snapshot.joined && away.length) return [awayInWords(away), "warn"];
  if (!snapshot.plan) return [waitingInWords(snapshot.waiting || 0), ""];
  return ["", ""];
}

function awayInWords(away) {
  const named = away.slice(0, 8).map(peer => "node " + peer.node + " is " + peer.state + (peer.reason ? " (" + peer.reason + ")" : ""));
  const more = away.length > 8 ? ", and " + (away.length - 8) + " more" : "";
  return away.length + " of " + snapshot.neighbours.length + " neighbours cannot be relied on: " + named.join(", ") + more + ".";
}

function waitingInWords(waiting) {
  const others = waiting === 0 ? "" : waiting === 1 ? " One invited peer waits here for it, too." : " " + waiting + " invited peers wait here for it, too.";
  return "This peer has no plan yet." + others;
}

// What people look at first, in front.
const LEADING = ["bits_per_character", "bits_per_byte", "accuracy", "r2"];

// The names of what was measured.
function metricNames(metrics) {
  const rank = name => (LEADING.includes(name) ? LEADING.indexOf(name) : LEADING.length);
  return Object.keys(metrics).sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
}

// Which direction is better, where the peer knows.
function directionInWords(name) {
  const directions = snapshot && snapshot.evaluation && snapshot.evaluation.directions || {};
  return { max: "; the larger the better", min: "; the smaller the better" }[directions[name]] || "";
}

function showMetrics(round, metrics) {
  metricNames(metrics).slice(0, 2).forEach((name, index) => {
    const chart = index === 0 ? curves.first : curves.second;
    chart.look.name = name;
    chart.look.high = name === "accuracy" || name === "r2" ? 1 : undefined;
    say(byId(index === 0 ? "first-name" : "second-name"), name);
    say(byId(index === 0 ? "first-note" : "second-note"), "The mean over the held-out samples" + directionInWords(name) + ".");
    chart.add(round, metrics[name]);
  });
}

function showNumbers(next) {
  const { evaluation, contraction, weight } = next;
  const metrics = evaluation ? evaluation.metrics : {};
  const [leading, ...others] = metricNames(metrics);
  const more = others.map(name => name + " " + number(metrics[name], 3) + ", ").join("");
  say(byId("metric"), leading ? number(evaluation.metrics[leading], 3) : "–");
  say(byId("metric-name"), leading || "Metric");
  say(byId("metric-more"), evaluation ? more + "train loss " + number(next.train_loss, 3) : "evaluated after some rounds");
  say(byId("disagreement"), scientific(next.disagreement));
  say(byId("contraction"), number(contraction.observed, 3));
  say(byId("forecast"), number(contraction.forecast, 3));
  say(byId("weight"), number(weight.value, 4));
  say(byId("weight-more"), "w / w* = " + number(weight.share, 3) + ", about 1 in a settled swarm");
  say(byId("forecast-note"), contraction.forecast > 0
    ? "Dashed: the plan's mixing alone. Training pulls apart again."
    : "Distance to the models it heard, relative to its own length.");
  if (curves.disagreement.look.factor !== contraction.forecast) {
    curves.disagreement.look.factor = contraction.forecast;
    curves.disagreement.plan();
  }
}

function privacy(next) {
  if (!next.privacy) return "changes are not private";
  const { epsilon, epsilon_max: most, delta, changes, is_spent: isSpent } = next.privacy;
  return "epsilon " + number(epsilon, 3) + " of " + most + " at delta " + delta + ", " + changes + " changes" + (isSpent ? ": spent, it trains no more" : "");
}

function momentum({ choice, momentum }) {
  return choice === "auto" ? number(momentum, 2) + " (auto, by what the plan bears)" : choice === "off" ? "off" : number(momentum, 2);
}

function multicast({ group, packet_bytes: packets, stream_bytes: streams, resorted_parcels: resorted }) {
  const inTheEnd = resorted ? ", " + resorted + " parcels by stream in the end" : "";
  return megabytes(packets) + " MB to " + group + " where streams would carry " + megabytes(streams) + " MB" + inTheEnd;
}

function showFacts(next) {
  const refused = Object.entries(next.refusals).map(([reason, count]) => reason.replaceAll("_", " ") + " " + count);
  const facts = {
    "MB out / in": megabytes(next.sent_bytes) + " / " + megabytes(next.received_bytes),
    "Sent as": encoded(next),
    ...(next.multicast && { "Multicast": multicast(next.multicast) }),
    ...(next.momentum_across_rounds && { "Momentum across rounds": momentum(next.momentum_across_rounds) }),
    ...(next.overlap && { "Overlap": next.overlap.choice + ": " + next.overlap.rounds + " rounds trained while the one before was mixed" }),
    "Weight on disk": next.durable ? "yes" : "no",
    "Incarnation": String(next.incarnation),
    "Privacy": privacy(next),
    ...(next.trainer && { "Trained by": next.trainer.attached ?? "nobody: it mixes on without local steps as soon as a neighbour is ahead" }),
    "Refused": refused.join(", ") || "nothing",
    "Plan": next.plan ? next.plan.hash.slice(0, 12) + " (" + next.plan.origin + ")" : "none yet",
    "Listens on": next.addresses.join(" ") || "–",
    "Release": next.version,
  };
  const list = byId("facts");
  Object.entries(facts).forEach(([name, value], index) => {
    const box = list.children[index] ?? put(list, "div", "");
    if (!box.childElementCount) { put(box, "dt", name); put(box, "dd", ""); }
    say(box.lastElementChild, value);
  });
}

function showNeighbours(neighbours) {
  const body = byId("peers");
  const names = [...body.parentElement.tHead.rows[0].cells].map(cell => cell.textContent);
  while (body.rows.length > neighbours.length) body.lastElementChild.remove();
  neighbours.forEach((peer, index) => {
    const row = body.rows[index] ?? put(body, "tr", "");
    neighbourCells(peer).forEach((text, column) => {
      const cell = row.cells[column] ?? newCell(row, names[column]);
      say(cell, text, column === 1 ? peer.state : "");
    });
  });
}

function newCell(row, name) {
  if (!row.cells.length) {
    const head = put(row, "th", "");
    head.scope = "row";
    return head;
  }
  const cell = put(row, "td", "");
  cell.dataset.name = name;
  return cell;
}

function neighbourCells(peer) {
  const { outgoing, incoming, account } = peer;
  const percent = share => (share ?? null) === null ? "–" : Math.round(100 * share) + " %";
  return [
    String(peer.node),
    peer.state + (peer.reason ? ": " + peer.reason : ""),
    [outgoing && "out", incoming && "in"].filter(Boolean).join(", "),
    number(peer.round_trip_ms, 1),
    String(peer.steps_behind),
    outgoing ? String(outgoing.parcels) : "–",
    incoming ? String(incoming.parcels) : "–",
    megabytes(peer.sent_bytes),
    megabytes(peer.received_bytes),
    outgoing ? (outgoing.unacknowledged_units / UNITS).toFixed(4) : "–",
    outgoing ? number(outgoing.given_weight, 1) : "–",
    incoming ? number(incoming.received_weight, 1) : "–",
    percent(account?.taken),
    percent(account?.given),
    account ? number(account.periods_ahead, 1) : "–",
    peer.peer,
  ];
}

function showPlan(before) {
  const { plan } = snapshot;
  document.body.classList.toggle("waiting", !plan);
  show(byId("plan-key"), Boolean(plan));
  show(byId("plan-missing"), !plan);
  if (plan && (!before || !before.plan || before.plan.hash !== plan.hash)) loadPlan();
  markPlan();
}

function showEvent(line) {
  if (line.event === "lost") { say(byId("lost"), line.count + " events were lost"); return; }
  if (line.event === "evaluated") {
    showMetrics(line.round, line.metrics);
    curves.disagreement.add(line.round, line.disagreement ?? 0);
  }
  // The curves show what was measured; among such lines the others would be lost from sight.
  if (line.event === "evaluated" || line.event === "round") return;
  const list = byId("events");
  const item = document.createElement("li");
  put(item, "time", moment(line.at_ms / 1000));
  item.append(" ");
  put(item, "b", line.event.replaceAll("_", " "), line.event === "warning" ? "warn" : line.event === "failed" ? "down" : "");
  item.append(" " + eventInWords(line));
  list.prepend(item);
  while (list.childElementCount > MOST_EVENTS) list.lastChild.remove();
}

function eventInWords(line) {
  const rest = Object.entries(line).filter(([key, value]) => !["schema", "at_ms", "event"].includes(key) && value !== null);
  return rest.map(([key, value]) => key.replaceAll("_", " ") + " " + valueInWords(value)).join(", ");
}

function valueInWords(value) {
  if (Array.isArray(value)) return value.map(valueInWords).join(" ");
  if (typeof value === "number" && !Number.isInteger(value)) return String(Number(value.toPrecision(4)));
  return typeof value === "string" ? value.replace(/^([0-9a-f]{12})[0-9a-f]{52}$/, "$1") : JSON.stringify(value);
}

const sources = new Map();

function follow(path, take) {
  const source = new EventSource(path());
  sources.set(take, source);
  source.onmessage = message => {
    if (lostSince) { lostSince = null; showState(); }
    take(JSON.parse(message.data), message);
  };
  source.onerror = () => {
    lostSince ??= new Date();
    showState();
    // The browser asks again by itself, but not after it was refused.
    if (source.readyState === EventSource.CLOSED) setTimeout(() => { if (sources.get(take) === source) follow(path, take); }, RETRY_MS);
  };
}

const takeStatus = next => showStatus(next);
const takeEvent = (line, message) => { if (message.lastEventId) lastEvent = message.lastEventId; showEvent(line); };

// Browsers give all pages of one peer six connections together: a page that nobody sees keeps none.
function followWhileSeen() {
  if (document.hidden) {
    sources.forEach(source => source.close());
    sources.clear();
  } else if (sources.size === 0) {
    follow(() => "/v1/events?since=" + lastEvent, takeEvent);
    follow(() => "/v1/status/follow", takeStatus);
  }
}
document.addEventListener("visibilitychange", followWhileSeen);
followWhileSeen();
