//! `mingle plan apply`: the operator gives a swarm its first plan, or a new one.

use std::collections::BTreeMap;

use mingle_net::printable::quoted;
use mingle_peer::error::Context;
use mingle_peer::membership::{PlanNumber, PlanVerdict, PlannedBy};
use mingle_peer::plan_apply::{AppliedPlan, ApplyOptions, NextPlan, PlanWarning, apply};
use mingle_peer::{Error, ErrorKind, Home, Result, plan};
use mingle_planner::Plan;

use super::operator::signer_of;
use crate::cli::{PlanApplyArgs, multiaddrs};
use crate::out;

/// Signs the plan, announces it to every member that can be reached, and prints their answers.
pub(super) fn execute(arguments: &PlanApplyArgs, json: bool) -> Result {
    let home = Home::at(arguments.home.home.as_deref())?;
    let signer = signer_of(&home)?;
    signer.check_time()?;
    let next = match &arguments.plan {
        Some(path) => {
            let plan = plan::read(path)?;
            check_expected(&plan, arguments.expect.as_deref())?;
            NextPlan::Given(Box::new(plan))
        }
        None => NextPlan::Without(arguments.without.clone()),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context(ErrorKind::Unexpected, "cannot start the event loop")?;
    let planner = if arguments.replaceable { PlannedBy::Peer } else { PlannedBy::Person };
    let options = ApplyOptions { via: multiaddrs(&arguments.via), timeout: arguments.timeout, planner };
    let warn = |warning: PlanWarning| remark!("warning: {warning}");
    runtime.block_on(async {
        let applied = apply(&home, signer, next, &options, &warn).await?;
        report(&applied, json);
        applied.keep(&home)
    })
}

fn check_expected(plan: &Plan, expected: Option<&str>) -> Result {
    let Some(expected) = expected else { return Ok(()) };
    let hash = plan.hash().to_string();
    let wanted = expected.strip_prefix("blake3:").unwrap_or(expected);
    if wanted.len() >= 8 && hash.starts_with(wanted) {
        return Ok(());
    }
    let why = if wanted.len() < 8 { "give at least 8 digits of it" } else { "it was changed since you looked at it" };
    Err(Error::new(ErrorKind::Integrity, format!("the plan is blake3:{hash}, not {expected}: {why}")))
}

fn report(applied: &AppliedPlan, json: bool) {
    let AppliedPlan { plan, verdicts, .. } = applied;
    let words = |verdict: &Option<PlanVerdict>| match verdict {
        Some(PlanVerdict::Taken) => "accepted".to_owned(),
        Some(PlanVerdict::Known) => "follows it already".to_owned(),
        Some(PlanVerdict::Older(newer)) => {
            format!("follows plan {}, which is newer", PlanNumber(newer.offer.counter()))
        }
        Some(PlanVerdict::Refused(why)) => format!("refused: {}", quoted(why)),
        None => "not reached: it hears of the plan from its neighbours".to_owned(),
    };
    if json {
        let members: BTreeMap<String, String> =
            verdicts.iter().map(|(peer, verdict)| (peer.to_string(), words(verdict))).collect();
        out::line(serde_json::json!({
            "schema": "mingle.plan-apply/1",
            "counter": plan.generation().counter,
            "first_round": plan.first_round(),
            "signed_hash": hex::encode(plan.offer.hash()),
            "previous": (plan.offer.previous() != [0; 32]).then(|| hex::encode(plan.offer.previous())),
            "hash": plan.plan.hash().to_string(),
            "accepted": applied.accepted(),
            "members": members,
        }));
        return;
    }
    let number = PlanNumber(plan.generation().counter);
    out::line(format!("plan {number}     blake3:{}, from round {} on", plan.plan.hash(), plan.first_round()));
    for (peer, verdict) in verdicts {
        out::line(format!("{peer}  {}", words(verdict)));
    }
}
