//! Planning without a person: the operator's peer gives its swarm a new plan when somebody waits for one, has left, or was
//! silent for too long.
//!
//! ```text
//!   members: are you there?   pending peers: who waits?   -> the next plan would name others, and has for a while
//!                                                 -> design, sign, take it up, tell the members that are connected
//! ```
//!
//! It stands for nothing that the operator could not do by hand with `plan make` and `plan apply`: whoever has the key may
//! still apply a plan of another kind. Training never depends on it; while the operator's peer is down, newcomers wait.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use libp2p::PeerId;
use mingle_home::error::{Context, Error, ErrorKind, Result};
use mingle_planner::{DesignOptions, FaultTolerance, Medium, Method, Plan, Topology};
use tokio::task::JoinSet;

use crate::exchange::{announce, ask_progress};
use crate::failure_detector::FailureDetector;
use crate::offer::{PlanNews, PlanOffer};
use crate::service::{MembershipService, Wanted};
use crate::swarm::Signer;
use crate::words::{Progress, Verdict};

/// Between two looks at who is there.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Every member is asked once in this time.
const ASK_EVERY: Duration = Duration::from_secs(5);
/// Most neighbours that a plan gives a peer in each direction.
const MAX_DEGREE: usize = 8;

/// The automatic planner of a swarm, on the operator's peer.
pub struct AutoPlanner {
    service: Arc<MembershipService>,
    streams: libp2p_stream::Control,
    failure_detector: FailureDetector,
    began: Instant,
    questions: JoinSet<(PeerId, Option<Progress>)>,
    asked: BTreeSet<PeerId>,
    asked_at: Option<Instant>,
    /// Whether this peer may sign, when it was looked up last.
    may_sign: bool,
}

impl AutoPlanner {
    /// Plans for as long as the process runs.
    ///
    /// # Errors
    /// This peer is not the operator of a swarm.
    pub fn start(service: &Arc<MembershipService>, streams: libp2p_stream::Control, forget_after: Duration) -> Result {
        if !service.is_operator() {
            return Err(Error::new(
                ErrorKind::BadInput,
                "--planning auto is for the operator of a swarm or its delegate",
            )
            .hint("found one with `mingle init --swarm NAME`, or leave the option out"));
        }
        let auto_planner = Self {
            service: Arc::clone(service),
            streams,
            failure_detector: FailureDetector::new(forget_after),
            began: Instant::now(),
            questions: JoinSet::new(),
            asked: BTreeSet::new(),
            asked_at: None,
            may_sign: true,
        };
        tokio::spawn(auto_planner.work());
        Ok(())
    }

    async fn work(mut self) {
        let mut look = tokio::time::interval(LOOK_EVERY);
        loop {
            tokio::select! {
                Some(answered) = self.questions.join_next() => {
                    if let Ok((member, progress)) = answered {
                        self.on_answer(member, progress);
                    }
                }
                _ = look.tick() => {
                    self.ask_members();
                    if let Err(failure) = self.plan_if_due().await {
                        let message = format!("the swarm is not planned anew while this lasts: {failure:#}");
                        self.service.hand_in(Wanted::Warning(message)).await;
                        // The same again would fail again.
                        tokio::time::sleep(ASK_EVERY).await;
                    }
                }
            }
        }
    }

    /// Asks everybody who is not being asked already.
    fn ask_members(&mut self) {
        if self.asked_at.is_some_and(|at| at.elapsed() < ASK_EVERY) {
            return;
        }
        self.asked_at = Some(Instant::now());
        self.service.read_authority();
        let Some(swarm) = self.service.swarm() else { return };
        for member in self.service.members() {
            if !self.asked.insert(member) {
                continue;
            }
            let (mut streams, swarm, service) = (self.streams.clone(), swarm.clone(), Arc::clone(&self.service));
            self.questions.spawn(async move {
                if member != service.local && service.prober.reach(member, Vec::new()).await.is_err() {
                    return (member, None);
                }
                (member, ask_progress(&mut streams, member, &swarm, None).await.ok().flatten())
            });
        }
    }

    fn on_answer(&mut self, member: PeerId, progress: Option<Progress>) {
        self.asked.remove(&member);
        if let Some(progress) = progress {
            let left = progress.left.iter().filter_map(|peer| peer.parse().ok());
            self.failure_detector.hear(self.began.elapsed(), member, left);
        }
    }

    /// This peer as one that may sign now. Where its time is over, or another has taken its place, a person is told once.
    async fn signer(&mut self) -> Option<Signer> {
        let signer = self.service.signer()?.and_then(|signer| signer.check_time().map(|()| signer));
        let could_sign = std::mem::replace(&mut self.may_sign, signer.is_ok());
        if let (true, Err(failure)) = (could_sign, &signer) {
            let message = format!("this peer plans the swarm no more: {failure:#}");
            self.service.hand_in(Wanted::Warning(message)).await;
        }
        signer.ok()
    }

    async fn plan_if_due(&mut self) -> Result {
        let Some(signer) = self.signer().await else { return Ok(()) };
        let now = self.began.elapsed();
        // The operator is there, and knows itself who of its own neighbours left.
        let standing = self.service.standing().await.unwrap_or_default();
        let (members, mut waiting) = (self.service.members(), self.service.who_waits());
        let revoked = self.service.revocations()?;
        self.failure_detector.hear(now, self.service.local, standing.left);
        self.failure_detector.expel(members.iter().filter(|member| revoked.has_peer(member)).copied());
        waiting.retain(|peer| !revoked.has_peer(peer));
        let Some(next) = self.failure_detector.next(now, &members, &waiting) else { return Ok(()) };
        let plan = tokio::task::spawn_blocking(move || design(&next));
        let plan = plan.await.context(ErrorKind::Unexpected, "the planner stopped")??;
        let last = self.service.last_plan();
        let first_round = last.as_ref().map_or(0, |_| standing.round);
        let news = self.service.news(PlanOffer::sign(&signer, last.as_ref(), first_round, &plan, revoked)?);
        match self.service.judge(news.clone()).await {
            Verdict::Refused(why) => Err(Error::new(ErrorKind::Refused, why)),
            Verdict::Older(_) => Ok(()),
            Verdict::Taken | Verdict::Known => {
                self.spread(&news, &members);
                self.service.keep_revocations(news.offer.revoked())
            }
        }
    }

    /// Those who wait ask for the plan, and those who are not reached hear of it from their neighbours.
    fn spread(&self, news: &PlanNews, members: &[PeerId]) {
        for &member in members.iter().filter(|member| **member != self.service.local) {
            let (mut streams, news) = (self.streams.clone(), news.clone());
            tokio::spawn(async move { announce(&mut streams, member, &news).await.ok() });
        }
    }
}

/// A plan for these peers, each of which may dial every other; any one of them may fail.
fn design(peers: &[PeerId]) -> Result<Plan> {
    let names: Vec<String> = peers.iter().map(PeerId::to_string).collect();
    let edges: Vec<(usize, usize)> = (0..peers.len()).flat_map(|u| (0..u).map(move |v| (v, u))).collect();
    let doing = format!("cannot design a plan for {} peers", peers.len());
    let topology = Topology::new(names.clone(), &edges).context(ErrorKind::BadInput, &doing)?;
    let options = DesignOptions {
        medium: Medium::PointToPoint,
        max_out_degree: Some(MAX_DEGREE),
        // Of two, no one can be lost.
        fault_tolerance: if peers.len() > 2 { FaultTolerance::AnyNode } else { FaultTolerance::None },
        ..DesignOptions::default()
    };
    let mut plan = mingle_planner::design(&topology, Method::Auto, &options).context(ErrorKind::BadInput, &doing)?;
    for (node, peer) in names.iter().enumerate() {
        plan.bind(node, peer).context(ErrorKind::Unexpected, &doing)?;
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_plan_for_any_number_of_peers_names_each_and_survives_the_loss_of_one() {
        for n in [2, 3, 4, 5, 7, 8, 13, 24] {
            let peers: Vec<PeerId> = (0..n).map(|_| PeerId::random()).collect();
            let plan = design(&peers).unwrap();
            let bound: Vec<String> = plan.nodes().map(|(_, peer)| peer.unwrap().to_owned()).collect();
            assert_eq!(bound, peers.iter().map(PeerId::to_string).collect::<Vec<_>>());
            let forecast = plan.forecast();
            assert!(forecast.max_out_degree <= MAX_DEGREE, "{n} peers: {forecast:?}");
            assert!(n == 2 || forecast.critical_nodes == 0, "{n} peers: {forecast:?}");
        }
    }
}
