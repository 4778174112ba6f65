//! The automatic planner: the operator's peer gives its swarm a new plan when a peer is pending, has left, or was
//! silent for too long.
//!
//! ```text
//!   members: are you there?   pending peers: who waits?   -> the next plan would name others, and has for a while
//!                                                 -> design, sign, take it up, tell the members that are connected
//! ```
//!
//! The number of local steps in a round follows from measurements, unless a person set it: see
//! [`local_steps`](crate::local_steps). A plan that a person applied stays. Newcomers then wait until a person makes
//! another, and only an expulsion replaces it.
//!
//! It does nothing that the operator could not do by hand with `plan make` and `plan apply`: a holder of the key may
//! still apply a plan of another kind. Training never depends on it; while the operator's peer is down, newcomers wait.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use libp2p::PeerId;
use mingle_home::error::{Context, Error, ErrorKind, Result};
use mingle_planner::{DesignOptions, FaultTolerance, Medium, Method, Plan, Topology};
use tokio::task::JoinSet;

use crate::early_end::{EarlyEnd, EndVotes};
use crate::exchange::{announce, ask_progress};
use crate::failure_detector::FailureDetector;
use crate::local_steps::LocalSteps;
use crate::offer::{PlanNews, PlanOffer, PlannedBy};
use crate::requests::{PeerProgress, PlanVerdict};
use crate::revocations::Revocations;
use crate::service::{MembershipService, Standing, Wanted};
use crate::swarm::Signer;

/// Interval between checks whether a new plan is due.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Interval at which each member is asked for its progress.
const ASK_EVERY: Duration = Duration::from_secs(5);
/// Most neighbours that a plan gives a peer in each direction.
const MAX_DEGREE: usize = 8;

/// The settings of automatic planning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AutomaticPlanning {
    /// Silence after which a member is left out of the next plan.
    pub forget_after: Duration,
    /// Members of a first plan at least, and those that silence leaves in a plan.
    pub least_members: usize,
    /// Local steps of a round; `None` to choose them from the members' measurements.
    pub local_steps: Option<u32>,
}

/// The automatic planner of a swarm, on the operator's peer.
pub struct AutoPlanner {
    service: Arc<MembershipService>,
    streams: libp2p_stream::Control,
    failure_detector: FailureDetector,
    local_steps: LocalSteps,
    votes: EndVotes,
    /// The number of the newest plan that it has published.
    published: u64,
    /// The number and the members of the plan under which the local steps are measured.
    measured: (u64, Vec<PeerId>),
    /// Members that the next plan should have, as last reported to a person whose own plan stays.
    told: Vec<PeerId>,
    began: Instant,
    questions: JoinSet<(PeerId, Option<PeerProgress>)>,
    asked: BTreeSet<PeerId>,
    asked_at: Option<Instant>,
    /// The settings' least members.
    least_members: usize,
    /// Peers that waited when a person was last told that they are too few.
    too_few: usize,
    /// `true` if this peer could sign when that was last checked.
    may_sign: bool,
}

impl AutoPlanner {
    /// Starts planning, for as long as the process runs.
    ///
    /// # Errors
    /// This peer may not sign for a swarm.
    pub fn start(
        service: &Arc<MembershipService>,
        streams: libp2p_stream::Control,
        planning: AutomaticPlanning,
    ) -> Result {
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
            failure_detector: FailureDetector::new(planning.forget_after, planning.least_members),
            local_steps: LocalSteps::new(planning.local_steps),
            votes: EndVotes::default(),
            published: 0,
            measured: (0, Vec::new()),
            told: Vec::new(),
            began: Instant::now(),
            questions: JoinSet::new(),
            asked: BTreeSet::new(),
            asked_at: None,
            least_members: planning.least_members,
            too_few: 0,
            may_sign: true,
        };
        service.state().plans_the_swarm = true;
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
                        // An immediate retry would fail again.
                        tokio::time::sleep(ASK_EVERY).await;
                    }
                }
            }
        }
    }

    /// Asks every member that has no question pending for its progress.
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
            let mut streams = self.streams.clone();
            let swarm = swarm.clone();
            let service = Arc::clone(&self.service);
            self.questions.spawn(async move {
                if member != service.local && service.prober.reach(member, Vec::new()).await.is_err() {
                    return (member, None);
                }
                (member, ask_progress(&mut streams, member, &swarm, None).await.ok().flatten())
            });
        }
    }

    fn on_answer(&mut self, member: PeerId, progress: Option<PeerProgress>) {
        self.asked.remove(&member);
        if let Some(progress) = progress {
            let left = progress.left.iter().filter_map(|peer| peer.parse().ok());
            self.failure_detector.hear(self.began.elapsed(), member, left);
            self.votes.hear(member, progress.asks_to_end);
            if let Some(costs) = progress.costs.filter(|_| progress.counter == self.measured.0) {
                self.local_steps.hear(member, costs);
            }
        }
    }

    /// This peer's signing key, if it may sign now. When its time is over, or it was replaced, a person is told once.
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
        // The operator's peer is present, and knows which of its own neighbours left.
        let standing = self.service.standing().await.unwrap_or_default();
        let members = self.service.members();
        let last = self.service.last_plan();
        if last.as_ref().map_or(0, PlanOffer::counter) < self.published {
            // This peer still fetches a model for it: another plan would have the same number.
            return Ok(());
        }
        let revoked = self.service.revocations()?;
        self.note_plan(last.as_ref(), &members)?;
        if let Some(costs) = standing.costs {
            self.local_steps.hear(self.service.local, costs);
        }
        self.votes.hear_own(self.service.local, standing.wish);
        if let Some(last) = last.as_ref().filter(|last| self.is_to_end(last, &standing, &members)) {
            return self.end_early(&signer, last, &standing).await;
        }
        let next = match self.next_members(&standing, &members, &revoked) {
            Some(next) if self.is_ours(last.as_ref()) || members.iter().any(|member| revoked.has_peer(member)) => next,
            Some(next) => return self.leave_to_a_person(&members, next).await,
            None if self.is_ours(last.as_ref())
                && self.wants_other_steps(last.as_ref(), &standing, &members).await? =>
            {
                members.clone()
            }
            None => return self.remark_too_few(&members).await,
        };
        let local_steps = self.local_steps.steps();
        let plan = tokio::task::spawn_blocking(move || design(&next, local_steps));
        let plan = plan.await.context(ErrorKind::Unexpected, "the planner stopped")??;
        let first_round = last.as_ref().map_or(0, |_| standing.round);
        let offer = PlanOffer::sign(&signer, last.as_ref(), first_round, &plan, revoked, PlannedBy::Peer)?;
        self.publish(offer, &members).await
    }

    /// Takes up a signed plan, and announces it to the members.
    async fn publish(&mut self, offer: PlanOffer, members: &[PeerId]) -> Result {
        let counter = offer.counter();
        let news = self.service.news(offer);
        match self.service.judge(news.clone()).await {
            PlanVerdict::Refused(why) => Err(Error::new(ErrorKind::Refused, why)),
            PlanVerdict::Older(_) => Ok(()),
            PlanVerdict::Taken | PlanVerdict::Known => {
                self.published = counter;
                self.spread(&news, members);
                self.service.keep_revocations(news.offer.revoked())
            }
        }
    }

    /// Returns `true` if the members have agreed to end, and there are rounds to save.
    fn is_to_end(&self, last: &PlanOffer, standing: &Standing, members: &[PeerId]) -> bool {
        let saves = standing.round + standing.rounds_to_end < standing.last_round;
        saves && !last.ends_early(standing.rounds_of_task) && self.votes.agree(members)
    }

    /// Signs the plan once more, with as many rounds as leave the models in agreement.
    async fn end_early(&mut self, signer: &Signer, last: &PlanOffer, standing: &Standing) -> Result {
        let end = EarlyEnd { of_task: standing.rounds_of_task, rounds: standing.rounds_to_end };
        let offer = last.sign_to_end(signer, standing.round, end)?;
        self.publish(offer, &self.service.members()).await
    }

    /// Takes note of a new current plan: measurements under another one no longer count.
    fn note_plan(&mut self, last: Option<&PlanOffer>, members: &[PeerId]) -> Result {
        let Some(last) = last.filter(|last| last.counter() != self.measured.0) else { return Ok(()) };
        let is_first = self.measured.0 == 0;
        let has_other_members = !is_first && self.measured.1 != members;
        self.local_steps.begin(last.plan()?.local_steps(), has_other_members);
        self.measured = (last.counter(), members.to_vec());
        self.told.clear();
        Ok(())
    }

    /// Returns `true` if the automatic planner may replace the plan: there is none, or no person applied it.
    fn is_ours(&self, last: Option<&PlanOffer>) -> bool {
        last.is_none_or(|last| last.planner() == PlannedBy::Peer)
    }

    /// The members of the next plan, if they should change.
    fn next_members(&mut self, standing: &Standing, members: &[PeerId], revoked: &Revocations) -> Option<Vec<PeerId>> {
        let now = self.began.elapsed();
        let mut waiting = self.service.who_waits();
        waiting.retain(|peer| !revoked.has_peer(peer));
        self.failure_detector.hear(now, self.service.local, standing.left.iter().copied());
        self.failure_detector.expel(members.iter().filter(|member| revoked.has_peer(member)).copied());
        self.failure_detector.next(now, members, &waiting)
    }

    /// Returns `true` if the same members should have a plan with another number of local steps: the one that a person
    /// chose, or a better one by the measurements.
    async fn wants_other_steps(
        &mut self,
        last: Option<&PlanOffer>,
        standing: &Standing,
        members: &[PeerId],
    ) -> Result<bool> {
        // A peer that has not begun to train has no last round, and one that ends takes no plan.
        let chosen = self.local_steps.chosen().filter(|_| standing.round + 1 < standing.last_round);
        match last.map(PlanOffer::plan).transpose()?.zip(chosen) {
            Some((plan, chosen)) => Ok(plan.local_steps() != chosen),
            None => Ok(self.has_better_steps(standing, members).await),
        }
    }

    /// Chooses another number of local steps for the same members, and returns `true`, if that is better and less than
    /// half of the training is over: later a new plan would not pay off.
    async fn has_better_steps(&mut self, standing: &Standing, members: &[PeerId]) -> bool {
        if 2 * standing.round >= standing.last_round {
            return false;
        }
        let Some(better) = self.local_steps.better(members) else { return false };
        self.local_steps.choose(better);
        self.service.hand_in(Wanted::LocalSteps(better.steps, better.costs)).await;
        true
    }

    /// Reports once to a person that the plan, which a person applied, should have these members.
    async fn leave_to_a_person(&mut self, members: &[PeerId], next: Vec<PeerId>) -> Result {
        if self.told == next {
            return Ok(());
        }
        let came = next.iter().filter(|peer| !members.contains(peer)).map(|peer| format!("{peer} waits"));
        let gone = members.iter().filter(|peer| !next.contains(peer)).map(|peer| format!("{peer} is gone"));
        let changes: Vec<String> = came.chain(gone).collect();
        let message = format!(
            "{}: the plan was applied by hand and stays until you apply another (mingle plan apply FILE), or leave it to the automatic \
             planner (mingle plan apply FILE --replaceable)",
            changes.join(", ")
        );
        self.told = next;
        self.service.hand_in(Wanted::Warning(message)).await;
        Ok(())
    }

    /// Reports that peers wait, and how many more a first plan needs.
    async fn remark_too_few(&mut self, members: &[PeerId]) -> Result {
        let waiting = self.service.who_waits().len();
        let there = members.len() + waiting;
        if waiting != self.too_few && waiting > 0 && there < self.least_members {
            let least = self.least_members;
            let missing = least - there;
            let message = format!(
                "{there} members are there, and a plan needs {least}: it is made when {missing} more have joined"
            );
            self.service.hand_in(Wanted::Warning(message)).await;
        }
        self.too_few = waiting;
        Ok(())
    }

    /// Announces a plan to the members. Pending peers ask for it, and members that cannot be reached receive it from
    /// their neighbours.
    fn spread(&self, news: &PlanNews, members: &[PeerId]) {
        for &member in members.iter().filter(|member| **member != self.service.local) {
            let mut streams = self.streams.clone();
            let news = news.clone();
            tokio::spawn(async move { announce(&mut streams, member, &news).await.ok() });
        }
    }
}

/// Designs a plan for these peers, each of which may dial every other; it survives the loss of any one of more than
/// two.
fn design(peers: &[PeerId], local_steps: u32) -> Result<Plan> {
    let names: Vec<String> = peers.iter().map(PeerId::to_string).collect();
    let edges: Vec<(usize, usize)> = (0..peers.len()).flat_map(|u| (0..u).map(move |v| (v, u))).collect();
    let doing = format!("cannot design a plan for {} peers", peers.len());
    let topology = Topology::new(names.clone(), &edges).context(ErrorKind::BadInput, &doing)?;
    let options = DesignOptions {
        medium: Medium::PointToPoint,
        local_steps,
        max_out_degree: Some(MAX_DEGREE),
        // Of two, neither can be lost.
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
            let plan = design(&peers, 20).unwrap();
            let bound: Vec<String> = plan.nodes().map(|(_, peer)| peer.unwrap().to_owned()).collect();
            assert_eq!(bound, peers.iter().map(PeerId::to_string).collect::<Vec<_>>());
            assert_eq!(plan.local_steps(), 20);
            let forecast = plan.forecast();
            assert!(forecast.max_out_degree <= MAX_DEGREE, "{n} peers: {forecast:?}");
            assert!(n == 2 || forecast.critical_nodes == 0, "{n} peers: {forecast:?}");
        }
    }
}
