//! Requests of followers, and the answers of members. One stream carries any number of them, one at a time.

use std::fmt;
use std::str::FromStr;

use libp2p::{Multiaddr, StreamProtocol};
use mingle_membership::Claim;
use serde::{Deserialize, Serialize};

/// Name of the protocol.
pub const PROTOCOL: StreamProtocol = StreamProtocol::new("/mingle/follow/1");
/// Largest request.
pub(crate) const MAX_ASK_BYTES: usize = 8 << 10;
/// Largest answer, without the bytes of models that follow it.
pub(crate) const MAX_REPLY_BYTES: usize = 64 << 10;
/// Members named to a follower, and addresses of each.
pub(crate) const MAX_MEMBERS: usize = 32;
pub(crate) const MAX_ADDRESSES: usize = 6;
/// Most bytes of the task's description in a welcome.
pub(crate) const MAX_TASK_BYTES: usize = 4 << 10;
/// Most patches of one answer.
pub(crate) const MAX_PARTS: usize = 64;

/// The numbers of a followed model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Precision {
    /// As the members have them: 32 bits.
    #[default]
    F32,
    /// Rounded to the nearest `bf16` by the member: half the bytes, and small patches, as most numbers stay the same.
    Bf16,
}

impl Precision {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::F32, Self::Bf16];
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
        })
    }
}

impl FromStr for Precision {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|precision| precision.to_string() == text);
        found.ok_or_else(|| format!("there is f32 and bf16, not `{text}`"))
    }
}

/// The request for the next model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// The swarm that the follower means.
    pub swarm: [u8; 32],
    /// Proof that the follower has an invitation to it.
    pub claim: Claim,
    /// The wanted numbers.
    pub precision: Precision,
    /// A model after this many further rounds is wanted.
    pub every: u32,
    /// BLAKE3 of the model file that the follower has.
    pub have: Option<[u8; 32]>,
    /// Rounds over at the model before; `None` for any model.
    pub after: Option<u64>,
}

impl Ask {
    /// Rounds over at the next wanted model: the next multiple of `every`.
    pub(crate) fn due(&self) -> u64 {
        let every = u64::from(self.every.max(1));
        self.after.map_or(0, |after| (after / every).saturating_add(1).saturating_mul(every))
    }
}

/// An answer of a member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// Sent once, before the first model.
    Welcome(Welcome),
    /// There is no such model yet: ask again.
    Waiting,
    /// A newer model. The bytes of its parts come after the answer, one part after the other.
    Update(Update),
    /// This member ends before the training does: others may go on.
    Leaving,
    /// A refusal, with its reason.
    Refused(Refusal),
}

/// Facts about the swarm for a follower.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// The task, in one line.
    pub task: String,
    /// PeerIds of some members, with addresses.
    pub members: Vec<(Vec<u8>, Vec<Multiaddr>)>,
}

/// A newer model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Update {
    /// Rounds over at this model.
    pub round: u64,
    /// Rounds over when training is done.
    pub last_round: u64,
    /// BLAKE3 of the whole file.
    pub digest: [u8; 32],
    /// Set for the model with which the training of this member ended.
    pub is_final: bool,
    /// The way to the file; none if the follower has it.
    pub parts: Vec<ModelPart>,
}

/// A piece of the way to a newer model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ModelPart {
    /// The whole file, of so many bytes.
    Whole(u64),
    /// A patch of so many bytes, on the file before.
    Patch(u64),
}

impl ModelPart {
    /// Its length in bytes.
    pub fn length(self) -> u64 {
        match self {
            Self::Whole(length) | Self::Patch(length) => length,
        }
    }
}

/// The reason for which a member does not serve a follower.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// The member belongs to another swarm, or to one without an operator.
    OtherSwarm,
    /// The invitation does not count, for this reason.
    NotInvited(String),
    /// The swarm solves a problem: there is no model to follow.
    NoModel,
    /// The member's owner has switched followers off.
    Off,
    /// As many as the member serves are there already.
    Full(u32),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherSwarm => f.write_str("it belongs to another swarm"),
            Self::NotInvited(why) => f.write_str(&mingle_net::printable::quoted(why)),
            Self::NoModel => f.write_str("the swarm solves a problem, which has no model to follow"),
            Self::Off => f.write_str("it serves no followers (mingle run --followers 0)"),
            Self::Full(most) => write!(f, "it serves {most} followers already"),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Duration;

    use libp2p::PeerId;
    use libp2p::identity::Keypair;
    use mingle_membership::{SecretInvite, Signer, SwarmIdentity};
    use mingle_mutations::for_each_input;
    use mingle_net::printable::is_unseen;

    use super::*;

    fn ask(every: u32, after: Option<u64>) -> Ask {
        let key = Keypair::generate_ed25519();
        let swarm = SwarmIdentity::found("ward7", key.public().to_peer_id()).unwrap();
        let signer = Signer::new(swarm.clone(), key).unwrap();
        let secret = SecretInvite::sign(&signer, 1, Duration::from_secs(60)).unwrap();
        let claim = secret.claim(&swarm, &PeerId::random()).unwrap();
        Ask { swarm: swarm.id(), claim, precision: Precision::Bf16, every, have: Some([7; 32]), after }
    }

    #[test]
    fn the_next_wanted_model_is_that_of_the_next_multiple() {
        for (every, after, due) in [(1, Some(4), 5), (5, Some(4), 5), (5, Some(5), 10), (5, None, 0), (0, Some(4), 5)] {
            assert_eq!(ask(every, after).due(), due, "{every} {after:?}");
        }
        assert_eq!(ask(u32::MAX, Some(u64::MAX)).due(), u64::MAX, "no overflow");
    }

    #[test]
    fn mutated_requests_and_answers_of_followers_break_nothing() {
        let update = Update {
            round: 7,
            last_round: 9,
            digest: [3; 32],
            is_final: false,
            parts: vec![ModelPart::Whole(1 << 40), ModelPart::Patch(300)],
        };
        let address: Multiaddr = "/ip4/10.0.1.5/tcp/4717".parse().unwrap();
        let welcome =
            Welcome { task: "softmax".to_owned(), members: vec![(PeerId::random().to_bytes(), vec![address])] };
        let refusal = Refusal::NotInvited("it expired".to_owned());
        let replies = [Reply::Update(update), Reply::Welcome(welcome), Reply::Refused(refusal), Reply::Leaving];
        let seeds: Vec<Vec<u8>> = replies.iter().map(|reply| postcard::to_stdvec(reply).unwrap()).collect();
        for_each_input("answers to followers", &seeds, |input| {
            if let Ok(Reply::Refused(refusal)) = postcard::from_bytes::<Reply>(input) {
                assert!(!refusal.to_string().chars().any(is_unseen), "{refusal:?}");
            }
        });
        let asks = [ask(1, None), ask(1000, Some(5))].map(|ask| postcard::to_stdvec(&ask).unwrap());
        assert!(asks.iter().all(|ask| ask.len() < MAX_ASK_BYTES / 4));
        for_each_input("requests of followers", &asks, |input| {
            if let Ok(ask) = postcard::from_bytes::<Ask>(input) {
                assert!(ask.due() > ask.after.unwrap_or(0) || ask.after.is_none() || ask.due() == u64::MAX);
            }
        });
    }
}
