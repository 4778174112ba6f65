//! Observation and control of a running peer: the local interface, the commands that use it, and the requests it
//! refuses.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Output, Stdio};
use std::time::Duration;

use crate::support::pair::Pair;
use crate::support::{RunningPeer, assert_fails, mingle, run, stderr, stdout, text};
use serde_json::Value;

/// Trains until it is stopped, and evaluates often.
const ENDLESS: [&str; 6] = ["--model", "softmax", "--rounds", "1000000", "--evaluate-every", "2"];
const WITH_PAGE: [&str; 8] =
    ["--model", "softmax", "--rounds", "1000000", "--evaluate-every", "2", "--http", "127.0.0.1:0"];

#[track_caller]
fn object(output: &Output) -> Value {
    assert!(output.status.success(), "{}{}", stdout(output), stderr(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The address of a peer's page, without `http://` and the slash behind it.
fn page(peer: &mut RunningPeer) -> String {
    let event = peer.wait_for("interface");
    event["page"].as_str().unwrap().trim_start_matches("http://").trim_end_matches('/').to_owned()
}

/// Sends a request as it stands and returns the stream with the answer.
fn send(address: &str, request: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    BufReader::new(stream)
}

/// The whole answer to a request for `path` by a browser that is on the page.
fn get(address: &str, path: &str) -> String {
    let mut answer = String::new();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    send(address, &request).read_to_string(&mut answer).unwrap();
    answer
}

/// The status line of the answer to a request with these lines.
fn answer(address: &str, head: &[&str]) -> String {
    let mut line = String::new();
    send(address, &format!("{}\r\nConnection: close\r\n\r\n", head.join("\r\n"))).read_line(&mut line).unwrap();
    line
}

#[test]
fn a_running_pair_shows_what_it_does_and_stops_when_asked_with_its_weight_on_disk() {
    let pair = Pair::new();
    let mut peers = pair.start(&ENDLESS);
    let homes = [pair.home(0), pair.home(1)];
    let [home, other] = [text(&homes[0]), text(&homes[1])];
    let reached = object(&run(&["wait", "--home", home, "--for", "round=20", "--timeout", "60s", "--json"]));
    assert!(reached["round"].as_u64().unwrap() >= 20 && reached["schema"] == "mingle.wait/1", "{reached}");
    peers[0].wait_for("evaluated");

    let status = object(&run(&["status", "--home", home, "--json"]));
    assert_eq!(status["schema"], "mingle.status/1");
    assert!(["training", "waiting_for_neighbours"].contains(&status["state"].as_str().unwrap()), "{status}");
    assert!(status["joined"] == true && status["durable"] == true && status["incarnation"] == 1, "{status}");
    assert_eq!((&status["node"], &status["rounds"]), (&Value::from(0), &Value::from(1_000_000)));
    assert!(
        status["evaluation"]["metrics"]["accuracy"].as_f64().unwrap() > 0.1 && status["eta_s"].as_f64().unwrap() > 0.0,
        "{status}"
    );
    let directions = serde_json::json!({ "accuracy": "max", "loss": "min" });
    assert_eq!(status["evaluation"]["directions"], directions);
    // Two peers that exchange halves settle at one each, and agree after one step but for their training.
    assert!((status["weight"]["stationary"].as_f64().unwrap() - 1.0).abs() < 1e-9, "{status}");
    assert_eq!(status["contraction"]["forecast"], 0.0);
    assert!(status["disagreement"].as_f64().unwrap() > 0.0, "{status}");
    let neighbour = &status["neighbours"][0];
    assert_eq!((&neighbour["node"], &neighbour["state"]), (&Value::from(1), &Value::from("up")));
    assert_eq!(neighbour["peer"].as_str().unwrap(), stdout(&run(&["id", "--home", other])).trim());
    assert!(
        neighbour["outgoing"]["parcels"].as_u64().unwrap() > 0 && neighbour["received_bytes"].as_u64().unwrap() > 0,
        "{status}"
    );

    let listed = object(&run(&["peers", "--home", home, "--json"]));
    assert_eq!(listed["schema"], "mingle.peers/1");
    assert_eq!(listed["peers"][0]["peer"], neighbour["peer"]);
    let shown = stdout(&run(&["status", "--home", home]));
    assert!(shown.contains("of 1000000") || shown.contains("/1000000"), "{shown}");
    assert!(shown.contains(neighbour["peer"].as_str().unwrap()) && shown.contains("w/w*"), "{shown}");

    let stopped = object(&run(&["stop", "--home", home, "--json"]));
    assert_eq!((&stopped["schema"], &stopped["durable"]), (&Value::from("mingle.stop/1"), &Value::from(true)));
    assert_eq!(stopped["records"].as_str().unwrap(), text(&homes[0].join("records")));
    assert_eq!(peers[0].exit_code(), Some(0), "it has ended when `stop` returns");
    assert!(!homes[0].join("mingle.sock").exists(), "and its socket is gone");
    let summary: Value = serde_json::from_slice(&std::fs::read(homes[0].join("summary.json")).unwrap()).unwrap();
    assert_eq!(stopped["weight_units"], summary["ledger"]["mass"]);
    assert_fails(&run(&["status", "--home", home]), 3, &["no peer runs in", "mingle run"]);
    assert_fails(&run(&["stop", "--home", home]), 3, &["no peer runs in"]);

    let said = stdout(&run(&["stop", "--home", other]));
    assert!(said.contains("of 1000000") && said.contains("goes on from there"), "{said}");
    assert_eq!(peers[1].exit_code(), Some(0));
}

#[test]
fn waiting_for_a_peer_that_does_not_come_is_told_from_one_that_is_not_so_far() {
    let pair = Pair::new();
    let home = pair.home(0);
    let wait = |condition: &str, timeout: &str| {
        run(&["wait", "--home", text(&home), "--for", condition, "--timeout", timeout])
    };
    assert_fails(&wait("plan", "6s"), 3, &["waiting    no peer runs in", "error: no peer runs in"]);
    let mut lonely = RunningPeer::start(&["--home", text(&home), "--plan", text(&pair.plan()), "--rounds", "8"]);
    lonely.wait_for("plan");
    assert!(wait("plan", "30s").status.success());
    assert!(wait("peers=0", "30s").status.success());
    assert_fails(&wait("joined", "300ms"), 5, &["joined", "waiting", "0 neighbours up"]);
    assert_fails(&wait("peers=1", "300ms"), 5, &["peers=1"]);
    let usage = wait("lunch", "1s");
    assert_fails(&usage, 2, &["peers=N", "round=N"]);
    let error = run(&["wait", "--home", text(&home), "--for", "done", "--timeout", "200ms", "--json"]);
    let error: Value = serde_json::from_slice(&error.stdout).unwrap();
    assert_eq!((&error["error"]["code"], &error["error"]["kind"]), (&Value::from(5), &Value::from("timed-out")));
}

#[test]
fn a_run_that_is_done_is_done_for_those_who_wait_however_late_they_come() {
    let pair = Pair::new();
    let mut peers = pair.start(&["--model", "softmax", "--rounds", "8"]);
    let home = pair.home(1);
    let wait = || object(&run(&["wait", "--home", text(&home), "--for", "done", "--timeout", "60s", "--json"]));
    assert_eq!(wait()["round"], 8);
    for peer in &mut peers {
        assert_eq!(peer.exit_code(), Some(0));
    }
    let late = wait();
    assert!(late["round"] == 8 && late["state"] == "done", "{late}");
}

#[test]
fn a_killed_peer_leaves_a_socket_that_the_next_start_replaces() {
    let pair = Pair::new();
    let home = pair.home(0);
    let start = || RunningPeer::start(&["--home", text(&home), "--plan", text(&pair.plan()), "--rounds", "8"]);
    let mut first = start();
    let socket = first.wait_for("interface")["socket"].as_str().unwrap().to_owned();
    assert_eq!(socket, text(&home.join("mingle.sock")));
    assert_fails(&run(&["run", "--home", text(&home), "--plan", text(&pair.plan())]), 6, &["already runs"]);
    first.kill();
    assert!(home.join("mingle.sock").exists());
    assert_fails(&run(&["status", "--home", text(&home)]), 3, &["no peer runs in"]);
    let mut second = start();
    second.wait_for("interface");
    assert_eq!(object(&run(&["status", "--home", text(&home), "--json"]))["schema"], "mingle.status/1");
}

#[test]
fn a_home_with_a_path_too_long_for_a_socket_has_it_elsewhere_and_is_watched_all_the_same() {
    let pair = Pair::new();
    let home = pair.file(&"long".repeat(30));
    std::fs::create_dir(&home).unwrap();
    std::fs::copy(pair.home(0).join("identity.key"), home.join("identity.key")).unwrap();
    let mut peer = RunningPeer::start(&["--home", text(&home), "--plan", text(&pair.plan()), "--rounds", "8"]);
    let socket = std::path::PathBuf::from(peer.wait_for("interface")["socket"].as_str().unwrap());
    assert!(socket.exists() && !socket.starts_with(&home), "{}", socket.display());
    peer.wait_for("plan");
    assert_eq!(object(&run(&["status", "--home", text(&home), "--json"]))["schema"], "mingle.status/1");
    peer.signal("INT");
    assert!(peer.exit_code().is_some());
    assert!(!socket.exists() && !home.join("mingle.sock.path").exists());
    assert_fails(&run(&["status", "--home", text(&home)]), 3, &["no peer runs in"]);
}

#[test]
fn the_page_shows_events_metrics_and_the_plan_and_changes_nothing() {
    let pair = Pair::new();
    let mut peers = pair.start(&WITH_PAGE);
    let address = page(&mut peers[0]);
    peers[0].wait_for("evaluated");

    let mut stream = send(&address, &format!("GET /v1/events?since=0 HTTP/1.1\r\nHost: {address}\r\n\r\n"));
    let mut seen: Vec<Value> = Vec::new();
    let mut ids: Vec<u64> = Vec::new();
    while !seen.iter().any(|event| event["event"] == "round") {
        let mut line = String::new();
        assert!(stream.read_line(&mut line).unwrap() > 0, "the stream goes on");
        if let Some(id) = line.strip_prefix("id: ") {
            ids.push(id.trim().parse().unwrap());
        }
        if let Some(data) = line.strip_prefix("data: ") {
            seen.push(serde_json::from_str(data).unwrap());
        }
    }
    assert_eq!(seen[0]["event"], "listening", "what was told before comes first");
    assert!(seen.iter().all(|event| event["schema"] == "mingle.event/1"));
    assert!(ids[0] == 1 && ids.is_sorted_by(|a, b| a < b), "{ids:?}");

    // The plan has the link in every other round or so, and the other peer is at most four rounds behind.
    assert!(run(&["wait", "--home", text(&pair.home(0)), "--for", "round=20"]).status.success());
    let metrics = get(&address, "/metrics");
    let (head, body) = metrics.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("application/openmetrics-text"), "{head}");
    check_metrics(body);

    let drawn = get(&address, "/plan.svg");
    assert!(drawn.contains("image/svg+xml") && drawn.contains("f0 t1"), "{drawn}");
    let shown = get(&address, "/");
    let policy = shown.lines().find(|line| line.to_ascii_lowercase().starts_with("content-security-policy")).unwrap();
    let nonce = policy.split("script-src 'nonce-").nth(1).unwrap().split('\'').next().unwrap();
    assert!(
        policy.contains("default-src 'none'") && shown.contains(&format!("<script nonce=\"{nonce}\">")),
        "{policy}"
    );
    assert!(!get(&address, "/").contains(nonce), "each page has a nonce of its own");
    for (path, status) in
        [("/livez", "200"), ("/readyz", "200"), ("/v1/status", "200"), ("/v1/peers", "200"), ("/none", "404")]
    {
        assert!(get(&address, path).starts_with(&format!("HTTP/1.1 {status}")), "{path}");
    }

    let host = format!("Host: {address}");
    assert!(answer(&address, &["POST /v1/stop HTTP/1.1", &host, "Content-Length: 0"]).contains("405"));
    assert!(answer(&address, &["GET /v1/stop HTTP/1.1", &host]).contains("404"));
    assert!(answer(&address, &["GET /v1/status HTTP/1.1", "Host: rebound.example"]).contains("403"));
    let foreign = ["GET /v1/status HTTP/1.1", &host, "Origin: http://elsewhere.example"];
    assert!(answer(&address, &foreign).contains("403"));
    assert!(answer(&address, &["GET / HTTP/1.1", &host, &format!("X: {}", "x".repeat(40_000))]).contains("431"));
    assert!(answer(&address, &["GET / HTTP/1.1", &host, "Content-Length: 100000"]).contains("413"));

    let status = object(&run(&["status", "--home", text(&pair.home(0)), "--json"]));
    assert!(!["done", "stopped", "draining"].contains(&status["state"].as_str().unwrap()), "nothing has stopped it");
    assert_eq!(object(&run(&["stop", "--home", text(&pair.home(0)), "--json"]))["durable"], true);
    assert!(TcpStream::connect(&address).is_err(), "the page is gone with the peer");
}

/// Checks that every line is a comment or a number with a name, and that the common metrics are there.
fn check_metrics(body: &str) {
    let mut names = std::collections::BTreeSet::new();
    let chunks = body.lines().filter(|line| line.starts_with('#') || line.contains(' '));
    for line in chunks.filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<f64>().is_ok(), "{line}");
        names.insert(name.split('{').next().unwrap().to_owned());
    }
    assert!(body.contains("# EOF"), "{body}");
    for name in [
        "mingle_round",
        "mingle_rounds",
        "mingle_evaluation",
        "mingle_pushsum_weight",
        "mingle_pushsum_weight_share",
        "mingle_gossip_disagreement",
        "mingle_gossip_bytes_total",
        "mingle_gossip_parcels_total",
        "mingle_neighbours",
        "mingle_contraction_predicted",
        "libp2p_swarm_connections_established_total",
    ] {
        assert!(names.contains(name), "{name} is missing in {names:?}");
    }
    assert!(body.contains("mingle_neighbours{state=\"up\"} 1"), "{body}");
}

#[test]
fn who_holds_all_streams_of_the_page_takes_none_from_the_owner_of_the_home() {
    let pair = Pair::new();
    let mut peers = pair.start(&WITH_PAGE);
    let address = page(&mut peers[0]);
    let request = format!("GET /v1/status/follow HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let open = || {
        let (mut stream, mut line) = (send(&address, &request), String::new());
        stream.read_line(&mut line).unwrap();
        (stream, line)
    };
    let mut held = Vec::new();
    let refusal = loop {
        let (stream, line) = open();
        if !line.contains("200") {
            break line;
        }
        held.push(stream);
        assert!(held.len() <= 16, "there is no end to the streams");
    };
    assert!(refusal.contains("503"), "{refusal}");
    let waited = run(&["wait", "--for", "round=3", "--timeout", "20s", "--home", text(&pair.home(0))]);
    assert!(waited.status.success(), "{}", stderr(&waited));
}

#[test]
fn logs_follow_a_peer_from_its_first_event_to_its_last() {
    let pair = Pair::new();
    let home = pair.home(0);
    let mut peers = pair.start(&ENDLESS);
    let mut logs = mingle().args(["logs", "--json", "--home", text(&home)]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(logs.stdout.take().unwrap()).lines().map(|line| line.unwrap());
    let first: Value = serde_json::from_str(&lines.next().unwrap()).unwrap();
    assert_eq!(first["event"], "listening");
    peers[0].wait_for("evaluated");
    assert!(run(&["stop", "--home", text(&home)]).status.success());
    let rest: Vec<Value> = lines.map(|line| serde_json::from_str(&line).unwrap()).collect();
    assert_eq!(rest.last().unwrap()["event"], "done", "{rest:?}");
    assert!(rest.iter().any(|event| event["event"] == "evaluated"), "{rest:?}");
    assert!(logs.wait().unwrap().success());
}

#[test]
fn the_dashboard_needs_a_terminal() {
    assert_fails(&run(&["watch"]), 4, &["terminal", "mingle logs"]);
}

#[test]
fn who_asks_for_a_peer_that_runs_no_more_hears_how_its_last_run_ended() {
    let pair = Pair::new();
    let (first, second) = (pair.home(0), pair.home(1));
    assert_fails(&run(&["status", "--home", text(&first)]), 3, &["no peer runs in", "hint: mingle run"]);
    pair.train();
    for command in ["status", "peers", "logs"] {
        let asked = run(&[command, "--home", text(&first)]);
        assert_fails(&asked, 3, &["no peer runs in", "its last run is over after round 8, accuracy 0.", "mingle eval"]);
    }

    let pair = Pair::new();
    pair.train_and_kill();
    let asked = run(&["status", "--home", text(&pair.home(0))]);
    assert_fails(&asked, 3, &["its last run was cut off", "start it again with the same command"]);

    let stopped = Pair::new();
    let mut peers = stopped.start(&ENDLESS);
    peers[0].wait_for("evaluated");
    assert!(run(&["stop", "--home", text(&stopped.home(0))]).status.success());
    let asked = run(&["status", "--home", text(&stopped.home(0))]);
    assert_fails(&asked, 3, &["its last run was stopped after round", "of 1000000"]);
    assert!(!second.join("mingle.sock").exists());
}

/// A swarm of an operator and an invited peer, neither of which has a plan.
fn waiting_swarm(folder: &std::path::Path) -> [RunningPeer; 2] {
    let [operator, member] = ["operator", "member"].map(|name| folder.join(name));
    assert!(run(&["init", "--home", text(&operator), "--swarm", "ward7"]).status.success());
    let mut first = RunningPeer::start(&[&["--home", text(&operator)], &ENDLESS[..]].concat());
    first.address();
    first.wait_for("waiting_for_plan");
    let alone = object(&run(&["status", "--json", "--home", text(&operator)]));
    assert_eq!((&alone["state"], &alone["waiting"]), (&"waiting_for_plan".into(), &0.into()), "{alone}");
    let ticket = stdout(&run(&["invite", "--home", text(&operator)]));
    let mut second = RunningPeer::join(ticket.trim(), &[&["--home", text(&member)], &ENDLESS[..]].concat());
    second.wait_for("admitted");
    assert!(run(&["wait", "--home", text(&operator), "--for", "waiting=1"]).status.success());
    [first, second]
}

#[test]
fn a_founder_waits_for_a_plan_and_counts_what_it_sends_and_receives_over_all_plans() {
    let folder = tempfile::tempdir().unwrap();
    let _peers = waiting_swarm(folder.path());
    let operator = folder.path().join("operator");
    let shown = stdout(&run(&["status", "--home", text(&operator)]));
    assert!(shown.starts_with("waiting for a plan  round 0/1000000\n1 peer with an invitation waits"), "{shown}");

    let status = || object(&run(&["status", "--json", "--home", text(&operator)]));
    let apply = |method: &str| {
        let plan = folder.path().join(format!("{method}.json"));
        let made = run(&["plan", "make", "--topology", "complete:n=2", "--method", method, "-o", text(&plan)]);
        assert!(made.status.success(), "{}", stderr(&made));
        let applied = run(&["plan", "apply", text(&plan), "--home", text(&operator), "--timeout", "10s"]);
        assert!(applied.status.success(), "{}", stderr(&applied));
    };
    apply("nguyen-he");
    assert!(run(&["wait", "--home", text(&operator), "--for", "round=40"]).status.success());
    let before = status();
    apply("exact-average");
    let next = before["round"].as_u64().unwrap() + 20;
    assert!(run(&["wait", "--home", text(&operator), "--for", &format!("round={next}")]).status.success());
    let after = status();
    assert_ne!(before["plan"]["hash"], after["plan"]["hash"]);
    for count in ["sent_bytes", "received_bytes"] {
        assert!(after[count].as_u64() > before[count].as_u64(), "{count}: {before} then {after}");
    }
    let bytes = |count: &str| after[count].as_f64().unwrap();
    let ratio = bytes("sent_bytes") / bytes("received_bytes");
    assert!((0.7..1.4).contains(&ratio), "two peers send each other as much: {after}");
}

#[test]
fn names_with_characters_that_cannot_be_seen_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (number, name) in ["ward\u{202e}7", "ward\u{200b}7", "ward\u{1b}[2J", "\u{feff}"].iter().enumerate() {
        let home = folder.path().join(number.to_string());
        let refused = run(&["init", "--home", text(&home), "--swarm", name]);
        assert_fails(&refused, 4, &["characters, all of which can be seen"]);
        let said = stderr(&refused);
        assert!(!said.contains(['\u{202e}', '\u{200b}', '\u{1b}', '\u{feff}']), "{said:?}");
    }
    // Text that is only repeated is shown in escaped form.
    let missing = run(&["plan", "show", "no\u{202e}such\u{1b}[2Jplan"]);
    assert_fails(&missing, 4, &[r"no\u202esuch\u001b[2Jplan"]);
    let home = folder.path().join("fine");
    assert!(run(&["init", "--home", text(&home), "--swarm", "Größe 東京 7"]).status.success());
}
