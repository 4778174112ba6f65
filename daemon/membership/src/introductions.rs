//! Introductions between members: each reports its addresses once, and asks for those of its neighbours.
//!
//! ```text
//!   ana asks the bearer of the plan: "I am at A; where is ben?"   nobody knows yet
//!   ben asks the bearer of the plan: "I am at B; where is ana?"   at A: ben dials ana
//! ```
//!
//! Of every two neighbours that ask the same member, the later one learns of the earlier one. So a link costs one dial,
//! and joining costs a peer one question, whatever the size of the swarm. Questions are repeated with back-off while a
//! neighbour is missing, and then go to other members as well: these know their own neighbours, and the peers that
//! asked them. Addresses of neighbours are kept in the home, for a start at which no other peer is known.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use libp2p::{Multiaddr, PeerId};
use mingle_home::error::Result;
use mingle_home::home::Home;
use mingle_home::small_file::{read_text, write_json};
use mingle_net::transport::{Network, Outlook, Reach};
use tokio::sync::watch;

use crate::exchange::meet;

/// First pause between questions; it doubles up to [`LONGEST_PAUSE`] while nothing changes.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(4);
/// Members asked at a time.
const MAX_ASKED: usize = 3;
/// Interval at which the neighbours' addresses are saved.
const KEEP_EVERY: Duration = Duration::from_secs(2);
/// Peers whose addresses are kept on disk.
const MAX_KEPT: usize = 1024;

/// Addresses by peer.
type Whereabouts = Vec<(PeerId, Vec<Multiaddr>)>;

/// The task that asks members for missing neighbours, for as long as the process runs.
pub struct Introductions {
    streams: libp2p_stream::Control,
    reach: Reach,
    outlook: watch::Receiver<Outlook>,
    /// Turn in which each member was asked last.
    asked: BTreeMap<PeerId, u64>,
    turn: u64,
}

impl Introductions {
    /// Starts asking, with the addresses kept in the home.
    pub async fn start(network: &Network, home: &Home) {
        let kept = KeptAddresses::of(home);
        network.remember(kept.read()).await;
        tokio::spawn(kept.follow(network.reach()));
        let introductions = Self {
            streams: network.streams.clone(),
            reach: network.reach(),
            outlook: network.outlook.clone(),
            asked: BTreeMap::new(),
            turn: 0,
        };
        tokio::spawn(introductions.work());
    }

    async fn work(mut self) {
        let mut pause = FIRST_PAUSE;
        let mut before = Outlook::default();
        while let Some(outlook) = self.somebody_missing().await {
            if is_worse(&before, &outlook) {
                pause = FIRST_PAUSE;
            }
            self.ask(&outlook).await;
            before = outlook;
            self.rest(&before, pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Waits until a neighbour is missing; `None` if the network is gone.
    async fn somebody_missing(&mut self) -> Option<Outlook> {
        let outlook = self.outlook.wait_for(|outlook| !outlook.missing.is_empty()).await;
        outlook.ok().map(|outlook| outlook.clone())
    }

    /// Asks the members whose last question is the oldest.
    async fn ask(&mut self, outlook: &Outlook) {
        self.turn += 1;
        let mut members: Vec<PeerId> = outlook.members.iter().copied().collect();
        members.sort_by_key(|member| self.asked.get(member).copied().unwrap_or(0));
        members.truncate(MAX_ASKED);
        self.asked.retain(|member, _| outlook.members.contains(member));
        let wanted: Vec<PeerId> = outlook.missing.iter().copied().collect();
        let questions = members.iter().map(|&member| {
            let mut streams = self.streams.clone();
            let listening = &outlook.listening;
            let wanted = &wanted;
            async move { meet(&mut streams, member, listening, wanted).await }
        });
        let answers = futures::future::join_all(questions).await;
        for (member, answer) in members.into_iter().zip(answers) {
            self.asked.insert(member, self.turn);
            if let Some(found) = answer {
                self.reach.learn(found).await;
            }
        }
    }

    /// Waits for `pause`, or until another neighbour is missing or a member can be asked.
    async fn rest(&mut self, before: &Outlook, pause: Duration) {
        let changed = self.outlook.wait_for(|outlook| outlook.missing.is_empty() || is_worse(before, outlook));
        // Whether it timed out does not matter: the caller looks again.
        let _ = tokio::time::timeout(pause, changed).await;
    }
}

/// Returns `true` if the question should be repeated at once: another neighbour is missing, this peer's addresses have
/// changed, or there are members to ask for the first time.
fn is_worse(before: &Outlook, now: &Outlook) -> bool {
    !now.missing.is_subset(&before.missing)
        || now.listening != before.listening
        || (before.members.is_empty() && !now.members.is_empty())
}

/// `neighbours.json` in a home: the last known addresses of the neighbours.
struct KeptAddresses {
    path: PathBuf,
    written: Whereabouts,
}

impl KeptAddresses {
    fn of(home: &Home) -> Self {
        Self { path: home.root().join("neighbours.json"), written: Vec::new() }
    }

    /// Saves the addresses of the neighbours for as long as the process runs.
    async fn follow(mut self, reach: Reach) {
        let mut look = tokio::time::interval(KEEP_EVERY);
        loop {
            look.tick().await;
            let Some(found) = reach.neighbours().await else { return };
            if let Err(failure) = self.write(&found) {
                tracing::warn!(%failure, "the addresses of neighbours are not kept");
            }
        }
    }

    /// The addresses that were saved. An unreadable file counts as empty: it only saves questions.
    fn read(&self) -> Whereabouts {
        let text = read_text(&self.path).unwrap_or_else(|failure| {
            tracing::warn!(%failure, "cannot read the addresses of neighbours");
            None
        });
        let kept: BTreeMap<String, Vec<Multiaddr>> =
            text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        kept.into_iter().filter_map(|(peer, addresses)| Some((peer.parse().ok()?, addresses))).take(MAX_KEPT).collect()
    }

    fn write(&mut self, found: &Whereabouts) -> Result {
        if *found == self.written || found.is_empty() {
            return Ok(());
        }
        let named: BTreeMap<String, &Vec<Multiaddr>> =
            found.iter().map(|(peer, addresses)| (peer.to_string(), addresses)).collect();
        write_json(&self.path, &named, "addresses")?;
        self.written.clone_from(found);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;

    use super::*;

    #[test]
    fn a_home_gives_back_where_the_neighbours_were_and_damage_is_no_harm() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(Some(folder.path())).unwrap();
        let mut kept = KeptAddresses::of(&home);
        assert!(kept.read().is_empty());
        let mut found: Whereabouts =
            (1..4).map(|port| (PeerId::random(), vec![format!("/ip4/10.0.0.1/tcp/{port}").parse().unwrap()])).collect();
        found.sort_by_key(|(peer, _)| peer.to_string());
        kept.write(&found).unwrap();
        assert_eq!(KeptAddresses::of(&home).read(), found);
        fs::write(&kept.path, "{\"x\": 3").unwrap();
        assert!(kept.read().is_empty());
    }

    #[test]
    fn who_is_missing_anew_or_can_be_asked_now_is_asked_for_at_once() {
        let [ana, ben] = [PeerId::random(), PeerId::random()];
        let outlook = |missing: &[PeerId], members: &[PeerId]| Outlook {
            missing: missing.iter().copied().collect(),
            members: members.iter().copied().collect(),
            listening: Vec::new(),
        };
        assert!(is_worse(&outlook(&[], &[]), &outlook(&[ana], &[])));
        assert!(is_worse(&outlook(&[ana], &[]), &outlook(&[ana], &[ben])));
        assert!(!is_worse(&outlook(&[ana, ben], &[]), &outlook(&[ana], &[])), "one came");
        assert!(!is_worse(&outlook(&[ana], &[ben]), &outlook(&[ana], &[ben])));
    }
}
