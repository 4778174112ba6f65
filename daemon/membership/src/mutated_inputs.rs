//! Mutation tests of every function in this crate that reads bytes from outside.

use std::fs;
use std::time::Duration;

use data_encoding::BASE32_NOPAD;
use futures::executor::block_on;
use futures::io::Cursor;
use libp2p::identity::Keypair;
use libp2p::{Multiaddr, PeerId};
use mingle_home::Home;
use mingle_mutations::for_each_input;
use mingle_net::framed;
use mingle_net::probe::{ProbeToken, ProbedLink};
use mingle_planner::{DesignOptions, Method, Plan, Topology};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::appointment::{Appointment, PREFIX as APPOINTMENT};
use crate::authority::Authority;
use crate::invite::SecretInvite;
use crate::offer::{PlanNews, PlanOffer, PlannedBy};
use crate::recovery_key::RecoveryKey;
use crate::requests::{MAX_BYTES, MemberAnswer, MemberRequest, PeerProgress, PlanVerdict, Waiting};
use crate::revocations::Revocations;
use crate::swarm::{Signer, SwarmIdentity};
use crate::task::Assignment;
use crate::times::now_unix_s;
use crate::{CheckedPlan, Membership, Ticket, token_text};

struct World {
    /// A delegate, so that every message carries a certificate of the recovery key and one of the operator.
    signer: Signer,
    swarm: SwarmIdentity,
    secret: SecretInvite,
    address: Multiaddr,
}

impl World {
    fn new() -> Self {
        let [founder, recovery, operator, delegate] = [(); 4].map(|()| Keypair::generate_ed25519());
        let id = |key: &Keypair| key.public().to_peer_id();
        let mut swarm = SwarmIdentity::found("ward7", id(&founder)).unwrap().recoverable_by(&id(&recovery)).unwrap();
        swarm.learn(&Authority::default().succeed(&swarm.id(), 1, &id(&operator), &recovery).unwrap());
        let mut owner = Signer::new(swarm, operator).unwrap();
        owner.delegate(Some(&id(&delegate)), now_unix_s() + 3600).unwrap();
        let swarm = owner.swarm().clone();
        let signer = Signer::new(swarm.clone(), delegate).unwrap();
        let secret = SecretInvite::sign(&signer, 2, Duration::from_secs(3600)).unwrap();
        Self { signer, swarm, secret, address: "/ip4/10.0.1.5/udp/4717/quic-v1".parse().unwrap() }
    }

    fn ticket(&self) -> Ticket {
        Ticket::new(self.swarm.clone(), self.secret.clone(), vec![self.address.clone(); 2])
    }

    fn offer(&self) -> PlanOffer {
        let topology = Topology::generate("ring:n=3").unwrap();
        let plan: Plan = mingle_planner::design(&topology, Method::DPsgd, &DesignOptions::default()).unwrap();
        let mut revoked = Revocations::default();
        revoked.expel(&PeerId::random());
        PlanOffer::sign(&self.signer, None, 40, &plan, revoked, PlannedBy::Person).unwrap()
    }

    fn news(&self) -> PlanNews {
        PlanNews { offer: self.offer(), authority: self.swarm.authority().clone() }
    }

    fn token(&self, peer: PeerId) -> ProbeToken {
        let link = ProbedLink { swarm: &self.swarm.id(), from: peer, to: PeerId::random() };
        ProbeToken::sign(&link, std::slice::from_ref(&self.address), self.signer.key(), now_unix_s(), [1; 16]).unwrap()
    }
}

fn bytes(value: &impl Serialize) -> Vec<u8> {
    postcard::to_stdvec(value).unwrap()
}

/// Reads as from a stream, and checks that the value encodes to bytes that are stable when read again.
fn read<T: DeserializeOwned + Serialize>(input: &[u8]) -> Option<T> {
    let length = u32::try_from(input.len()).unwrap().to_le_bytes();
    let value: T = block_on(framed::read(&mut Cursor::new([&length, input].concat()), MAX_BYTES)).ok()?;
    let again = bytes(&value);
    assert_eq!(bytes(&postcard::from_bytes::<T>(&again).unwrap()), again);
    Some(value)
}

#[test]
fn mutated_tickets_are_refused_or_hold() {
    let world = World::new();
    let text = world.ticket().to_string();
    for_each_input("ticket", &[text.into_bytes()], |input| drop(String::from_utf8_lossy(input).parse::<Ticket>()));
    // Behind a correct checksum.
    for_each_input("ticket_bytes", &[bytes(&world.ticket())], |input| {
        let checked = [input, &blake3::hash(input).as_bytes()[..4]].concat();
        let text = format!("mingle2{}", BASE32_NOPAD.encode(&checked).to_lowercase());
        if let Ok(ticket) = text.parse::<Ticket>() {
            ticket.invite.check(&ticket.swarm).unwrap();
        }
    });
}

#[test]
fn mutated_requests_are_refused_or_make_sense() {
    let (world, peer) = (World::new(), PeerId::random());
    let claim = world.secret.claim(&world.swarm, &peer).unwrap();
    let swarm = world.swarm.id();
    let requests = [
        MemberRequest::Plan { permission: Some(world.signer.permit_to_ask(&peer).unwrap()) },
        MemberRequest::Join { wire: 7, swarm, claim: claim.clone(), work: Assignment::Solve(b"{}".to_vec()) },
        MemberRequest::Announce(world.news()),
        MemberRequest::Progress { permission: Some(world.signer.permit_to_ask(&peer).unwrap()), swarm },
        MemberRequest::Measure {
            to: peer.to_bytes(),
            addresses: vec![world.address.clone()],
            token: Some(world.token(peer)),
        },
        MemberRequest::Meet { addresses: vec![world.address.clone()], wanted: vec![peer.to_bytes()] },
        MemberRequest::Task { claim: Some(claim) },
    ];
    let seeds: Vec<Vec<u8>> = requests.iter().map(bytes).collect();
    for_each_input("request", &seeds, |input| match read::<MemberRequest>(input) {
        Some(MemberRequest::Join { claim, .. } | MemberRequest::Task { claim: Some(claim) }) => {
            let _ = claim.check(&world.swarm, &peer);
        }
        Some(MemberRequest::Announce(news)) => {
            // A certificate without the right signature is never accepted.
            assert!(!world.swarm.clone().learn(&news.authority) && !world.swarm.clone().learn(news.offer.authority()));
            drop(news.offer.check(Some(&world.swarm)));
        }
        Some(
            MemberRequest::Plan { permission: Some(permission) }
            | MemberRequest::Progress { permission: Some(permission), .. },
        ) => {
            let _ = world.swarm.permits_to_ask(&peer, &permission);
        }
        _ => {}
    });
}

#[test]
fn mutated_answers_are_refused_or_make_sense() {
    let (world, peer) = (World::new(), PeerId::random());
    let waiting = Waiting::new(peer, world.secret.claim(&world.swarm, &peer).unwrap());
    let addresses = [(peer.to_string(), vec![world.address.to_string()])].into();
    let progress = PeerProgress {
        counter: 3,
        round: 40,
        waiting: vec![waiting],
        left: vec![peer.to_string()],
        addresses,
        costs: None,
        asks_to_end: true,
    };
    let answers = [
        MemberAnswer::Plan(Box::new(world.news())),
        MemberAnswer::Model(vec![0; 64]),
        MemberAnswer::Verdict(PlanVerdict::Older(Box::new(world.news()))),
        MemberAnswer::Progress(progress),
        MemberAnswer::No("no".to_owned()),
        MemberAnswer::Met(vec![(peer.to_bytes(), vec![world.address.clone()])]),
        MemberAnswer::Task(Assignment::Solve(b"{}".to_vec())),
    ];
    let seeds: Vec<Vec<u8>> = answers.iter().map(bytes).collect();
    for_each_input("answer", &seeds, |input| {
        if let Some(MemberAnswer::Progress(progress)) = read::<MemberAnswer>(input) {
            let sound = progress.waiting.iter().filter_map(|waiting| waiting.checked(&world.swarm));
            assert!(sound.into_iter().all(|(found, _)| found == peer));
        }
    });
}

/// The bytes of an offer but for its authority certificate.
fn without_authority(offer: &PlanOffer) -> Vec<u8> {
    let [all, authority] = [bytes(offer), bytes(offer.authority())];
    let at = all.windows(authority.len()).rposition(|window| window == authority).unwrap();
    [&all[..at], &all[at + authority.len()..]].concat()
}

#[test]
fn mutated_offers_are_never_plans_of_the_operator() {
    let world = World::new();
    let offer = world.offer();
    let signed = without_authority(&offer);
    for_each_input("offer", &[bytes(&offer)], |input| {
        let Some(read) = read::<PlanOffer>(input) else { return };
        // The authority certificate in it is its own proof.
        let is_the_same = without_authority(&read) == signed;
        assert_eq!(read.clone().check(Some(&world.swarm)).is_ok(), is_the_same, "{read:?}");
        drop(read.check(None));
    });
}

#[test]
fn mutated_appointments_are_refused_or_signed() {
    let world = World::new();
    let text = Appointment(world.swarm.clone()).to_string();
    let told = token_text::read(text.strip_prefix(APPOINTMENT).unwrap()).unwrap();
    for_each_input("appointment", &[text.into_bytes()], |input| {
        drop(String::from_utf8_lossy(input).parse::<Appointment>());
    });
    // Behind a correct checksum.
    for_each_input("appointment_bytes", &[told], |input| {
        if let Ok(Appointment(swarm)) = token_text::write(APPOINTMENT, input).parse() {
            // Only the keys of the swarm can have signed a certificate in it.
            let is_silent = *swarm.authority() == Authority::default();
            assert!(is_silent || world.swarm.is(&swarm));
        }
    });
}

#[test]
fn mutated_recovery_keys_are_refused_or_those_of_their_swarm() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ward7.recovery");
    RecoveryKey::found("ward7", PeerId::from(Keypair::generate_ed25519().public()), &path).unwrap();
    let sound = fs::read(&path).unwrap();
    for_each_input("recovery_key", &[sound], |input| {
        if let Ok(key) = RecoveryKey::parse(&String::from_utf8_lossy(input), "cannot read it") {
            assert!(key.swarm().recovery().is_some());
        }
    });
}

#[test]
fn mutated_files_of_a_home_are_refused_or_hold() {
    let world = World::new();
    let folder = tempfile::tempdir().unwrap();
    let home = Home::create(Some(folder.path())).unwrap();
    world.ticket().membership(PeerId::random(), &home).unwrap().write(&home).unwrap();
    let path = folder.path().join("swarm.json");
    let sound: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let seeds = [
        serde_json::to_vec(&sound).unwrap(),
        br#"{"ab": ["x"]}"#.to_vec(),
        br#"{"peers": ["a"], "invites": ["00ff"]}"#.to_vec(),
        br#"[{"id": "00ff", "uses": 2, "expires_unix_s": 1900000000}]"#.to_vec(),
    ];
    assert!(Membership::parse(std::str::from_utf8(&seeds[0]).unwrap(), &path).is_ok());
    for_each_input("home_files", &seeds, |input| {
        let text = String::from_utf8_lossy(input);
        if let Ok(membership) = Membership::parse(&text, &path) {
            let is_silent = *membership.swarm.authority() == Authority::default();
            assert!(is_silent || world.swarm.is(&membership.swarm));
        }
        if let Ok(revoked) = serde_json::from_str::<Revocations>(&text) {
            assert!(!revoked.has_peer(&PeerId::random()) && revoked.hash() != [0; 32]);
        }
        drop(serde_json::from_str::<crate::pending_peers::Uses>(&text));
        drop(serde_json::from_str::<crate::IssuedInvites>(&text));
    });
}

#[test]
fn mutated_plans_of_a_home_are_refused_or_hold() {
    let world = World::new();
    let folder = tempfile::tempdir().unwrap();
    let home = Home::create(Some(folder.path())).unwrap();
    world.offer().check(Some(&world.swarm)).unwrap().keep(&home).unwrap();
    let kept = fs::read(folder.path().join("plan.signed")).unwrap();
    let hash = CheckedPlan::kept(&home, &world.swarm).unwrap().unwrap().plan.hash();
    for_each_input("plan_signed", &[kept], |input| {
        if let Ok(checked) = CheckedPlan::parse(input, &world.swarm, String::new()) {
            assert_eq!(checked.plan.hash(), hash, "a plan that nobody signed");
        }
    });
}
