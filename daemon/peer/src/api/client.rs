//! Client of the local interface, for the commands that watch and steer a peer.

use std::time::Duration;

use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;

use super::socket;
use crate::error::{Context, Error, ErrorKind, Result};
use crate::home::Home;
use crate::last_run::LastRun;

/// Largest answer: a thousand neighbours take half of this.
const MAX_ANSWER_BYTES: usize = 4 << 20;
/// Largest event or snapshot in a stream.
const MAX_STREAM_LINE_BYTES: usize = 4 << 20;
/// Timeout of an answer; opening a stream counts as answering.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);

/// A client of one peer, which need not be running.
#[derive(Clone, Debug)]
pub struct Client {
    home: Home,
    patience: Duration,
}

/// A stream of JSON objects from a peer.
pub struct JsonLines {
    body: Incoming,
    buffer: Vec<u8>,
}

impl Client {
    /// A client of the peer in this home. No connection is made before the first request.
    pub fn new(home: &Home) -> Self {
        Self { home: home.clone(), patience: ANSWER_TIMEOUT }
    }

    /// Requests an object.
    ///
    /// # Errors
    /// [`ErrorKind::Unreachable`] if no peer runs there, or the peer's own error if it refuses.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.object(Method::GET, path).await
    }

    /// Requests an action, whose answer is an object.
    pub async fn post<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.object(Method::POST, path).await
    }

    /// The client with another timeout, for requests that take longer.
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Opens a stream.
    pub async fn follow(&self, path: &str) -> Result<JsonLines> {
        let response = self.ask(Method::GET, path).await?;
        if response.status() != StatusCode::OK {
            return Err(refusal(&read(response).await?));
        }
        Ok(JsonLines { body: response.into_body(), buffer: Vec::new() })
    }

    async fn object<T: DeserializeOwned>(&self, method: Method, path: &str) -> Result<T> {
        let response = self.ask(method, path).await?;
        let is_fine = response.status() == StatusCode::OK;
        let bytes = read(response).await?;
        if !is_fine {
            return Err(refusal(&bytes));
        }
        serde_json::from_slice(&bytes).context(ErrorKind::Unexpected, "the peer answers something else than was asked")
    }

    async fn ask(&self, method: Method, path: &str) -> Result<Response<Incoming>> {
        let asked = async {
            let stream = socket::connect(&self.home).await.map_err(|error| self.nobody(&error))?;
            let broken = "the connection to the peer broke";
            let (mut sender, connection) =
                http1::handshake(TokioIo::new(stream)).await.context(ErrorKind::Unreachable, broken)?;
            // The connection ends with the answer, or with the stream.
            tokio::spawn(connection);
            let request =
                Request::builder().method(method).uri(path).header("host", "localhost").body(Empty::<Bytes>::new());
            let request = request.context(ErrorKind::Unexpected, "cannot ask the peer")?;
            sender.send_request(request).await.context(ErrorKind::Unreachable, broken)
        };
        tokio::time::timeout(self.patience, asked).await.unwrap_or_else(|_| {
            Err(Error::new(
                ErrorKind::Unreachable,
                format!("the peer in {} does not answer", self.home.root().display()),
            ))
        })
    }

    fn nobody(&self, error: &std::io::Error) -> Error {
        let home = self.home.root().display();
        if error.kind() == std::io::ErrorKind::PermissionDenied {
            return Error::new(ErrorKind::Unreachable, format!("the peer in {home} belongs to another user"))
                .hint("ask as the user that runs it");
        }
        let socket = self.home.present_socket();
        if error.kind() == std::io::ErrorKind::InvalidInput && socket.exists() {
            let message = format!("the path {} is too long for a socket", socket.display());
            return Error::new(ErrorKind::Unreachable, message)
                .hint("name the home by a shorter path, as its peer does: relative to the folder that it is in");
        }
        match LastRun::of(&self.home) {
            Some(LastRun { end, hint }) => {
                Error::new(ErrorKind::Unreachable, format!("no peer runs in {home}: {end}")).hint(hint)
            }
            None => Error::new(ErrorKind::Unreachable, format!("no peer runs in {home}"))
                .hint("mingle run starts one; --home DIR names the home of another"),
        }
    }
}

impl JsonLines {
    /// The next object as text; `None` when the stream has ended.
    pub async fn next(&mut self) -> Option<String> {
        loop {
            while let Some(line) = take_line(&mut self.buffer) {
                if let Some(data) = line.strip_prefix("data: ").or_else(|| line.strip_prefix("data:")) {
                    return Some(data.to_owned());
                }
            }
            // A killed peer breaks the stream, which counts as its end.
            let frame = self.body.frame().await?.ok()?;
            if let Ok(bytes) = frame.into_data() {
                self.buffer.extend_from_slice(&bytes);
            }
            if self.buffer.len() > MAX_STREAM_LINE_BYTES {
                return None;
            }
        }
    }
}

/// Takes the first whole line out of the buffer.
fn take_line(buffer: &mut Vec<u8>) -> Option<String> {
    let end = buffer.iter().position(|byte| *byte == b'\n')?;
    let line: Vec<u8> = buffer.drain(..=end).collect();
    Some(String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']).to_owned())
}

async fn read(response: Response<Incoming>) -> Result<Bytes> {
    let body = Limited::new(response.into_body(), MAX_ANSWER_BYTES).collect();
    let body = tokio::time::timeout(ANSWER_TIMEOUT, body).await;
    let body = body.context(ErrorKind::Unreachable, "the peer does not finish its answer")?;
    Ok(body.context(ErrorKind::Unreachable, "cannot read the peer's answer")?.to_bytes())
}

/// The error in a peer's refusal.
fn refusal(bytes: &[u8]) -> Error {
    let object: serde_json::Value = serde_json::from_slice(bytes).unwrap_or_default();
    let error = &object["error"];
    let message = error["message"].as_str().unwrap_or("the peer refuses, and does not say why");
    let kind = error["code"].as_u64().and_then(ErrorKind::of_code).unwrap_or(ErrorKind::Refused);
    let failure = Error::new(kind, message);
    match error["hint"].as_str() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// Runs a command that communicates with a peer.
pub fn block_on<T>(command: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context(ErrorKind::Unexpected, "cannot start the event loop")?.block_on(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_taken_whole_however_they_arrive() {
        let mut buffer = b"id: 3\r\ndata: {\"a\"".to_vec();
        assert_eq!(take_line(&mut buffer).as_deref(), Some("id: 3"));
        assert_eq!(take_line(&mut buffer), None);
        buffer.extend_from_slice(b":1}\n\n");
        assert_eq!(take_line(&mut buffer).as_deref(), Some("data: {\"a\":1}"));
        assert_eq!(take_line(&mut buffer).as_deref(), Some(""));
        assert_eq!(take_line(&mut buffer), None);
    }
}
