//! One snapshot of a peer in lines of text.

use mingle_peer::status::{
    MulticastStatus, NeighbourStatus, PeerState, RobustReceiving, Status, TrainerStatus, WeightAccount,
};
use mingle_peer::training::{MomentumTaken, PrivacySpending};
use mingle_peer::units;

/// A summary of the peer in a few lines.
pub fn summary(status: &Status) -> Vec<String> {
    let is_solving = status.state == PeerState::Solving || status.residual.is_some();
    let mut lines = vec![head(status, is_solving)];
    if let Some(waited_for) = waited_for(status) {
        lines.push(waited_for);
    } else if is_solving {
        lines.extend(solving(status));
    } else {
        lines.push(learning(status));
        lines.extend(round_costs(status));
        lines.extend([mixing(status), ledger(status)]);
        lines.extend(multicast(status));
        lines.extend(taken_by_auto(status));
        lines.extend(status.privacy.as_ref().map(privacy));
        lines.extend(status.trainer.as_ref().map(trainer));
        lines.extend(status.robust.as_ref().map(|robust| receiving(robust, &status.neighbours)));
    }
    lines
}

/// The state, the round, the time left and the plan.
fn head(status: &Status, is_solving: bool) -> String {
    let unit = if is_solving && status.evaluation.is_none() { "iteration" } else { "round" };
    let mut head = format!("{}  {unit} {}/{}", status.state, status.round, status.rounds);
    if let Some(seconds) = status.eta_s {
        head += &format!("  eta {}", units::time_span(seconds));
    }
    if let Some(plan) = &status.plan {
        head += &format!("  plan {} {}", plan.hash.get(..8).unwrap_or(&plan.hash), plan.method);
    }
    if let Some(node) = status.node {
        head += &format!("  node {node}");
    }
    head
}

/// The event for which a peer waits before it begins; none once it has begun.
fn waited_for(status: &Status) -> Option<String> {
    match status.state {
        PeerState::WaitingForTrainer => {
            Some("a program that trains attaches to mingle.sock in the home: docs/trainer-protocol.md".to_owned())
        }
        PeerState::WaitingForPlan => Some(waiting_for_plan(status.waiting)),
        PeerState::WaitingForModel => {
            Some("it begins as soon as a member of the plan answers with its model".to_owned())
        }
        _ => None,
    }
}

/// The task of a problem, how far it is solved or learned, and the traffic.
fn solving(status: &Status) -> [String; 2] {
    let task = status.task.clone().unwrap_or_default();
    let progress = match &status.evaluation {
        Some(evaluated) => evaluated.metrics.in_columns(),
        None => {
            let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1e}"));
            let gap = status.gap.map_or_else(String::new, |gap| format!("  gap {gap:.1e}"));
            format!("residual {}{gap}", number(status.residual))
        }
    };
    let sent = units::megabytes(status.sent_bytes);
    let received = units::megabytes(status.received_bytes);
    [format!("{task}  {progress}"), format!("{sent:.1} MB sent  {received:.1} MB received")]
}

/// The codec and the momentum across rounds, where `auto` took them, and overlap.
fn taken_by_auto(status: &Status) -> Option<String> {
    let encoding = status.encoding.as_ref();
    let codec = encoding.and_then(|sent| Some(format!("codec {}: {}", sent.codec, sent.reason.as_ref()?)));
    let taken = status.momentum_across_rounds.as_ref().filter(|taken| taken.choice != "off");
    let momentum = taken.map(|MomentumTaken { choice, momentum }| match choice.as_str() {
        "auto" => format!("momentum across rounds {momentum:.2}: auto, by what the plan bears"),
        _ => format!("momentum across rounds {momentum:.2}"),
    });
    let overlap = status.overlap.map(|overlap| overlap.to_string());
    let words: Vec<String> = [codec, momentum, overlap].into_iter().flatten().collect();
    (!words.is_empty()).then(|| words.join("  "))
}

/// The attached trainer, or a note that there is none.
fn trainer(TrainerStatus { attached }: &TrainerStatus) -> String {
    match attached {
        Some(trainer) => format!("trained by {trainer}"),
        None => "NO TRAINER: this peer mixes on without local steps as soon as a neighbour is ahead".to_owned(),
    }
}

/// The pending peers that wait with a peer without a plan.
fn waiting_for_plan(invited: usize) -> String {
    match invited {
        0 => "no other peer with an invitation is here yet: at the operator, `mingle invite` lets others in and `mingle plan apply` makes \
              the plan"
            .to_owned(),
        1 => "1 peer with an invitation waits here too, for `mingle plan apply`".to_owned(),
        _ => format!("{invited} peers with an invitation wait here too, for `mingle plan apply`"),
    }
}

/// The last evaluation and the training loss.
fn learning(status: &Status) -> String {
    let measured = status.evaluation.as_ref().filter(|last| !last.metrics.is_empty());
    let evaluation = measured.map_or_else(
        || "not evaluated yet".to_owned(),
        |last| format!("{}  (round {})", last.metrics.in_columns(), last.round),
    );
    format!("{evaluation}  train loss {}", number(status.train_loss, 3))
}

/// The local steps of a round, and the times of a step and of the exchange.
fn round_costs(status: &Status) -> Option<String> {
    let local_steps = status.plan.as_ref().map(|plan| plan.local_steps).filter(|steps| *steps > 0)?;
    let in_milliseconds = |seconds: Option<f64>| number(seconds.map(|seconds| 1e3 * seconds), 3);
    let step = in_milliseconds(status.local_step_s);
    let exchange = in_milliseconds(status.exchange_s);
    let steps = if local_steps == 1 { "step" } else { "steps" };
    let advice = longer_rounds(local_steps, status).unwrap_or_default();
    Some(format!("{local_steps} local {steps} a round  ms: {step} a step, {exchange} an exchange{advice}"))
}

/// The number of local steps that take twice as long as an exchange, where those of the plan take less than one.
fn longer_rounds(local_steps: u32, status: &Status) -> Option<String> {
    let (step, exchange) = (status.local_step_s.filter(|step| *step > 0.0)?, status.exchange_s?);
    let is_short = exchange > f64::from(local_steps) * step;
    let wanted = (2.0 * exchange / step).ceil();
    is_short
        .then(|| format!(": the exchange takes longer than the steps, which a plan with --local-steps {wanted} avoids"))
}

/// The privacy spent.
fn privacy(spending: &PrivacySpending) -> String {
    let PrivacySpending { settings, changes, epsilon, changes_left, is_spent } = spending;
    let most = settings.epsilon_max();
    let delta = settings.delta();
    let left = if *is_spent { "spent: no more local steps".to_owned() } else { format!("{changes_left} more to come") };
    let against = settings.against_whom();
    format!("privacy: epsilon {epsilon:.3} of {most} at delta {delta:e}{against}  {changes} changes  {left}")
}

/// The clipped parcels of each neighbour.
fn receiving(robust: &RobustReceiving, neighbours: &[NeighbourStatus]) -> String {
    let share = |neighbour: &NeighbourStatus| {
        let link = neighbour.incoming?;
        let clipped = link.clipped.filter(|clipped| clipped.parcels > 0)?;
        Some(format!("node {} {} of {}", neighbour.node, clipped.parcels, link.parcels))
    };
    let shares: Vec<String> = neighbours.iter().filter_map(share).collect();
    let whose = if shares.is_empty() { "no parcel yet".to_owned() } else { shares.join(", ") };
    let radius = robust.radius.map_or_else(|| "-".to_owned(), |radius| format!("{radius:.2e}"));
    format!("robust {}: radius {radius}  clipped: {whose}", robust.rule)
}

/// The disagreement, its contraction, and the push-sum weight.
fn mixing(status: &Status) -> String {
    let disagreement = status.disagreement.map_or_else(|| "-".to_owned(), |value| format!("{value:.1e}"));
    let contraction = status.contraction;
    format!(
        "disagreement {disagreement}  a round leaves {} (mixing alone: {})  w {:.4}  w/w* {}",
        number(contraction.observed, 3),
        number(contraction.forecast, 3),
        status.weight.value,
        number(status.weight.share, 3),
    )
}

fn ledger(status: &Status) -> String {
    let encoding = status.encoding.as_ref().and_then(|encoding| encoding.words(status.sent_bytes));
    let encoding = encoding.map(|words| format!(" as {words}")).unwrap_or_default();
    let durable = if status.durable { "on disk" } else { "in memory only" };
    let mut line = format!(
        "{:.1} MB sent{encoding}  {:.1} MB received  weight {durable}  incarnation {}",
        units::megabytes(status.sent_bytes),
        units::megabytes(status.received_bytes),
        status.incarnation
    );
    if let Some(device) = &status.device {
        line += &format!("  on {device}");
    }
    if status.followers > 0 {
        line += &format!("  followers {}", status.followers);
    }
    if !status.refusals.is_empty() {
        let reasons: Vec<String> = status.refusals.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
        line += &format!("  refused since it started: {}", reasons.join(", "));
    }
    line
}

/// Payloads by multicast, and the neighbours with which they go by stream.
fn multicast(status: &Status) -> Option<String> {
    let MulticastStatus { group, traffic } = status.multicast.as_ref()?;
    let by_stream = status.neighbours.iter().filter(|neighbour| !neighbour.multicast.is_some_and(|link| link.hears));
    let by_stream: Vec<String> = by_stream.map(|neighbour| neighbour.node.to_string()).collect();
    let mut line = format!("multicast {group}: {}", traffic.words());
    if !by_stream.is_empty() {
        line += &format!("; by stream with nodes {}", by_stream.join(", "));
    }
    Some(line)
}

/// A table of the neighbours: a heading, and a line for each.
pub fn table(neighbours: &[NeighbourStatus]) -> Vec<String> {
    let mut lines = vec![format!(
        "{:<5} {:<10} {:<7} {:>8} {:>7} {:>15} {:>15} {:>9} {:>10} {:>6}  {}",
        "NODE",
        "STATE",
        "LINK",
        "RTT MS",
        "BEHIND",
        "PARCELS OUT/IN",
        "MB OUT/IN",
        "UNACKED",
        "TOOK/GAVE",
        "AHEAD",
        "PEER"
    )];
    for neighbour in neighbours {
        let parcels = format!(
            "{}/{}",
            neighbour.outgoing.map_or(0, |link| link.parcels),
            neighbour.incoming.map_or(0, |link| link.parcels)
        );
        let bytes =
            format!("{:.1}/{:.1}", units::megabytes(neighbour.sent_bytes), units::megabytes(neighbour.received_bytes));
        let owed = neighbour.outgoing.map_or(0.0, |link| units::weight(link.unacknowledged_units));
        lines.push(format!(
            "{:<5} {:<10} {:<7} {:>8} {:>7} {:>15} {:>15} {:>9.4} {:>10} {:>6}  {}",
            neighbour.node,
            neighbour.state.name(),
            neighbour.directions(),
            number(neighbour.round_trip_ms, 1),
            neighbour.steps_behind,
            parcels,
            bytes,
            owed,
            neighbour.account.map_or_else(|| "-".to_owned(), took_and_gave),
            neighbour.account.map_or_else(|| "-".to_owned(), |account| format!("{:+.1}", account.periods_ahead)),
            neighbour.peer
        ));
    }
    lines
}

/// The weight that a neighbour took and gave of late, in percent of that in the plan.
fn took_and_gave(account: WeightAccount) -> String {
    let percent = |share: Option<f64>| number(share.map(|share| 100.0 * share), 0);
    format!("{}/{}%", percent(account.taken), percent(account.given))
}

/// A number, or `-` if it is not known.
fn number(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.decimals$}"))
}

#[cfg(test)]
mod tests {
    use mingle_peer::status::PlanFacts;

    use super::*;

    #[test]
    fn steps_that_are_shorter_than_an_exchange_are_said_with_the_number_that_is_not() {
        let costs = |local_steps, step_ms: f64, exchange_ms: f64| {
            let empty = String::new;
            let plan = PlanFacts { hash: empty(), method: empty(), nodes: 3, origin: empty(), local_steps };
            let mut status = Status { plan: Some(plan), ..Status::starting(empty()) };
            status.local_step_s = Some(step_ms / 1e3);
            status.exchange_s = Some(exchange_ms / 1e3);
            round_costs(&status).unwrap_or_default()
        };
        assert_eq!(costs(10, 2.0, 20.0), "10 local steps a round  ms: 2.000 a step, 20.000 an exchange");
        let short = costs(1, 2.0, 21.0);
        assert!(short.starts_with("1 local step a round") && short.contains("--local-steps 21 avoids"), "{short}");
    }

    #[test]
    fn a_peer_that_has_not_begun_says_what_it_waits_for() {
        for (state, words, what) in [
            (PeerState::WaitingForPlan, "waiting for a plan", "mingle invite"),
            (PeerState::WaitingForModel, "waiting for a model", "a member of the plan answers"),
            (PeerState::WaitingForTrainer, "waiting for its trainer", "attaches to mingle.sock"),
        ] {
            let lines = summary(&Status { state, ..Status::starting("12D3KooWExample".to_owned()) });
            assert!(lines[0].starts_with(words) && lines[1].contains(what), "{lines:?}");
        }
    }

    #[test]
    fn a_peer_that_solves_shows_its_residual_and_the_gap_of_a_robust_model() {
        let status = Status { residual: Some(0.02), ..Status::starting("12D3KooWExample".to_owned()) };
        assert!(summary(&status)[1].ends_with("residual 2.0e-2"));
        assert!(summary(&Status { gap: Some(3e-4), ..status })[1].ends_with("residual 2.0e-2  gap 3.0e-4"));
    }
}
