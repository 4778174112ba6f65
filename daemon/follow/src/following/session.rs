//! The stream to one member: requests, answers, and the bytes of models, which are checked before they count.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::{AsyncRead, AsyncReadExt};
use libp2p::{Multiaddr, PeerId, Stream};
use mingle_net::framed;
use mingle_net::transport::{Network, open_stream};
use mingle_patch::{ModelBytes, apply};

use crate::messages::{
    Ask, MAX_MEMBERS, MAX_PARTS, MAX_REPLY_BYTES, MAX_TASK_BYTES, ModelPart, PROTOCOL, Refusal, Reply, Update, Welcome,
};

/// Time limit for connecting to a member.
const REACH_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for an answer: three times the heartbeat of a member.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Time limit for the next bytes of a model.
const STANDSTILL: Duration = Duration::from_secs(30);
/// Bytes read at a time.
const CHUNK: usize = 64 << 10;
/// Largest model file, in bytes.
const MOST_MODEL_BYTES: u64 = 64 << 30;
/// Most bytes by which a patch may be longer than the model that it changes: its header.
const PATCH_SLACK: u64 = 16 << 20;

/// A stream to a member.
pub(super) struct Session {
    peer: PeerId,
    stream: Stream,
    /// Set after a welcome: the answer to the request is still to come.
    is_asked: bool,
}

/// An answer, with the model that it brought.
pub(super) enum Answer {
    Waiting,
    Welcome { task: String, members: Vec<(PeerId, Vec<Multiaddr>)> },
    Model { update: Update, file: Arc<ModelBytes>, is_patch: bool, received_bytes: u64 },
}

/// The end of a session.
#[derive(Debug)]
pub(super) enum SessionError {
    /// The member went away, or does not answer.
    Gone(String),
    /// The member refuses this follower.
    Refused(Refusal),
    /// The member sent something that leads to no model.
    Unfit(String),
}

impl Session {
    pub(super) async fn open(network: &Network, peer: PeerId, addresses: Vec<Multiaddr>) -> Result<Self, SessionError> {
        let reach = network.reach();
        let reaching = tokio::time::timeout(REACH_TIMEOUT, reach.connect(peer, addresses));
        if !matches!(reaching.await, Ok(true)) {
            return Err(SessionError::Gone("it cannot be reached".to_owned()));
        }
        let mut streams = network.streams.clone();
        match open_stream(&mut streams, peer, PROTOCOL).await {
            Ok(stream) => Ok(Self { peer, stream, is_asked: false }),
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                Err(SessionError::Unfit(format!("it does not speak {PROTOCOL}: it runs another release of Mingle")))
            }
            Err(error) => Err(SessionError::Gone(error.to_string())),
        }
    }

    pub(super) fn peer(&self) -> PeerId {
        self.peer
    }

    /// Asks for the next model, and reads the answer with all that belongs to it.
    pub(super) async fn exchange(&mut self, ask: &Ask, have: Option<&Arc<ModelBytes>>) -> Result<Answer, SessionError> {
        let is_asked = std::mem::take(&mut self.is_asked);
        let asking = async {
            if !is_asked {
                framed::write(&mut self.stream, ask).await?;
            }
            framed::read(&mut self.stream, MAX_REPLY_BYTES).await
        };
        let reply = match tokio::time::timeout(ANSWER_TIMEOUT, asking).await {
            Ok(reply) => reply.map_err(|error| broken(&error))?,
            Err(_) => return Err(SessionError::Gone("it does not answer".to_owned())),
        };
        match reply {
            Reply::Waiting => Ok(Answer::Waiting),
            Reply::Leaving => Err(SessionError::Gone("it ends before the training does".to_owned())),
            Reply::Refused(refusal) => Err(SessionError::Refused(refusal)),
            Reply::Welcome(welcome) => {
                self.is_asked = true;
                Ok(welcomed(welcome))
            }
            Reply::Update(update) => self.receive(update, have.cloned()).await,
        }
    }

    /// Reads the parts of a model, and puts them together.
    async fn receive(&mut self, update: Update, have: Option<Arc<ModelBytes>>) -> Result<Answer, SessionError> {
        if update.parts.len() > MAX_PARTS {
            return Err(unfit(format!("it sends a model in {} parts", update.parts.len())));
        }
        let is_patch = update.parts.iter().all(|part| matches!(part, ModelPart::Patch(_)));
        let received_bytes = update.parts.iter().fold(0, |sum: u64, part| sum.saturating_add(part.length()));
        let mut file = have;
        for part in &update.parts {
            let bytes = read_part(&mut self.stream, *part, file.as_deref()).await?;
            let before = file.take();
            let is_whole = matches!(part, ModelPart::Whole(_));
            // Large models take a while.
            let making = tokio::task::spawn_blocking(move || made(before.as_deref(), bytes, is_whole));
            file = Some(Arc::new(making.await.map_err(|error| unfit(error.to_string()))?.map_err(unfit)?));
        }
        match file {
            Some(file) if file.digest() == update.digest => {
                Ok(Answer::Model { update, file, is_patch, received_bytes })
            }
            _ => Err(unfit("the model that it sent is not the one that it named".to_owned())),
        }
    }
}

/// The model that a part leads to.
fn made(before: Option<&ModelBytes>, bytes: Vec<u8>, is_whole: bool) -> Result<ModelBytes, String> {
    match before {
        _ if is_whole => ModelBytes::parse(bytes).map_err(|error| error.to_string()),
        Some(before) => apply(before, &bytes).map_err(|error| error.to_string()),
        None => Err("it sent a patch where there is no model to change".to_owned()),
    }
}

/// Reads the bytes of a part. The buffer grows with what arrives: a length alone takes no memory.
async fn read_part<S: AsyncRead + Unpin>(
    stream: &mut S,
    part: ModelPart,
    before: Option<&ModelBytes>,
) -> Result<Vec<u8>, SessionError> {
    let most = match part {
        ModelPart::Whole(_) => MOST_MODEL_BYTES,
        ModelPart::Patch(_) => before.map_or(0, |before| before.bytes().len() as u64).saturating_add(PATCH_SLACK),
    };
    let length = part.length();
    if length > most {
        return Err(unfit(format!("it sends {length} bytes where {most} are the most")));
    }
    let mut bytes = Vec::new();
    let mut buffer = vec![0; CHUNK];
    while (bytes.len() as u64) < length {
        let left = usize::try_from(length - bytes.len() as u64).map_or(CHUNK, |left| left.min(CHUNK));
        let reading = tokio::time::timeout(STANDSTILL, stream.read(&mut buffer[..left]));
        match reading.await {
            Ok(Ok(0)) => return Err(SessionError::Gone("it went away in the middle of a model".to_owned())),
            Ok(Ok(count)) => bytes.extend_from_slice(&buffer[..count]),
            Ok(Err(error)) => return Err(broken(&error)),
            Err(_) => return Err(SessionError::Gone("it stopped sending in the middle of a model".to_owned())),
        }
    }
    Ok(bytes)
}

fn welcomed(Welcome { mut task, members }: Welcome) -> Answer {
    task.truncate(task.floor_char_boundary(MAX_TASK_BYTES));
    let members = members.into_iter().take(MAX_MEMBERS);
    let members = members.filter_map(|(peer, addresses)| Some((PeerId::from_bytes(&peer).ok()?, addresses)));
    Answer::Welcome { task, members: members.collect() }
}

fn unfit(reason: String) -> SessionError {
    SessionError::Unfit(reason)
}

fn broken(error: &io::Error) -> SessionError {
    match error.kind() {
        io::ErrorKind::InvalidData => SessionError::Unfit(format!("it sent something that is no answer: {error}")),
        _ => SessionError::Gone("the connection to it was lost".to_owned()),
    }
}
