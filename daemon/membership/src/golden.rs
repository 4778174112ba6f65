//! Golden files: tickets, files of a home and requests between members as this release writes them. A later release
//! shows with them that it reads these files, and that members of both releases understand each other.
//!
//! `MINGLE_GOLDEN=write` writes the files of a form that has none yet, the ticket first (`--test-threads 1`). It never
//! overwrites a file.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use libp2p::PeerId;
use libp2p::identity::Keypair;
use mingle_home::Home;
use mingle_planner::{DesignOptions, Method, Topology};

use crate::authority::Authority;
use crate::invite::SecretInvite;
use crate::offer::{CheckedPlan, PlanNews, PlanNumber, PlanOffer, PlannedBy};
use crate::requests::{MemberAnswer, MemberRequest, PROTOCOL, PeerProgress, PlanVerdict, RoundCosts, Waiting};
use crate::revocations::Revocations;
use crate::swarm::{Signer, SwarmIdentity};
use crate::task::Assignment;
use crate::times::now_unix_s;
use crate::{Appointment, Membership, Ticket};

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

/// Keys for tests only.
fn key(number: u8) -> Keypair {
    Keypair::ed25519_from_bytes([number; 32]).unwrap()
}

fn founder() -> PeerId {
    key(7).public().to_peer_id()
}

fn newcomer() -> PeerId {
    key(8).public().to_peer_id()
}

fn operator() -> PeerId {
    key(11).public().to_peer_id()
}

/// The delegate of the operator that the recovery key of this swarm has named.
fn delegate_of(mut swarm: SwarmIdentity) -> Signer {
    let (recovery, delegate) = (key(10), key(12));
    let until = now_unix_s() + FOR_EVER.as_secs();
    swarm.learn(&Authority::default().succeed(&swarm.id(), 1, &operator(), &recovery).unwrap());
    let mut owner = Signer::new(swarm, key(11)).unwrap();
    owner.delegate(Some(&delegate.public().to_peer_id()), until).unwrap();
    Signer::new(owner.swarm().clone(), delegate).unwrap()
}

/// The ticket of the golden files, to whose swarm all the others belong.
fn ticket() -> Ticket {
    let text = golden("ticket-2.txt", || {
        let recovery = key(10).public().to_peer_id();
        let swarm = SwarmIdentity::found("ward7", founder()).unwrap().recoverable_by(&recovery).unwrap();
        let signer = delegate_of(swarm);
        let invite = SecretInvite::sign(&signer, 2, FOR_EVER).unwrap();
        let address = "/ip4/10.0.1.5/udp/4717/quic-v1".parse().unwrap();
        Ticket::new(signer.swarm().clone(), invite, vec![address]).to_string().into_bytes()
    });
    let ticket: Ticket = str::from_utf8(&text).unwrap().parse().unwrap();
    assert_eq!(ticket.to_string().into_bytes(), text, "what was read is written as it was");
    ticket
}

/// The first two plans of that swarm for its two peers, signed by the founder or by a key that signs in its place.
fn offers(signer: &Signer) -> [PlanOffer; 2] {
    let topology = Topology::generate("complete:n=2").unwrap();
    let mut plan = mingle_planner::design(&topology, Method::DPsgd, &DesignOptions::default()).unwrap();
    for (node, peer) in [founder(), newcomer()].into_iter().enumerate() {
        plan.bind(node, &peer.to_string()).unwrap();
    }
    let mut revoked = Revocations::default();
    revoked.expel(&key(9).public().to_peer_id());
    revoked.revoke("00ff");
    let first = PlanOffer::sign(signer, None, 0, &plan, Revocations::default(), PlannedBy::Peer).unwrap();
    let second = PlanOffer::sign(signer, Some(&first), 40, &plan, revoked, PlannedBy::Person).unwrap();
    [first, second]
}

/// The delegate that the ticket names.
fn delegate(swarm: &SwarmIdentity) -> Signer {
    Signer::new(swarm.clone(), key(12)).unwrap()
}

#[test]
fn a_ticket_of_this_release_is_read() {
    let ticket = ticket();
    assert_eq!((ticket.swarm.name.as_str(), ticket.bootstrap.len()), ("ward7", 1));
    assert_eq!((ticket.swarm.founder().unwrap(), ticket.swarm.operator().unwrap()), (founder(), operator()));
    assert_eq!(ticket.swarm.authority().delegate_until().unwrap().0, delegate(&ticket.swarm).peer_id());
    ticket.invite.claim(&ticket.swarm, &newcomer()).unwrap().check(&ticket.swarm, &newcomer()).unwrap();
}

#[test]
fn the_files_of_a_home_of_this_release_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::create(Some(folder.path())).unwrap();
    let Ticket { swarm, invite, bootstrap } = ticket();
    let membership = golden("swarm-3.json", || {
        Membership::invited(swarm.clone(), invite.clone(), bootstrap.clone()).write(&home).unwrap();
        fs::read(home.root().join("swarm.json")).unwrap()
    });
    fs::write(home.root().join("swarm.json"), &membership).unwrap();
    let read = Membership::of(&home).unwrap().unwrap();
    assert_eq!((&read.swarm, &read.invite, &read.bootstrap), (&swarm, &Some(invite), &bootstrap));
    read.write(&home).unwrap();
    assert_eq!(fs::read(home.root().join("swarm.json")).unwrap(), membership, "and written as they were");

    let [first, second] = offers(&delegate(&swarm));
    let kept = golden("plan-6.signed", || {
        second.clone().check(Some(&swarm)).unwrap().keep(&home).unwrap();
        fs::read(home.root().join("plan.signed")).unwrap()
    });
    fs::write(home.root().join("plan.signed"), &kept).unwrap();
    let plan = CheckedPlan::kept(&home, &swarm).unwrap().unwrap();
    assert_eq!(PlanNumber(plan.generation().counter).to_string(), "2 of term 1.1");
    assert_eq!((plan.first_round(), plan.offer.previous(), &plan.offer), (40, first.hash(), &second));
    plan.keep(&home).unwrap();
    assert_eq!(fs::read(home.root().join("plan.signed")).unwrap(), kept);
}

#[test]
fn an_appointment_of_this_release_is_read() {
    let swarm = ticket().swarm;
    let text = golden("appointment-1.txt", || Appointment(swarm.clone()).to_string().into_bytes());
    let Appointment(read) = str::from_utf8(&text).unwrap().parse().unwrap();
    assert_eq!(read, swarm);
    assert_eq!(Appointment(read).to_string().into_bytes(), text);
}

#[test]
fn requests_and_answers_between_members_have_the_bytes_that_they_had() {
    let Ticket { swarm, invite, bootstrap } = ticket();
    let claim = invite.claim(&swarm, &newcomer()).unwrap();
    let signer = delegate(&swarm);
    let [_, offer] = offers(&signer);
    let news = PlanNews { offer, authority: swarm.authority().clone() };
    let permission = || Some(signer.permit_to_ask(&newcomer()).unwrap());
    let (id, to) = (swarm.id(), newcomer().to_bytes());
    let requests = [
        MemberRequest::Plan { permission: None },
        MemberRequest::Plan { permission: permission() },
        MemberRequest::Join { wire: 7, swarm: id, claim: claim.clone(), work: Assignment::Train(vec![1, 2]) },
        MemberRequest::Model,
        MemberRequest::Announce(news.clone()),
        MemberRequest::Progress { permission: permission(), swarm: id },
        MemberRequest::Measure { to: to.clone(), addresses: bootstrap.clone(), token: None },
        MemberRequest::Meet { addresses: bootstrap.clone(), wanted: vec![to.clone()] },
        MemberRequest::Task { claim: Some(claim.clone()) },
        MemberRequest::State,
    ];
    let progress = PeerProgress {
        counter: 2,
        round: 40,
        waiting: vec![Waiting::new(newcomer(), claim)],
        left: vec![newcomer().to_string()],
        addresses: [(newcomer().to_string(), vec![bootstrap[0].to_string()])].into(),
        costs: Some(RoundCosts { local_step_s: 0.25, exchange_s: 1.5 }),
        asks_to_end: true,
    };
    let answers = [
        MemberAnswer::Plan(Box::new(news.clone())),
        MemberAnswer::NotYet,
        MemberAnswer::NotAMember,
        MemberAnswer::Wait,
        MemberAnswer::Model(vec![0, 0, 128, 63]),
        MemberAnswer::Verdict(PlanVerdict::Older(Box::new(news))),
        MemberAnswer::Progress(progress),
        MemberAnswer::No("it has expired".to_owned()),
        MemberAnswer::Met(vec![(to, bootstrap)]),
        MemberAnswer::Task(Assignment::Solve(b"{}".to_vec())),
        MemberAnswer::State(vec![7, 8]),
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
            postcard::to_stdvec(&postcard::from_bytes::<MemberRequest>(&bytes).unwrap())
        } else {
            postcard::to_stdvec(&postcard::from_bytes::<MemberAnswer>(&bytes).unwrap())
        };
        assert_eq!(again.unwrap(), bytes, "line {}", number + 1);
    }
}
