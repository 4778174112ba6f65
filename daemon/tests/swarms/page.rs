//! The page of a running peer, as Chromium shows it. `MINGLE_PICTURES=FOLDER` writes pictures for inspection.

use std::fs;
use std::path::PathBuf;

use crate::support::browser::Browser;
use crate::support::{RunningPeer, run, stderr, stdout, text};
use serde_json::Value;

/// A name that would be an element where it is taken for HTML.
const HOSTILE: &str = "<b id='smuggled'>\\\"&";
const TASK: [&str; 6] = ["--model", "softmax", "--rounds", "1000000", "--evaluate-every", "2"];
const WITH_PAGE: [&str; 2] = ["--http", "127.0.0.1:0"];
/// The picture of the plan, which lives in a shadow of its own.
const PICTURE: &str = "document.querySelector('#plan > div')?.shadowRoot";

/// Three peers: the watched one, node 0, has links with the two others, which have none with each other.
struct Star {
    folder: tempfile::TempDir,
}

impl Star {
    fn new() -> Self {
        let star = Self { folder: tempfile::tempdir().unwrap() };
        let file = star.plan();
        let made = run(&["plan", "make", "--topology", "star:n=3", "--method", "nguyen-he", "-o", text(&file)]);
        assert!(made.status.success(), "{}", stderr(&made));
        let plan = fs::read_to_string(&file).unwrap();
        fs::write(&file, plan.replace("node-2", HOSTILE)).unwrap();
        for node in 0..3 {
            let peer = stdout(&run(&["init", "--home", text(&star.home(node))]));
            let bound = run(&["plan", "bind", text(&file), "--peer", &format!("{node}={}", peer.trim())]);
            assert!(bound.status.success(), "{}", stderr(&bound));
        }
        star
    }

    fn plan(&self) -> PathBuf {
        self.folder.path().join("plan.json")
    }

    fn home(&self, node: usize) -> PathBuf {
        self.folder.path().join(node.to_string())
    }

    /// The page of the watched peer, and all peers by node.
    fn start(&self) -> (String, [RunningPeer; 3]) {
        let (home, plan) = (self.home(0), self.plan());
        let mut watched =
            RunningPeer::start(&[&["--home", text(&home), "--plan", text(&plan)], &WITH_PAGE[..], &TASK].concat());
        let address = watched.address();
        let url = page(&mut watched);
        let [second, third] = [1, 2].map(|node| {
            RunningPeer::start(&[&["--home", text(&self.home(node)), "--bootstrap", &address], &TASK[..]].concat())
        });
        (url, [watched, second, third])
    }

    /// The number of links in the plan.
    fn links(&self) -> Value {
        let shown: Value =
            serde_json::from_slice(&run(&["plan", "show", "--json", text(&self.plan())]).stdout).unwrap();
        shown["links"].clone()
    }
}

fn page(peer: &mut RunningPeer) -> String {
    peer.wait_for("interface")["page"].as_str().unwrap().to_owned()
}

/// The texts of everything that a selector finds.
fn texts(browser: &Browser, selector: &str) -> Vec<String> {
    let found = browser.value(&format!("[...document.querySelectorAll('{selector}')].map(found => found.textContent)"));
    serde_json::from_value(found).unwrap()
}

/// The number that an element shows; panics where it shows none.
#[track_caller]
fn number(browser: &Browser, id: &str) -> f64 {
    let shown = texts(browser, &format!("#{id}")).concat();
    shown.parse().unwrap_or_else(|_| panic!("#{id} shows {shown}"))
}

#[track_caller]
fn assert_quiet(browser: &Browser, url: &str) {
    assert_eq!(browser.complaints(), Vec::<Value>::new());
    let foreign: Vec<String> = browser.requested().into_iter().filter(|asked| !asked.starts_with(url)).collect();
    assert!(foreign.is_empty() && !browser.requested().is_empty(), "{foreign:?} are not of {url}");
}

/// Asserts that nothing stands out at the side of the window.
#[track_caller]
fn assert_fits(browser: &Browser, width: u32) {
    browser.set_size(width, 900);
    browser.wait_until(&format!("innerWidth === {width}"));
    let inside = "document.documentElement.scrollWidth <= innerWidth";
    let widest = "[...document.querySelectorAll('body *')].filter(one => one.getBoundingClientRect().right > innerWidth)\
                  .map(one => one.outerHTML.slice(0, 80))";
    assert_eq!(browser.value(inside), true, "at {width}: {}", browser.value(widest));
}

/// Asserts that a page that is hidden leaves its streams, and misses none of the events meanwhile.
#[track_caller]
fn assert_catches_up(browser: &Browser) {
    let turn = |hidden: bool| {
        let hide = format!("Object.defineProperty(document, 'hidden', {{ value: {hidden}, configurable: true }})");
        browser.value(&format!("{hide}; document.dispatchEvent(new Event('visibilitychange')); sources.size"))
    };
    let measured = browser.value("curves.first.points.length");
    assert_eq!((turn(true), turn(false)), (0.into(), 2.into()));
    browser.wait_until(&format!("curves.first.points.length > {measured} + 3"));
    let steps = "curves.first.points.slice(1).map((point, index) => point[0] - curves.first.points[index][0])";
    assert_eq!(browser.value(&format!("new Set({steps}).size")), 1, "every evaluation is there once");
}

#[test]
#[ignore = "needs Chromium"]
fn a_peer_that_trains_is_shown_with_its_numbers_its_curves_its_plan_and_its_neighbours() {
    let browser = Browser::start();
    let star = Star::new();
    let (url, _peers) = star.start();
    browser.open(&url);
    browser.wait_until("document.querySelectorAll('.line').length === 3 && Number(contraction.textContent) > 0");
    browser.wait_until("[...document.querySelectorAll('.line')].every(line => line.points.numberOfItems > 1)");
    browser.wait_until(
        "[...peers.rows].every(row => row.cells[1].textContent === 'up' && Number(row.cells[7].textContent) > 0)",
    );

    let round = texts(&browser, "#progress-words").concat();
    let done: f64 = round.split(' ').nth(1).unwrap().parse().unwrap();
    assert!(done > 0.0 && round.contains("of 1000000"), "{round}");
    assert!(browser.value("document.title").as_str().unwrap().ends_with("– mingle"));
    let weight = number(&browser, "weight");
    assert!(weight > 0.0 && weight < 3.0, "three peers hold 3 in all, this one {weight}");
    assert!(number(&browser, "metric") > 0.0 && number(&browser, "disagreement") > 0.0);
    browser.wait_until("document.querySelector('#first-note').textContent.endsWith('the larger the better.')");
    browser.wait_until("document.querySelector('#second-note').textContent.endsWith('the smaller the better.')");
    assert!(number(&browser, "forecast") > 0.0 && number(&browser, "forecast") < 1.0);
    assert_eq!(browser.value("document.querySelectorAll('.forecast').length"), 1, "and it is drawn");

    let links = format!("{PICTURE}.querySelectorAll('.links path')");
    browser.wait_until(&format!("{links}.length === {}", star.links()));
    let ringed = format!("[...{PICTURE}.querySelectorAll('.me')].map(node => node.classList[0])");
    assert_eq!(browser.value(&ringed), serde_json::json!(["n0"]));
    let named = format!("{PICTURE}.textContent.includes(\"{HOSTILE}\") && !{PICTURE}.querySelector('b')");
    assert_eq!(browser.value(&named), true, "names are text");

    assert_eq!(texts(&browser, "#peers th"), ["1", "2"]);
    for (node, peer) in [1, 2].into_iter().zip(texts(&browser, "#peers td:last-child")) {
        assert_eq!(peer, stdout(&run(&["id", "--home", text(&star.home(node))])).trim());
    }
    assert_eq!(browser.value("byId('notice').hidden"), true);
    browser.picture("training");

    browser.value("document.querySelector('.curve svg').focus()");
    browser.press("Home");
    browser.wait_until("document.querySelector('.curve output').textContent.endsWith(', round 2')");
    assert_catches_up(&browser);
    for width in [360, 390, 700, 900, 1100, 1280] {
        assert_fits(&browser, width);
    }
    browser.set_size(390, 844);
    let labelled = "getComputedStyle(peers.rows[0].cells[3], '::before').content";
    assert!(browser.value(labelled).as_str().unwrap().contains("RTT"), "a card says what each number is");
    browser.picture("training-phone");
    browser.set_size(1280, 900);
    browser.set_dark(true);
    browser.wait_until("getComputedStyle(document.body).backgroundColor === 'rgb(11, 17, 32)'");
    browser.picture("training-dark");
    assert_quiet(&browser, &url);
}

#[test]
#[ignore = "needs Chromium"]
fn a_neighbour_that_is_gone_is_marked_and_a_peer_that_is_gone_is_said_to_be() {
    let browser = Browser::start();
    let star = Star::new();
    let (url, mut peers) = star.start();
    browser.open(&url);
    browser.wait_until("peers.rows.length === 2 && [...peers.rows].every(row => row.cells[1].className === 'up')");
    browser.wait_until(&format!("{PICTURE}.querySelectorAll('.links .up').length === 4"));
    peers[2].kill();
    browser.wait_until("peers.rows[1].cells[1].className === 'down'");
    browser.wait_until("byId('notice').className === 'warn' && byId('notice').textContent.includes('node 2 is down')");
    browser.wait_until(&format!("{PICTURE}.querySelectorAll('.links .down').length === 2"));
    assert_eq!(browser.value("peers.rows[0].cells[1].className"), "up");
    browser.picture("neighbour-down");
    assert_fits(&browser, 390);
    browser.set_size(1280, 900);
    assert_quiet(&browser, &url);

    peers[0].kill();
    browser.wait_until("state.textContent === 'lost' && byId('notice').textContent.includes('has not answered since')");
    assert!(number(&browser, "weight") > 0.0, "what was known stays");
    browser.picture("lost");
}

#[test]
#[ignore = "needs Chromium"]
fn a_peer_without_a_plan_says_that_it_waits_and_one_that_was_stopped_that_it_has_ended() {
    let browser = Browser::start();
    let folder = tempfile::tempdir().unwrap();
    let [home, other] = ["operator", "other"].map(|name| folder.path().join(name));
    assert!(run(&["init", "--home", text(&home), "--swarm", "ward7"]).status.success());
    let mut operator = RunningPeer::start(&[&["--home", text(&home)], &WITH_PAGE[..], &TASK].concat());
    operator.address();
    let url = page(&mut operator);
    browser.open(&url);
    browser
        .wait_until("state.textContent === 'waiting for a plan' && byId('notice').textContent.includes('no plan yet')");
    browser.wait_until("events.textContent.includes('ward7')");
    assert_eq!(browser.value("document.querySelector('#numbers').checkVisibility()"), false);

    let ticket = stdout(&run(&["invite", "--home", text(&home), "--uses", "1"]));
    let mut invited = RunningPeer::join(ticket.trim(), &[&["--home", text(&other)], &TASK[..]].concat());
    invited.wait_for("admitted");
    browser.wait_until("byId('notice').textContent.includes('One invited peer waits')");
    browser.picture("waiting");
    let plan = folder.path().join("plan.json");
    assert!(run(&["plan", "make", "--topology", "complete:n=2", "-o", text(&plan)]).status.success());
    let applied = run(&["plan", "apply", text(&plan), "--home", text(&home)]);
    assert!(applied.status.success(), "{}", stderr(&applied));
    browser.wait_until(&format!("{PICTURE}.querySelectorAll('.links path').length === 2"));
    browser.wait_until("Number(metric.textContent) > 0 && document.querySelector('#numbers').checkVisibility()");
    assert_quiet(&browser, &url);

    let stopped = run(&["stop", "--home", text(&home)]);
    assert!(stopped.status.success(), "{}", stderr(&stopped));
    browser.wait_until("state.textContent === 'stopped' && byId('notice').textContent.includes('has ended')");
    browser.picture("ended");
}
