//! Tickets, files of a home and requests between members as this release makes them, in files that stay: a later release
//! shows with them that it reads what this one has left, and that members of both understand each other.
//!
//! `MINGLE_GOLDEN=write` makes the files of a form that has none yet, the ticket first (`--test-threads 1`). What is there is never
//! written over.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use libp2p::PeerId;
use libp2p::identity::Keypair;
use mingle_home::Home;
use mingle_planner::{DesignOptions, Method, Topology};

use crate::invite::SecretInvite;
use crate::offer::{CheckedPlan, PlanOffer};
use crate::revocations::Revocations;
use crate::swarm::Swarm;
use crate::task::Assignment;
use crate::words::{Answer, PROTOCOL, Progress, Request, Verdict, Waiting};
use crate::{Membership, Ticket};

/// Until the year 5138.
const FOR_EVER: Duration = Duration::from_secs(100_000_000_000);

fn golden(name: &str, new: impl FnOnce() -> Vec<u8>) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if !path.exists() && std::env::var_os("MINGLE_GOLDEN").is_some_and(|mode| mode == "write") {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, new()).unwrap();
    }
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Keys that nobody uses.
fn operator() -> Keypair {
    Keypair::ed25519_from_bytes([7; 32]).unwrap()
}

fn newcomer() -> PeerId {
    Keypair::ed25519_from_bytes([8; 32]).unwrap().public().to_peer_id()
}

/// The ticket of the files, which all else in them belongs to.
fn ticket() -> Ticket {
    let text = golden("ticket-1.txt", || {
        let swarm = Swarm::found("ward7", operator().public().to_peer_id()).unwrap();
        let invite = SecretInvite::sign(&swarm, 2, FOR_EVER, &operator()).unwrap();
        let address = "/ip4/10.0.1.5/udp/4717/quic-v1".parse().unwrap();
        Ticket::new(swarm, invite, vec![address]).to_string().into_bytes()
    });
    let ticket: Ticket = str::from_utf8(&text).unwrap().parse().unwrap();
    assert_eq!(ticket.to_string().into_bytes(), text, "what was read is written as it was");
    ticket
}

/// The second plan of that swarm, which two peers follow.
fn offers(swarm: &Swarm) -> [PlanOffer; 2] {
    let topology = Topology::generate("complete:n=2").unwrap();
    let mut plan = mingle_planner::design(&topology, Method::DPsgd, &DesignOptions::default()).unwrap();
    for (node, peer) in [operator().public().to_peer_id(), newcomer()].into_iter().enumerate() {
        plan.bind(node, &peer.to_string()).unwrap();
    }
    let mut revoked = Revocations::default();
    revoked.expel(&Keypair::ed25519_from_bytes([9; 32]).unwrap().public().to_peer_id());
    revoked.revoke("00ff");
    let first = PlanOffer::sign(swarm, None, 0, &plan, Revocations::default(), &operator()).unwrap();
    let second = PlanOffer::sign(swarm, Some(&first), 40, &plan, revoked, &operator()).unwrap();
    [first, second]
}

#[test]
fn a_ticket_of_this_release_is_read() {
    let ticket = ticket();
    assert_eq!((ticket.swarm.name.as_str(), ticket.bootstrap.len()), ("ward7", 1));
    assert_eq!(ticket.swarm.operator().unwrap(), operator().public().to_peer_id());
    ticket.invite.claim(&ticket.swarm, &newcomer()).unwrap().check(&ticket.swarm, &newcomer()).unwrap();
}

#[test]
fn the_files_of_a_home_of_this_release_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::create(Some(folder.path())).unwrap();
    let Ticket { swarm, invite, bootstrap } = ticket();
    let membership = golden("swarm-2.json", || {
        Membership::invited(swarm.clone(), invite.clone(), bootstrap.clone()).write(&home).unwrap();
        fs::read(home.root().join("swarm.json")).unwrap()
    });
    fs::write(home.root().join("swarm.json"), &membership).unwrap();
    let read = Membership::of(&home).unwrap().unwrap();
    assert_eq!((&read.swarm, &read.invite, &read.bootstrap), (&swarm, &Some(invite), &bootstrap));
    read.write(&home).unwrap();
    assert_eq!(fs::read(home.root().join("swarm.json")).unwrap(), membership, "and written as they were");

    let [first, second] = offers(&swarm);
    let kept = golden("plan-3.signed", || {
        second.clone().check(Some(&swarm)).unwrap().keep(&home).unwrap();
        fs::read(home.root().join("plan.signed")).unwrap()
    });
    fs::write(home.root().join("plan.signed"), &kept).unwrap();
    let plan = CheckedPlan::kept(&home, &swarm).unwrap().unwrap();
    assert_eq!((plan.generation().counter, plan.first_round()), (2, 40));
    assert_eq!((plan.offer.previous(), &plan.offer), (first.hash(), &second));
    plan.keep(&home).unwrap();
    assert_eq!(fs::read(home.root().join("plan.signed")).unwrap(), kept);
}

#[test]
fn requests_and_answers_between_members_have_the_bytes_that_they_had() {
    let Ticket { swarm, invite, bootstrap } = ticket();
    let claim = invite.claim(&swarm, &newcomer()).unwrap();
    let [_, offer] = offers(&swarm);
    let (id, to) = (swarm.id(), newcomer().to_bytes());
    let requests = [
        Request::Plan,
        Request::Join { wire: 7, swarm: id, claim: claim.clone(), work: Assignment::Train(vec![1, 2]) },
        Request::Model,
        Request::Announce(offer.clone()),
        Request::Progress { permission: swarm.permit_to_ask(&newcomer(), &operator()).unwrap(), swarm: id },
        Request::Measure { to: to.clone(), addresses: bootstrap.clone(), token: None },
        Request::Meet { addresses: bootstrap.clone(), wanted: vec![to.clone()] },
        Request::Task { claim: Some(claim.clone()) },
    ];
    let progress = Progress {
        counter: 2,
        round: 40,
        waiting: vec![Waiting::new(newcomer(), claim)],
        left: vec![newcomer().to_string()],
        addresses: [(newcomer().to_string(), vec![bootstrap[0].to_string()])].into(),
    };
    let answers = [
        Answer::Plan(offer.clone()),
        Answer::NotYet,
        Answer::NotAMember,
        Answer::Wait,
        Answer::Model(vec![0, 0, 128, 63]),
        Answer::Verdict(Verdict::Older(offer)),
        Answer::Progress(progress),
        Answer::No("it has expired".to_owned()),
        Answer::Met(vec![(to, bootstrap)]),
        Answer::Task(Assignment::Solve),
    ];
    let said: Vec<Vec<u8>> = requests.iter().map(|request| postcard::to_stdvec(request).unwrap()).collect();
    let answered: Vec<Vec<u8>> = answers.iter().map(|answer| postcard::to_stdvec(answer).unwrap()).collect();
    let line = |bytes: &Vec<u8>| format!("{}\n", hex::encode(bytes));
    let now: String = said.iter().chain(&answered).map(line).collect();
    let file = format!("requests-{}.hex", PROTOCOL.to_string().trim_start_matches("/mingle/swarm/"));
    let then = String::from_utf8(golden(&file, || now.clone().into_bytes())).unwrap();
    assert_eq!(now, then, "other bytes need another number in {PROTOCOL}");
    for (number, line) in then.lines().enumerate() {
        let bytes = hex::decode(line).unwrap();
        let again = if number < said.len() {
            postcard::to_stdvec(&postcard::from_bytes::<Request>(&bytes).unwrap())
        } else {
            postcard::to_stdvec(&postcard::from_bytes::<Answer>(&bytes).unwrap())
        };
        assert_eq!(again.unwrap(), bytes, "line {}", number + 1);
    }
}
