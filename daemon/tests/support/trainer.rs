//! A trainer of the tests: the calls of the trainer protocol, each over a connection of its own, as `curl` would make
//! them.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The longest wait for a socket.
const PATIENCE: Duration = Duration::from_secs(60);

/// A trainer in twelve lines of shell: it moves nothing, and reports that with as many steps as are wanted.
pub(crate) const SHELL_TRAINER: &str = r#"
set -eu
call() { curl -s --fail-with-body --unix-socket "$MINGLE_HOME/mingle.sock" -H "Mingle-Session: ${session:-}" "$@"; }
header() { sed -n "s/^mingle-$1: //p" headers-$$ | tr -d '\r'; }
session=$(call http://localhost/v1/trainer/attach -d '{"protocol": 1, "name": "shell", "layout": [["x", [2]]], "initial": "offer"}' | sed 's/.*"session":"\([0-9a-f]*\)".*/\1/')
printf '\0\0\0\0\0\0\200\077' > initial-$$
call http://localhost/v1/trainer/initial -T initial-$$ || true
call 'http://localhost/v1/trainer/order' -D headers-$$ -o vector-$$
echo "the first order is to $(header kind)" >&2
while [ "$(header kind)" != end ]; do
  number=$(header order)
  head -c 8 /dev/zero | call "http://localhost/v1/trainer/exchange?order=${number:-0}&steps=$(header steps)" --data-binary @- -D headers-$$ -o vector-$$
done
od -An -tf4 vector-$$ | tee model-$$
"#;

/// The answer of a peer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn vector(&self) -> Vec<f32> {
        self.body.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
    }

    pub(crate) fn message(&self) -> String {
        self.json()["error"]["message"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn number(&self, header: &str) -> u64 {
        self.headers[header].parse().unwrap()
    }

    pub(crate) fn kind(&self) -> &str {
        self.headers.get("mingle-kind").map_or("", String::as_str)
    }
}

/// The bytes of a vector.
pub(crate) fn bytes(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Share of the way to its target that a trainer goes in a round. It falls, so that a peer that still trains when the
/// other has ended its rounds goes little further towards its own data.
fn step_size(round: u64) -> f32 {
    (0..round).fold(0.15, |rate, _| (rate * 0.98_f32).max(0.001))
}

/// The address at which a peer serves trainers over TCP, read from its home.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    /// IP and port.
    pub(crate) address: String,
    /// The token of each call; empty: none.
    pub(crate) token: String,
}

impl Access {
    /// The access to a peer that has reported its listen addresses.
    pub(crate) fn of(home: &Path) -> Self {
        let said: Value = serde_json::from_slice(&std::fs::read(home.join("trainer-tcp.json")).unwrap()).unwrap();
        let word = |key: &str| said[key].as_str().unwrap().to_owned();
        Self { address: word("url").strip_prefix("http://").unwrap().to_owned(), token: word("token") }
    }
}

/// A trainer of a vector of two numbers, which it moves towards a target.
pub(crate) struct Trainer {
    pub(crate) socket: PathBuf,
    /// Used in place of the socket, if there is one.
    pub(crate) tcp: Option<Access>,
    pub(crate) target: [f32; 2],
    pub(crate) session: String,
}

impl Trainer {
    pub(crate) fn new(home: &Path, target: [f32; 2]) -> Self {
        Self { socket: home.join("mingle.sock"), tcp: None, target, session: String::new() }
    }

    /// A trainer that connects over TCP.
    pub(crate) fn over_tcp(home: &Path, target: [f32; 2]) -> Self {
        Self { tcp: Some(Access::of(home)), ..Self::new(home, target) }
    }

    /// The message with which it attaches.
    pub(crate) fn introduction(&self) -> Value {
        json!({ "protocol": 1, "name": "two numbers", "layout": [["x", [1]], ["y", [1]]], "initial": "offer",
                "pid": std::process::id(), "client": "test" })
    }

    /// Makes one call; waits for the socket of a peer that is only starting.
    pub(crate) fn call(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.try_call(method, path, headers, body) {
                Ok(answer) => return answer,
                Err(error) if Instant::now() < until => {
                    // There is no signal for the socket.
                    std::thread::yield_now();
                    drop(error);
                }
                Err(error) => panic!("{method} {path}: {error}"),
            }
        }
    }

    pub(crate) fn try_call(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> std::io::Result<Answer> {
        let mut stream: Box<dyn Stream> = match &self.tcp {
            None => {
                let stream = UnixStream::connect(&self.socket)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                Box::new(stream)
            }
            Some(access) => {
                let stream = TcpStream::connect(&access.address)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                Box::new(stream)
            }
        };
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
        if let Some(access) = self.tcp.as_ref().filter(|access| !access.token.is_empty()) {
            head += &format!("Authorization: Bearer {}\r\n", access.token);
        }
        if !self.session.is_empty() {
            head += &format!("Mingle-Session: {}\r\n", self.session);
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += &format!("Content-Length: {}\r\n\r\n", body.len());
        stream.write_all(head.as_bytes())?;
        // A refusal may come before all of the body is sent.
        let _ = stream.write_all(body);
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        parse(&answer).ok_or_else(|| std::io::Error::other("the connection broke"))
    }

    /// Attaches, and sends the initial vector where that is wanted.
    pub(crate) fn attach(&mut self) -> Value {
        self.attach_as(&self.introduction())
    }

    /// Attaches with this message, and sends the initial vector where that is wanted.
    pub(crate) fn attach_as(&mut self, introduction: &Value) -> Value {
        let answer = self.call("POST", "/v1/trainer/attach", &[], introduction.to_string().as_bytes());
        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
        let attached = answer.json();
        attached["session"].as_str().unwrap().clone_into(&mut self.session);
        if attached["needs"] == "initial" {
            let begun = bytes(&self.target.map(|value| 10.0 * value));
            assert_eq!(self.call("PUT", "/v1/trainer/initial", &[], &begun).status, 204);
        }
        attached
    }

    /// The next order; asks again as long as there is none.
    pub(crate) fn order(&self) -> Answer {
        loop {
            let answer = self.call("GET", "/v1/trainer/order?wait=5", &[], &[]);
            if answer.status != 202 {
                return answer;
            }
        }
    }

    /// Answers an order to train with a step towards the target.
    pub(crate) fn answer(&self, order: &Answer) -> Answer {
        assert_eq!(order.kind(), "train", "{order:?}");
        let rate = step_size(order.number("mingle-round"));
        let change: Vec<f32> = order.vector().iter().zip(self.target).map(|(x, target)| rate * (target - x)).collect();
        let path = format!(
            "/v1/trainer/exchange?order={}&steps={}&wait=5",
            order.number("mingle-order"),
            order.number("mingle-steps")
        );
        self.call(
            "POST",
            &path,
            &[("Mingle-Loss", "0.5"), ("Mingle-Metrics", r#"{"distance": [2.5, 4]}"#)],
            &bytes(&change),
        )
    }

    /// Trains to the end of the run, and returns the final model. An order that was withdrawn while it was worked on, as by a
    /// stop, is answered with 409, and the present one is asked for.
    pub(crate) fn train(&self) -> Vec<f32> {
        let mut order = self.order();
        loop {
            order = match (order.status, order.kind()) {
                (202 | 409, _) => self.order(),
                (200, "end") => return order.vector(),
                (200, _) => self.answer(&order),
                _ => panic!("{}", String::from_utf8_lossy(&order.body)),
            };
        }
    }
}

/// A connection of either kind.
trait Stream: Read + Write {}

impl<T: Read + Write> Stream for T {}

fn parse(answer: &[u8]) -> Option<Answer> {
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let body = answer[end + 4..].to_vec();
    let mut lines = head.lines();
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let length: usize = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    (body.len() == length).then_some(Answer { status, headers, body })
}
