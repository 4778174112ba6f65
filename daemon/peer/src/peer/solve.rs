//! A peer that solves a problem or learns in rounds with the others, over collectives.

use std::path::PathBuf;
use std::sync::Arc;

use libp2p::identity::Keypair;
use mingle_net::transport::Network;
use mingle_solving::{CommunicationPlan, Problem, RoundTask, SumPolicy, Sums};

use super::{Access, Incoming, Outcome, Peer, Streams, boot_nonce};
use crate::error::{Error, ErrorKind, Result};
use crate::events::Event;
use crate::member::Member;
use crate::membership::{self, PlanNumber};
use crate::place::Place;
use crate::solving::Explain;
use crate::solving::host::{self, End};
use crate::timeline::Timeline;

/// A problem's messages are no parcels: parcels of any size are refused.
const NO_PARCELS: usize = 0;

/// The common work of the peers.
pub(super) enum CommonWork {
    /// The problem in this file.
    File(PathBuf),
    /// Learning in rounds: the task of the members of a plan.
    Rounds(TaskOfMembers),
}

/// The task of the members of a place's plan.
pub(super) type TaskOfMembers = Box<dyn Fn(&Place) -> Result<Arc<dyn RoundTask>> + Send + Sync>;

impl CommonWork {
    /// The problem for the members of a plan.
    fn problem(&self, place: &Place) -> Result<Problem> {
        let plan = &place.plan.plan;
        let task = match self {
            Self::File(path) => return Problem::read(path, plan).map_err(Explain::explain),
            Self::Rounds(of_members) => of_members(place)?,
        };
        let names = plan.nodes().map(|(name, _)| name.to_owned()).collect();
        Ok(Problem::of_rounds(task, Arc::new(names)))
    }
}

impl Peer {
    /// Takes part in solving the problem, along one plan after the other if the operator replaces it.
    pub(super) async fn solve(
        &mut self,
        subject: CommonWork,
        place: Place,
        network: &Network,
        access: Access<'_>,
        incoming: Incoming,
    ) -> Result<Outcome> {
        let boot_nonce = boot_nonce()?;
        let fresh = self.options.fresh;
        let policy = self.options.sums;
        let keypair = self.identity.keypair().clone();
        let streams = Streams { boot_nonce, dimension: NO_PARCELS, timeline: Timeline::default() };
        let (mut receivers, mut member) = self.join_plan(place, network, access, incoming, streams)?;
        loop {
            let place = &member.connections.place;
            let problem = subject.problem(place)?;
            let communication = Arc::new(
                problem.communication(&place.plan.plan, Arc::clone(&place.schedule)).map_err(Explain::explain)?,
            );
            problem.check_links(&communication).map_err(Explain::explain)?;
            let sums = protect_sums(policy, &keypair, place, &problem)?;
            introduce(&problem, &communication, &sums, &mut member);
            match host::take_part(&mut member, &problem, communication, sums, fresh, &mut receivers).await? {
                End::Solved => return Ok(Outcome::Solved),
                End::Replanned(plan) if member.is_named_by(&plan) => {
                    member.take_up(*plan, boot_nonce, NO_PARCELS, &mut receivers).await?;
                }
                End::Replanned(plan) => {
                    let number = PlanNumber(plan.generation().counter);
                    let message = format!("plan {number} of the operator does not name this peer any more");
                    return Err(Error::new(ErrorKind::Refused, message).hint(
                        "started again, it asks to be admitted by the invitation that it came with, while that holds, unless the operator has expelled it",
                    ));
                }
            }
        }
    }
}

/// The sums of a problem along a plan: masked, unless the user or the number of members rules that out.
fn protect_sums(policy: SumPolicy, keypair: &Keypair, place: &Place, problem: &Problem) -> Result<Sums> {
    let protection = policy.protection(place.peers.len()).map_err(|few| Error::of(ErrorKind::Refused, few))?;
    if !protection.is_masked() {
        return Ok(Sums::Plain(protection));
    }
    let context = blake3::hash(&[b"mingle masked sums of a plan 1", &problem.hash[..], place.hash.as_bytes()].concat());
    let member = membership::sum_member(keypair, &place.peers, *context.as_bytes());
    let lacking = || Error::new(ErrorKind::Refused, "a member of the plan has no Ed25519 identity to mask sums with");
    member.map(|member| Sums::Masked(Arc::new(member))).ok_or_else(lacking)
}

fn introduce(problem: &Problem, communication: &CommunicationPlan, sums: &Sums, member: &mut Member<'_>) {
    let description = problem.describe();
    let way = format!("{}; sums are {}", problem.way(communication), sums.protection().describe());
    member.log.tell(Event::Problem { description: description.clone(), way });
    if !sums.protection().is_masked() {
        member.warn(format!("sums are {}", sums.protection().describe()));
    }
    let name = problem.names.get(member.connections.place.node.index()).map_or("", String::as_str);
    if problem.defaulted().contains(&name) {
        member.warn(format!(
            "the problem file has no [[node]] for {name}, this peer: it takes the defaults, wish 0, weight 1, price 0, at least 0"
        ));
    }
    member.board.update(|status| {
        status.task = Some(description);
        status.rounds = problem.limits.iterations;
        status.durable = false;
    });
}
