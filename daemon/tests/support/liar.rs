//! A member that this process plays towards a sound peer: it greets properly, and then sends arbitrary messages, or
//! plays on with perfect books and a conduct that is none of a sound member.

use std::path::Path;

use futures::{AsyncReadExt, AsyncWriteExt, StreamExt};
use libp2p::identity::Keypair;
use libp2p::{Multiaddr, Stream};
use mingle_protocol::wire::{MessageReader, encode};
use mingle_protocol::{
    Ack, Chain, Evidence, Hello, Incarnation, Keys, LeaveCertificate, LinkPositions, Mac, Message, NodeId,
    PROTOCOL_VERSION, Parcel, ParcelHeader, Payload, Signature, SignedIdentity,
};
use tokio::runtime::Runtime;

use crate::support::played_peers::{Connection, EDGE, PATIENCE, framed, greeting};
use crate::support::{run, stdout, text};

/// Parameters of the softmax model for digits.
pub(crate) const DIMENSION: usize = 650;

/// The place of a played member in a plan.
#[derive(Clone)]
pub(crate) struct Part {
    pub(crate) node: NodeId,
    pub(crate) key: Keypair,
    pub(crate) plan_hash: [u8; 32],
}

impl Part {
    /// The place of the member whose key is in this home.
    pub(crate) fn of_home(node: usize, home: &Path, plan: &Path) -> Self {
        let node = NodeId(u32::try_from(node).unwrap());
        Self { node, key: key_of(home), plan_hash: hash_of(plan) }
    }
}

/// The key of a peer.
pub(crate) fn key_of(home: &Path) -> Keypair {
    Keypair::from_protobuf_encoding(&std::fs::read(home.join("identity.key")).unwrap()).unwrap()
}

/// The hash of a plan, as `mingle plan show` prints it.
pub(crate) fn hash_of(plan: &Path) -> [u8; 32] {
    let shown = stdout(&run(&["plan", "show", text(plan)]));
    let mut hash = [0; 32];
    hex::decode_to_slice(&shown.split("blake3:").nth(1).unwrap()[..64], &mut hash).unwrap();
    hash
}

/// The key of a played peer.
#[derive(Debug)]
pub(crate) struct OwnKey(pub(crate) Keypair);

impl Keys for OwnKey {
    fn sign(&self, statement: &[u8]) -> Signature {
        <[u8; 64]>::try_from(self.0.sign(statement).unwrap()).unwrap().into()
    }

    fn is_signed(&self, _: NodeId, _: &[u8], _: &Signature) -> bool {
        unreachable!("it lies, and checks nothing")
    }

    fn mac(&self, _: &[u8]) -> Mac {
        Mac::default()
    }
}

/// A member that keeps to the protocol until it has been greeted.
pub(crate) struct Liar {
    node: NodeId,
    /// The stream on which it sends, and is answered.
    pub(crate) stream: Stream,
    /// The stream on which the sound peer sends its parcels.
    incoming: Stream,
    reader: MessageReader,
    pub(crate) greeting: Hello,
    pub(crate) keys: OwnKey,
}

/// Reads until a message comes that is wanted.
async fn hear<T>(stream: &mut Stream, reader: &mut MessageReader, wanted: impl Fn(Message) -> Option<T>) -> T {
    let mut buffer = [0; 4096];
    loop {
        let read = tokio::time::timeout(PATIENCE, stream.read(&mut buffer)).await.unwrap().unwrap();
        assert!(read > 0, "it closed the stream");
        if let Some(found) = reader.feed(&buffer[..read]).unwrap().into_iter().find_map(&wanted) {
            return found;
        }
    }
}

impl Liar {
    pub(crate) const ME: Incarnation = Incarnation { incarnation: 1, boot_nonce: 7 };

    pub(crate) async fn meet(part: &Part, address: Multiaddr) -> Self {
        let mut connection = Connection::open(part.key.clone(), address).await;
        let mut coming = connection.control.accept(EDGE).unwrap();
        let mut stream = connection.stream(&EDGE).await.unwrap();
        stream.write_all(&framed(&greeting(part.plan_hash))).await.unwrap();
        stream.flush().await.unwrap();
        let mut answer = [0; 5];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(answer, [1, 0, 0, 0, 0], "no objection");
        let (_, mut incoming) = tokio::time::timeout(PATIENCE, coming.next()).await.unwrap().unwrap();
        let mut length = [0; 4];
        incoming.read_exact(&mut length).await.unwrap();
        let mut theirs = vec![0; u32::from_le_bytes(length) as usize];
        incoming.read_exact(&mut theirs).await.unwrap();
        incoming.write_all(&framed(&[0])).await.unwrap();
        incoming.flush().await.unwrap();
        let mut reader = MessageReader::new(DIMENSION);
        let greeting = hear(&mut stream, &mut reader, |message| match message {
            Message::Hello(hello) => Some(*hello),
            _ => None,
        });
        let greeting = greeting.await;
        Self { node: part.node, stream, incoming, reader, greeting, keys: OwnKey(part.key.clone()) }
    }

    /// Reads its answers until one comes that is wanted.
    pub(crate) async fn hear<T>(&mut self, wanted: impl Fn(Message) -> Option<T>) -> T {
        hear(&mut self.stream, &mut self.reader, wanted).await
    }

    pub(crate) fn hello(&self, passed: u64) -> Message {
        Message::Hello(Box::new(self.greets(self.greeting.identity, passed)))
    }

    /// A Hello to a neighbour of which it knows this identity.
    pub(crate) fn greets(&self, seen: SignedIdentity, passed: u64) -> Hello {
        Hello {
            version: PROTOCOL_VERSION,
            generation: self.greeting.generation,
            task: self.greeting.task.clone(),
            identity: SignedIdentity::sign(self.node, &self.greeting.generation, Self::ME, &self.keys),
            seen: Some(seen),
            resumed: false,
            link: LinkPositions { next_seq: 1, passed, ..LinkPositions::default() },
            evidence: Evidence::default(),
        }
    }

    /// A Hello that claims to have seen a later life of its neighbour, without a statement that this one signed.
    pub(crate) fn greets_later_life(&self, later_lives: u64) -> Message {
        let mut seen = self.greeting.identity;
        seen.identity.incarnation += later_lives;
        Message::Hello(Box::new(self.greets(seen, 0)))
    }

    /// A false certificate that a member has left, in its life of this number.
    pub(crate) fn departure(&self, leaver: NodeId, incarnation: u64) -> Message {
        let generation = self.greeting.generation;
        let signature = Signature::default();
        let certificate =
            LeaveCertificate { generation, leaver, incarnation, ends: Vec::new(), evidence: Vec::new(), signature };
        Message::Left(certificate.signed(&self.keys))
    }

    pub(crate) fn ack(&self, later_lives: u64, passed: u64) -> Message {
        let Incarnation { incarnation, boot_nonce } = self.greeting.identity.identity;
        let seen = Incarnation { incarnation: incarnation + later_lives, boot_nonce };
        let link = LinkPositions { next_seq: 1, passed, ..LinkPositions::default() };
        self.acks(seen, link)
    }

    fn acks(&self, seen: Incarnation, link: LinkPositions) -> Message {
        Message::Ack(Ack { generation: self.greeting.generation, identity: Self::ME, seen, link })
    }

    /// Sends all of this in one write. Whether the other side still reads is up to that side.
    pub(crate) async fn say(&mut self, messages: impl IntoIterator<Item = Message>) {
        let mut bytes = Vec::new();
        for message in messages {
            encode(message).slices().for_each(|slice| bytes.extend_from_slice(slice));
        }
        let _ = tokio::time::timeout(PATIENCE, self.stream.write_all(&bytes)).await.expect("it takes or closes");
        let _ = self.stream.flush().await;
    }

    /// Plays on until the sound peer closes its streams: takes and acknowledges all its parcels, in every step that this
    /// peer passes.
    pub(crate) async fn play(mut self, conduct: Conduct) {
        let mut books = LinkBooks::default();
        let mut parcels = MessageReader::new(DIMENSION);
        let hello = self.hello(conduct.claim(0));
        self.say([hello]).await;
        let seen = self.greeting.identity.identity;
        let (mut answers, mut bulk) = ([0; 4096], [0; 1 << 14]);
        loop {
            let messages = tokio::select! {
                read = self.stream.read(&mut answers) => match read {
                    Ok(count) if count > 0 => self.reader.feed(&answers[..count]).unwrap(),
                    _ => return,
                },
                read = self.incoming.read(&mut bulk) => match read {
                    Ok(count) if count > 0 => parcels.feed(&bulk[..count]).unwrap(),
                    _ => return,
                },
            };
            let before = books.state;
            let mut words = Vec::new();
            for message in messages {
                if let Some(parcel) = books.hear(&message, &conduct, seen.incarnation) {
                    words.push(Message::Parcel(parcel));
                }
            }
            if books.state != before {
                let link = LinkPositions { passed: conduct.claim(books.state.passed), ..books.state };
                words.push(self.acks(seen, link));
            }
            if !words.is_empty() {
                self.say(words).await;
            }
        }
    }
}

/// The conduct of a member whose books are in order.
#[derive(Clone)]
pub(crate) enum Conduct {
    /// It takes parcels, and gives none.
    Takes,
    /// It gives the weight of each parcel back at once, with this model.
    Returns(Payload),
    /// It takes parcels, and claims to have passed so many steps.
    Claims(u64),
}

impl Conduct {
    /// The number of steps that it claims to have passed, where the neighbour has passed `theirs`.
    fn claim(&self, theirs: u64) -> u64 {
        if let Self::Claims(steps) = self { *steps } else { theirs }
    }
}

/// The played end of both links with a sound peer.
#[derive(Default)]
struct LinkBooks {
    state: LinkPositions,
    chain: Chain,
}

impl LinkBooks {
    /// Books a message of the sound peer; returns the parcel to answer it with, if any.
    fn hear(&mut self, message: &Message, conduct: &Conduct, life: u64) -> Option<Parcel> {
        self.state.next_seq = self.state.next_seq.max(1);
        match message {
            Message::Parcel(parcel) => {
                let ParcelHeader { seq, step, chain, .. } = parcel.header;
                if seq != self.state.received + 1 {
                    return None;
                }
                (self.state.received, self.state.applied, self.state.applied_chain) = (seq, seq, chain);
                self.state.passed = self.state.passed.max(step + 1);
                let Conduct::Returns(model) = conduct else { return None };
                Some(self.next_parcel(&parcel.header, life, model))
            }
            Message::Ack(Ack { link, .. }) => {
                self.note(link, conduct);
                None
            }
            Message::Hello(hello) => {
                self.note(&hello.link, conduct);
                None
            }
            Message::Left(_) | Message::Process(_) | Message::Collective(_) => None,
        }
    }

    /// Claims to know of the others what the sound peer knows. Without parcels of its own it passes the steps that the
    /// sound peer has passed.
    fn note(&mut self, theirs: &LinkPositions, conduct: &Conduct) {
        if !matches!(conduct, Conduct::Returns(_)) {
            self.state.passed = self.state.passed.max(theirs.passed);
        }
        (self.state.left, self.state.processes) = (theirs.left, theirs.processes);
    }

    /// A parcel of the step and weight of one that came.
    fn next_parcel(&mut self, theirs: &ParcelHeader, life: u64, model: &Payload) -> Parcel {
        let ParcelHeader { generation, step, mass, .. } = *theirs;
        let (seq, previous) = (self.state.next_seq, self.chain);
        // Any chain will do, if no other parcel has it.
        self.chain = Chain([seq.to_le_bytes(); 4].concat().try_into().unwrap());
        self.state.next_seq += 1;
        let header = ParcelHeader {
            generation,
            sender_incarnation: Liar::ME.incarnation,
            receiver_incarnation: life,
            base: 0,
            acked: 0,
            seq,
            previous,
            chain: self.chain,
            step,
            mass,
            mac: Mac::default(),
        };
        Parcel { header, payload: model.clone() }
    }
}

/// Plays one member towards all these peers, after `first` was said to each of them. It goes on in the background until
/// the returned runtime is dropped.
#[must_use]
pub(crate) fn play(
    part: &Part,
    addresses: &[Multiaddr],
    conduct: &Conduct,
    first: impl Fn(&Liar) -> Vec<Message>,
) -> Runtime {
    let runtime = Runtime::new().unwrap();
    for address in addresses {
        let mut liar = runtime.block_on(Liar::meet(part, address.clone()));
        let conduct = conduct.clone();
        let first = first(&liar);
        runtime.spawn(async move {
            liar.say(first).await;
            Box::pin(liar.play(conduct)).await;
        });
    }
    runtime
}
