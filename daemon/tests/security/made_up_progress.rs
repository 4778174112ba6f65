//! A peer that lies to the operator when a plan is applied: about the number of the plan, about rounds, about waiting
//! peers.

use crate::support::founded_swarm;
use crate::support::founded_swarm::ENDLESS;
use crate::support::played_peers::{SWARM, framed, listen};
use crate::support::{run, stderr, stdout, text};
use futures::{AsyncReadExt, AsyncWriteExt, StreamExt};
use libp2p::identity::Keypair;
use libp2p::{Multiaddr, PeerId};
use serde_json::Value;

/// The top of a u64, as the wire has it.
const TOP: [u8; 10] = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];

fn behind_length(bytes: &[u8]) -> Vec<u8> {
    [&[u8::try_from(bytes.len()).unwrap()], bytes].concat()
}

/// A liar's progress: behind the last plan that there can be, after all rounds. A friend of it waits, let in by an
/// invitation without a valid signature.
fn made_up_progress(friend: PeerId) -> Vec<u8> {
    let mut last_but_one = TOP;
    last_but_one[0] = 0xfe;
    // Only the founder might sign it.
    let invite = [&[7; 32][..], &TOP, &[9], &behind_length(&[1; 64]), &[0, 0]].concat();
    let claim = [invite, behind_length(&[2; 64])].concat();
    let waiting = [&[1][..], &behind_length(&friend.to_bytes()), &claim].concat();
    // The answer of this kind: the number of the plan, rounds, the waiting peers, none that left, no addresses, no costs,
    // and a wish to end.
    [&[6][..], &last_but_one, &TOP, &waiting, &[0, 0, 0, 1]].concat()
}

/// Answers every request with that.
async fn lie(friend: PeerId) -> Multiaddr {
    let (mut control, address) = listen(Keypair::generate_ed25519()).await;
    let mut asked = control.accept(SWARM).unwrap();
    tokio::spawn(async move {
        while let Some((_, mut stream)) = asked.next().await {
            let _ = stream.read(&mut [0; 64]).await;
            let _ = stream.write_all(&framed(&made_up_progress(friend))).await;
            let _ = stream.close().await;
        }
    });
    address
}

fn apply(swarm: &founded_swarm::Swarm, via: &[&str]) -> std::process::Output {
    let plan = swarm.plan_by("d-psgd", "complete:n=2");
    let home = swarm.home(0);
    let mut arguments = vec!["--json", "plan", "apply", text(&plan), "--home", text(&home), "--timeout", "4s"];
    via.iter().for_each(|address| arguments.extend(["--via", address]));
    run(&arguments)
}

#[test]
fn what_a_peer_makes_up_is_not_signed() {
    let swarm = founded_swarm::Swarm::found();
    let mut operator = swarm.start_operator(&ENDLESS);
    let address = operator.address();
    let mut ben = swarm.join(1, &swarm.invite(1), &ENDLESS);
    operator.wait_for("join_requested");
    let first = apply(&swarm, &[]);
    assert!(first.status.success(), "{}", stderr(&first));
    ben.wait_for("evaluated");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let friend = PeerId::random();
    let liar = runtime.block_on(lie(friend)).to_string();
    // For either order of their answers.
    for counter in 2..6 {
        let applied = apply(&swarm, &[&liar, &address]);
        assert!(applied.status.success(), "{}", stderr(&applied));
        let told: Value = serde_json::from_str(&stdout(&applied)).unwrap();
        assert_eq!((told["counter"].as_u64(), told["accepted"].as_u64()), (Some(counter), Some(2)), "{told}");
        assert!(told["first_round"].as_u64().unwrap() < 100_000, "{told}");
        assert!(!told["members"].to_string().contains(&friend.to_string()), "{told}");
    }
    ben.wait_through_rounds_for("evaluated");
}
