//! A follower of a member that sends other things than it says: nothing but whole, checked models comes out.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use futures::{AsyncWriteExt, StreamExt};
use libp2p::identity::Keypair;
use libp2p::{Multiaddr, PeerId};
use libp2p_metrics::Registry;
use mingle_follow::following::{FollowOptions, Followed, FollowedModel, Follower};
use mingle_follow::messages::{Ask, ModelPart, PROTOCOL, Refusal, Reply, Update, Welcome};
use mingle_home::error::ErrorKind;
use mingle_membership::{SecretInvite, Signer, SwarmIdentity, Ticket};
use mingle_net::framed;
use mingle_net::transport::{Network, NetworkOptions};
use mingle_patch::{ModelBytes, encode};
use mingle_training::Layout;
use tokio::sync::mpsc;

/// An answer of the member, with the bytes that follow it.
type Answer = (Reply, Vec<u8>);

/// A member that gives these answers, one for each request, over any number of streams.
struct Member {
    ticket: Ticket,
    peer: PeerId,
    asked: mpsc::UnboundedReceiver<Ask>,
    _network: Network,
}

impl Member {
    async fn start(answers: Vec<Answer>) -> Self {
        let key = Keypair::generate_ed25519();
        let peer = key.public().to_peer_id();
        let swarm = SwarmIdentity::found("ward7", peer).unwrap();
        let signer = Signer::new(swarm.clone(), key.clone()).unwrap();
        let invite = SecretInvite::sign(&signer, 1, Duration::from_secs(600)).unwrap();
        let listen: [Multiaddr; 1] = ["/ip4/127.0.0.1/tcp/0".parse().unwrap()];
        let options = NetworkOptions { listen: &listen, ..NetworkOptions::default() };
        let (network, mut events) = Network::start(&key, &options, &mut Registry::default()).await.unwrap();
        tokio::spawn(async move { while events.recv().await.is_some() {} });
        let ticket = Ticket::new(swarm, invite, network.addresses.clone());
        let mut incoming = network.streams.clone().accept(PROTOCOL).unwrap();
        let (sender, asked) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let mut answers = answers.into_iter();
            while let Some((_, mut stream)) = incoming.next().await {
                while let Ok(ask) = framed::read::<Ask, _>(&mut stream, 8 << 10).await {
                    sender.send(ask).unwrap();
                    let Some((reply, bytes)) = answers.next() else { return };
                    framed::write(&mut stream, &reply).await.unwrap();
                    // The follower may have closed the stream.
                    let _ = stream.write_all(&bytes).await;
                    let _ = stream.flush().await;
                }
            }
        });
        Self { ticket, peer, asked, _network: network }
    }

    async fn follower(&self) -> Follower {
        let options = FollowOptions { patience: Duration::from_secs(20), ..FollowOptions::default() };
        Follower::start(&Keypair::generate_ed25519(), &self.ticket, options).await.unwrap()
    }
}

fn file(value: f32) -> ModelBytes {
    ModelBytes::parse(Layout::flat(100).encoder()(&[value; 100]).unwrap()).unwrap()
}

fn update(round: u64, file: &ModelBytes, parts: &[ModelPart]) -> Reply {
    let digest = file.digest();
    Reply::Update(Update { round, last_round: 9, digest, is_final: false, parts: parts.to_vec() })
}

/// A model sent whole.
fn whole(round: u64, file: &ModelBytes) -> Answer {
    (update(round, file, &[ModelPart::Whole(file.bytes().len() as u64)]), file.bytes().to_vec())
}

async fn model(follower: &mut Follower) -> FollowedModel {
    match follower.next().await.unwrap() {
        Followed::Model(model) => model,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_patch_that_does_not_fit_is_answered_by_a_request_for_the_whole_model() {
    let [one, two, three, four] = [1.0, 2.0, 3.0, 4.0].map(file);
    let patch = encode(&one, &two).unwrap();
    let of_others = encode(&three, &four).unwrap();
    let part = |patch: &[u8]| [ModelPart::Patch(patch.len() as u64)];
    let mut member = Member::start(vec![
        whole(1, &one),
        (update(2, &two, &part(&patch)), patch.clone()),
        (Reply::Waiting, Vec::new()),
        (update(4, &four, &part(&of_others)), of_others.clone()),
        whole(4, &four),
    ])
    .await;
    let mut follower = member.follower().await;
    let first = model(&mut follower).await;
    assert_eq!((first.round, first.is_patch, first.file.bytes()), (1, false, one.bytes()));
    let second = model(&mut follower).await;
    assert_eq!((second.round, second.is_patch, second.file.bytes()), (2, true, two.bytes()));
    assert_eq!(second.received_bytes, patch.len() as u64);
    match follower.next().await.unwrap() {
        Followed::Unfit { peer, reason } => {
            assert!(peer == member.peer && reason.contains("the patch is from"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
    let last = model(&mut follower).await;
    assert_eq!((last.round, last.is_patch, last.file.bytes()), (4, false, four.bytes()));
    let mut have = Vec::new();
    while let Ok(ask) = member.asked.try_recv() {
        have.push(ask.have);
    }
    assert_eq!(have[..5], [None, Some(one.digest()), Some(two.digest()), Some(two.digest()), None]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_sends_no_model_is_left_for_good() {
    let (one, two) = (file(1.0), file(2.0));
    let claims_much = (update(1, &one, &[ModelPart::Whole(u64::MAX)]), Vec::new());
    let long_patch = (update(1, &one, &[ModelPart::Patch(1 << 40)]), Vec::new());
    let too_many = (update(1, &one, &vec![ModelPart::Patch(1); 1000]), Vec::new());
    let another = (update(1, &two, &[ModelPart::Whole(one.bytes().len() as u64)]), one.bytes().to_vec());
    let no_file = (update(1, &one, &[ModelPart::Whole(4)]), b"poem".to_vec());
    let refused = (Reply::Refused(Refusal::NoModel), Vec::new());
    for (answer, words) in [
        (claims_much, "are the most"),
        (long_patch, "are the most"),
        (too_many, "in 1000 parts"),
        (another, "not the one that it named"),
        (no_file, "no safetensors file"),
        (refused, "solves a problem"),
    ] {
        let member = Member::start(vec![answer]).await;
        let mut follower = member.follower().await;
        match follower.next().await.unwrap() {
            Followed::Lost { peer, reason } => assert!(peer == member.peer && reason.contains(words), "{reason}"),
            other => panic!("{other:?}"),
        }
        let error = follower.next().await.unwrap_err();
        assert!(error.is(ErrorKind::Refused) && error.to_string().contains(words), "{error:#}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_goes_or_is_full_is_tried_again() {
    let one = file(1.0);
    let answers = vec![(Reply::Leaving, Vec::new()), (Reply::Refused(Refusal::Full(16)), Vec::new()), whole(1, &one)];
    let member = Member::start(answers).await;
    let mut follower = member.follower().await;
    for words in ["ends before the training", "serves 16 followers already"] {
        match follower.next().await.unwrap() {
            Followed::Lost { reason, .. } => assert!(reason.contains(words), "{reason}"),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(model(&mut follower).await.file.bytes(), one.bytes());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_ends_where_the_swarm_has_another_task_than_before() {
    let welcome = |task: &str| Reply::Welcome(Welcome { task: task.to_owned(), members: Vec::new() });
    let mut both = Vec::new();
    // The answer to the same request follows a welcome.
    for reply in [Reply::Waiting, welcome("mlp")] {
        both.extend(framed_bytes(&reply).await);
    }
    let member = Member::start(vec![(welcome("softmax"), both)]).await;
    let mut follower = member.follower().await;
    assert!(matches!(follower.next().await.unwrap(), Followed::Welcome { task, .. } if task == "softmax"));
    let error = follower.next().await.unwrap_err();
    assert!(error.is(ErrorKind::Refused) && error.to_string().contains("trains mlp"), "{error:#}");
}

async fn framed_bytes(reply: &Reply) -> Vec<u8> {
    let mut bytes = futures::io::Cursor::new(Vec::new());
    framed::write(&mut bytes, reply).await.unwrap();
    bytes.into_inner()
}
