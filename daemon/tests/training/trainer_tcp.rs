//! Trainers that reach their peer over TCP, with a token from its home.
#![cfg(unix)]

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;

use crate::support::pair::Pair;
use crate::support::planned_swarm::ONE;
use crate::support::trainer::{Access, Answer, Trainer};
use crate::support::{assert_fails, audit, run, status, text};
use serde_json::json;

/// Longer than any test takes.
const ENDLESS: [&str; 6] = ["--trainer", "attach", "--trainer-tcp", "127.0.0.1:0", "--rounds", "1000000"];
/// More than a listener serves at a time.
const CROWD: usize = 80;

/// A trainer in a shell script that knows nothing of the home.
const SHELL_TRAINER: &str = r#"
set -eu
unset MINGLE_HOME
call() { path=$1; shift; curl -s --fail-with-body -H "Authorization: Bearer $MINGLE_TRAINER_TOKEN" -H "Mingle-Session: ${session:-}" "$MINGLE_TRAINER_URL$path" "$@"; }
header() { sed -n "s/^mingle-$1: //p" headers-$$ | tr -d '\r'; }
session=$(call /v1/trainer/attach -d '{"protocol": 1, "name": "shell", "layout": [["x", [2]]], "initial": "offer"}' | sed 's/.*"session":"\([0-9a-f]*\)".*/\1/')
printf '\0\0\0\0\0\0\200\077' > initial-$$
call /v1/trainer/initial -T initial-$$ || true
call /v1/trainer/order -D headers-$$ -o vector-$$
echo "the first order is to $(header kind)" >&2
while [ "$(header kind)" != end ]; do
  number=$(header order)
  head -c 8 /dev/zero | call "/v1/trainer/exchange?order=${number:-0}&steps=$(header steps)" --data-binary @- -D headers-$$ -o vector-$$
done
"#;

#[test]
fn a_trainer_with_curl_trains_over_tcp_to_the_end_of_the_run() {
    let pair = Pair::new();
    let script = pair.file("trainer.sh");
    fs::write(&script, SHELL_TRAINER).unwrap();
    let command = format!("cd {} && sh trainer.sh", text(script.parent().unwrap()));
    let mut peers = pair.start(&["--trainer", &command, "--trainer-tcp", "127.0.0.1:0", "--rounds", "12"]);
    for (node, peer) in peers.iter_mut().enumerate() {
        assert_eq!(peer.wait_for("trainer_said")["line"], "the first order is to train");
        assert_eq!(peer.wait_through_rounds_for("done")["round"], 12);
        assert_eq!(peer.exit_code(), Some(0));
        let file = pair.home(node).join("trainer-tcp.json");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let report = audit(&pair.homes());
    assert_eq!((&report["verdict"], &report["sum_units"]), (&"exact".into(), &(2 * ONE).into()), "{report:#}");
}

#[test]
fn trainers_over_tcp_and_over_the_socket_meet_at_the_model_that_fits_both() {
    let pair = Pair::new();
    let mut peers = pair.start(&["--trainer", "attach", "--trainer-tcp", "127.0.0.1:0", "--rounds", "150"]);
    for peer in &mut peers {
        peer.wait_for("waiting_for_trainer");
    }
    let mut trainers = [Trainer::over_tcp(&pair.home(0), [0.0, 3.0]), Trainer::new(&pair.home(1), [4.0, 1.0])];
    trainers.iter_mut().for_each(|trainer| drop(trainer.attach()));
    let models = std::thread::scope(|scope| {
        trainers.each_ref().map(|trainer| scope.spawn(|| trainer.train())).map(|it| it.join().unwrap())
    });
    let mean = [0, 1].map(|index| f32::midpoint(models[0][index], models[1][index]));
    assert!(mean.iter().all(|value| (value - 2.0).abs() < 0.2), "{models:?}");
    for peer in &mut peers {
        peer.wait_through_rounds_for("done");
        assert_eq!(peer.exit_code(), Some(0));
    }
}

fn ask(access: &Access, method: &str, path: &str) -> Answer {
    let trainer = Trainer { tcp: Some(access.clone()), ..Trainer::new("nowhere".as_ref(), [0.0; 2]) };
    trainer.call(method, path, &[], b"")
}

#[test]
fn only_who_shows_the_token_is_served_and_nothing_steers_the_peer() {
    let pair = Pair::new();
    let mut peer = pair.start_first(&ENDLESS);
    let said = peer.wait_for("interface");
    peer.wait_for("waiting_for_trainer");
    let access = Access::of(&pair.home(0));
    assert_eq!(said["trainer"], format!("http://{}", access.address), "{said}");
    let other = format!("{:064x}", 7);
    for token in [String::new(), "abc".to_owned(), other] {
        let stranger = Access { token, ..access.clone() };
        for (method, path) in [("GET", "/v1/trainer"), ("GET", "/v1/status"), ("POST", "/v1/stop"), ("GET", "/nothing")]
        {
            let answer = ask(&stranger, method, path);
            assert_eq!(answer.status, 401, "{method} {path}: {answer:?}");
            assert_eq!(answer.headers["www-authenticate"], "Bearer");
            let hint = answer.json()["error"]["hint"].as_str().unwrap().to_owned();
            assert!(hint.contains("Authorization: Bearer TOKEN") && hint.contains("trainer-tcp.json"), "{hint}");
        }
    }
    assert_eq!(ask(&access, "GET", "/v1/trainer").json()["waiting_for"], "a trainer");
    assert_eq!(ask(&access, "GET", "/v1/status").json()["state"], "waiting_for_trainer");
    assert_eq!(ask(&access, "POST", "/v1/status").status, 405);
    for (method, path) in [
        ("POST", "/v1/stop"),
        ("POST", "/v1/leave"),
        ("POST", "/v1/measure"),
        ("GET", "/v1/known"),
        ("GET", "/v1/events"),
        ("GET", "/v1/peers"),
        ("GET", "/metrics"),
        ("GET", "/"),
    ] {
        assert_eq!(ask(&access, method, path).status, 404, "{method} {path}");
    }
    assert_eq!(status(&pair.home(0))["state"], "waiting_for_trainer", "nothing of that has stopped it");
    // The socket is its owner's, and wants no token.
    assert_eq!(Trainer::new(&pair.home(0), [0.0; 2]).call("GET", "/v1/trainer", &[], b"").status, 200);
}

#[test]
fn slow_clients_over_tcp_take_no_place_from_the_socket() {
    let pair = Pair::new();
    let mut peer = pair.start_first(&ENDLESS);
    peer.wait_for("waiting_for_trainer");
    let access = Access::of(&pair.home(0));
    let mut crowd: Vec<TcpStream> = (0..CROWD).map(|_| TcpStream::connect(&access.address).unwrap()).collect();
    for slow in &mut crowd {
        slow.write_all(b"POST /v1/trainer/attach HTTP/1.1\r\nHost: ").unwrap();
    }
    let mut trainer = Trainer::new(&pair.home(0), [1.0, 2.0]);
    trainer.attach();
    assert_eq!(status(&pair.home(0))["trainer"]["attached"], json!(trainer_name()));
    // A client that sends no whole request is cut off, so that there is a place over TCP again.
    assert_eq!(ask(&access, "GET", "/v1/trainer").status, 200);
    let mut rest = Vec::new();
    // An answer, the end of the connection, or a reset.
    let _ = crowd[0].read_to_end(&mut rest);
    assert!(!rest.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&rest));
}

fn trainer_name() -> String {
    format!("test, process {}", std::process::id())
}

#[test]
fn a_token_outlives_its_peer_until_one_is_started_without_tcp() {
    let pair = Pair::new();
    let start = |arguments: &[&str]| {
        let mut peer = pair.start_first(arguments);
        peer.wait_for("waiting_for_trainer");
        peer
    };
    let first = start(&ENDLESS);
    let token = Access::of(&pair.home(0)).token;
    drop(first);
    let second = start(&ENDLESS);
    let access = Access::of(&pair.home(0));
    assert_eq!(access.token, token);
    assert_eq!(ask(&access, "GET", "/v1/trainer").status, 200);
    drop(second);
    let third = start(&["--trainer", "attach", "--rounds", "1000000"]);
    assert!(!pair.home(0).join("trainer-tcp.json").exists());
    drop(third);
}

#[test]
fn an_address_beyond_this_machine_is_warned_of_and_one_that_cannot_be_is_refused() {
    let pair = Pair::new();
    let everywhere = ["--trainer", "attach", "--trainer-tcp", "0.0.0.0:0", "--rounds", "1000000"];
    let mut peer = pair.start_first(&everywhere);
    let warning = peer.wait_for_warning("not encrypted");
    assert!(warning.contains("127.0.0.1 keeps it"), "{warning}");
    let access = Access::of(&pair.home(0));
    assert!(access.address.starts_with("127.0.0.1:"), "{access:?}");
    assert_eq!(ask(&access, "GET", "/v1/trainer").status, 200);
    drop(peer);
    let (home, plan) = (pair.home(0), pair.plan());
    let peer =
        ["run", "--home", text(&home), "--plan", text(&plan), "--listen", "/ip4/127.0.0.1/tcp/0", "--trainer-tcp"];
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let with_trainer = [&peer[..], &[&address, "--trainer", "attach"]].concat();
    assert_fails(&run(&with_trainer), 3, &["cannot listen on --trainer-tcp", &address]);
    assert_fails(
        &run(&[&peer[..], &["127.0.0.1:0"]].concat()),
        4,
        &["--trainer-tcp is about another program", "--trainer attach"],
    );
    assert_fails(&run(&[&peer[..], &["here", "--trainer", "attach"]].concat()), 2, &["--trainer-tcp"]);
}
