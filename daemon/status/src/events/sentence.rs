//! Events as sentences.

use mingle_privacy::PrivacySpending;

use super::{
    AskedToEnd, CodecInUse, EarlyEnd, Event, LocalStepsInUse, ModelOf, NoiseInUse, OwnCard, SolvedProblem, StateOf,
};
use crate::results::skipped_most;
use mingle_membership::PlanNumber;

/// Seconds of waiting for neighbours after which the sentence names other possible causes.
const LONG_WAIT_S: u64 = 60;

impl Event {
    /// The sentence for a person.
    pub fn sentence(&self) -> String {
        match self {
            Self::Started { version, .. } => format!("started    mingle {version}"),
            Self::Listening { addresses, .. } => format!("listening  {}", addresses.join("\n           ")),
            Self::DialFailed { peer, attempts } => cannot_reach(peer.as_deref(), attempts),
            Self::Interface { socket, page, trainer } => {
                interface(socket.as_deref(), page.as_deref(), trainer.as_deref())
            }
            Self::Plan { hash, method, nodes, node, origin } => {
                format!("plan       blake3:{hash}  {method}, {nodes} peers, this is node {node}  ({origin})")
            }
            Self::Codec(_) | Self::Noise(_) => self.of_plan(),
            Self::WaitingForPlan { .. } | Self::WaitingForModel { .. } | Self::Waiting { .. } => self.of_waiting(),
            Self::Admitted { .. }
            | Self::TaskOf { .. }
            | Self::OwnCard(_)
            | Self::JoinRequested { .. }
            | Self::LocalSteps(_)
            | Self::AskedToEnd(_)
            | Self::EarlyEnd(_)
            | Self::NewPlan { .. }
            | Self::PlannedOut { .. }
            | Self::Borrowed(_)
            | Self::StateOf(_)
            | Self::Leaving { .. }
            | Self::Left => self.of_membership(),
            Self::Task { description, parameters, train_samples, test_samples, device } => format!(
                "task       {description}: {parameters} parameters, {train_samples} samples here, {test_samples} held out, on {device}"
            ),
            Self::Privacy { spending } | Self::PrivacySpent { spending } => of_privacy(spending),
            Self::WaitingForTrainer { .. }
            | Self::TrainerAttached { .. }
            | Self::TrainerGone { .. }
            | Self::TrainerStarted { .. }
            | Self::TrainerSaid { .. } => self.of_trainer(),
            Self::Joined { neighbours, missing, .. } => joined(*neighbours, missing),
            Self::Round { .. }
            | Self::Skipped { .. }
            | Self::Evaluated { .. }
            | Self::Best { .. }
            | Self::Suspended { .. }
            | Self::Resumed { .. }
            | Self::Rejoining { .. }
            | Self::Recovered { .. }
            | Self::SetBack { .. }
            | Self::Prolonged { .. }
            | Self::Finished { .. }
            | Self::Done { .. } => self.of_rounds(),
            Self::Warning { message } => format!("warning    {message}"),
            Self::Stopping { round, reason } => format!("stopping   after round {round}: {reason}"),
            Self::Problem { .. }
            | Self::Met { .. }
            | Self::Iterated { .. }
            | Self::Solved(_)
            | Self::Measured { .. }
            | Self::Learned { .. } => self.of_solving(),
            Self::Failed { message, .. } => format!("failed     {message}"),
            Self::Lost { count } => format!("lost       {count} events: this reader was too slow"),
        }
    }

    /// The sentence of an event of solving or learning in rounds.
    fn of_solving(&self) -> String {
        match self {
            Self::Problem { description, way } => format!("problem    {description}\n           {way}"),
            Self::Met { neighbours } => format!("joined     {}, solving starts", are_up(*neighbours)),
            Self::Iterated { iteration, residual, gap } => {
                format!("iteration  {iteration:>5}  residual {residual:.1e}{}", gap_in_words(*gap))
            }
            Self::Solved(solved) => in_words(solved),
            Self::Measured { round, metrics, .. } => {
                format!("round {round:>4} {}", metrics.in_columns()).trim_end().to_owned()
            }
            Self::Learned { rounds, best_round, own, seconds, sent_bytes, .. } => {
                let own = if own.is_empty() { String::new() } else { format!("; its own {}", own.in_columns()) };
                let sent = mingle_home::units::megabytes(*sent_bytes);
                format!(
                    "learned    in {rounds} rounds, the model after {best_round} is kept{own}; {seconds:.1} s, {sent:.1} MB sent"
                )
            }
            _ => String::new(),
        }
    }

    /// The sentence of an event of waiting before the beginning.
    fn of_waiting(&self) -> String {
        match self {
            Self::WaitingForPlan { swarm } => {
                format!("waiting    for a plan of the swarm {swarm} that names this peer")
            }
            Self::WaitingForModel { members: 1 } => {
                "waiting    for a model to begin with, of the other member of the plan".to_owned()
            }
            Self::WaitingForModel { members } => {
                format!("waiting    for a model to begin with, of any of the {members} other members of the plan")
            }
            Self::Waiting { missing, waited_s } => waiting(missing, *waited_s),
            _ => String::new(),
        }
    }

    /// Sentences about what a peer uses under its plan.
    fn of_plan(&self) -> String {
        match self {
            Self::Codec(chosen) => in_use(chosen),
            Self::Noise(shared) => of_noise(shared),
            _ => String::new(),
        }
    }

    /// The sentence of an event of membership: joining, plans and leaving.
    fn of_membership(&self) -> String {
        match self {
            Self::Admitted { peer } => format!("let in     by {peer}: waiting for a plan that names this peer"),
            Self::TaskOf { peer } => {
                format!("task       as {peer} has it: model, rounds, columns, classes and scaling")
            }
            Self::OwnCard(OwnCard { columns: 0, classes }) => {
                format!("card       {classes} classes, those of this peer's data; the others take them over")
            }
            Self::OwnCard(OwnCard { columns, classes: 0 }) => format!(
                "card       {columns} columns and a quantity, and the mean and deviation of each over this peer's data; the \
                 others take all that over"
            ),
            Self::OwnCard(OwnCard { columns, classes }) => format!(
                "card       {columns} columns and {classes} classes, and the mean and deviation of each column over this \
                 peer's data; the others take all that over"
            ),
            Self::JoinRequested { peer } => {
                format!("waiting    {peer} has an invitation and waits for a plan that names it")
            }
            Self::LocalSteps(LocalStepsInUse { steps, local_step_s, exchange_s }) => format!(
                "planning   {steps} local steps a round: a step takes {}, an exchange {} on the slowest link",
                in_milliseconds(*local_step_s),
                in_milliseconds(*exchange_s)
            ),
            Self::AskedToEnd(AskedToEnd { asks: true }) => "ending     this peer asks for the end of the training: it ends once more than half of the members ask, \
                 where the operator's peer runs with --planning auto"
                .to_owned(),
            Self::AskedToEnd(AskedToEnd { asks: false }) => "ending     this peer asks no longer for the end of the training".to_owned(),
            Self::EarlyEnd(EarlyEnd { last_round }) => {
                format!("ending     the members have agreed to end: the training is over after round {last_round}")
            }
            Self::NewPlan { counter, hash, nodes, node, first_round } => format!(
                "new plan   {}, blake3:{hash}: {nodes} peers, this is node {node}, from round {first_round} on",
                PlanNumber(*counter)
            ),
            Self::PlannedOut { counter } => {
                format!("planned out plan {} does not name this peer any more: its part is over", PlanNumber(*counter))
            }
            Self::Borrowed(ModelOf { peers }) => borrowed(peers),
            Self::StateOf(StateOf { peer }) => format!("optimizer  {peer} gives the state of its own, for the script to begin with"),
            Self::Leaving { weight_units } => {
                format!("leaving    with weight {:.4} to hand over", mingle_home::units::weight(*weight_units))
            }
            Self::Left => "left       all weight is handed over, and the others know".to_owned(),
            _ => String::new(),
        }
    }

    /// The sentence of an event of rounds, from the first to the last.
    fn of_rounds(&self) -> String {
        match self {
            Self::Round { round, .. } => format!("round      {round}"),
            Self::Skipped { rounds, from, to, total } => format!(
                "SKIPPED    {rounds} rounds, from {from} to {to}, where its neighbours are: this peer was too far behind \
                 ({total} rounds in all)"
            ),
            Self::Evaluated { round, metrics, weight_units, disagreement, .. } => {
                let disagreement = disagreement.map_or_else(|| "-".to_owned(), |value| format!("{value:.1e}"));
                let weight = mingle_home::units::weight(*weight_units);
                format!("round {round:>4} {}  disagreement {disagreement}  w {weight:.4}", metrics.in_columns())
            }
            Self::Best { best } => format!("best       {best}: best.safetensors"),
            Self::Suspended { node, reason } => format!("suspended  node {node}: {reason}"),
            Self::Resumed { node } => format!("resumed    node {node} is back"),
            Self::Rejoining { incarnation } => format!(
                "rejoining  this peer took part before and lost that state: start {incarnation} begins with w = 0 and takes the swarm's model"
            ),
            Self::Recovered { round, weight_units, record } => format!(
                "recovered  round {round} with weight {:.4}, from record {record}",
                mingle_home::units::weight(*weight_units)
            ),
            Self::SetBack { incarnation, discarded_units } => set_back(*incarnation, *discarded_units),
            Self::Prolonged { round, rounds } => {
                format!("prolonged  the run of {round} rounds goes on: the swarm trains {rounds} now")
            }
            Self::Finished { round, left } => finished(*round, *left),
            Self::Done { round, skipped, metrics, metrics_of, seconds, sent_bytes, .. } => format!(
                "{}{}{}, {seconds:.1} s, {:.1} MB sent",
                reached(*round, *skipped),
                metrics.in_passing(),
                metrics_of.map(|of| of.to_string()).unwrap_or_default(),
                mingle_home::units::megabytes(*sent_bytes)
            ),
            _ => String::new(),
        }
    }

    /// The sentence of an event of the program that trains for this peer.
    fn of_trainer(&self) -> String {
        match self {
            Self::WaitingForTrainer { socket } => format!("waiting    for a trainer, at {socket}"),
            Self::TrainerAttached { trainer } => format!("trainer    {trainer} is attached"),
            Self::TrainerGone { reason } => {
                format!("NO TRAINER {reason}; this peer mixes on without local steps as soon as a neighbour is ahead")
            }
            Self::TrainerStarted { command, process } => {
                format!("trainer    `{command}` is started, process {process}")
            }
            Self::TrainerSaid { line } => format!("trainer:   {line}"),
            _ => String::new(),
        }
    }
}

/// The peer or address that cannot be reached, with each attempt.
fn cannot_reach(peer: Option<&str>, attempts: &[String]) -> String {
    let whom = peer.unwrap_or("the bootstrap address");
    format!("warning    cannot reach {whom}\n           {}", attempts.join("\n           "))
}

/// The addresses of the peer's interfaces, with their purpose.
fn interface(socket: Option<&str>, page: Option<&str>, trainer: Option<&str>) -> String {
    let places = [
        socket.map(|path| format!("mingle status, watch, stop ({path})")),
        page.map(str::to_owned),
        trainer.map(|url| format!("trainers ({url})")),
    ];
    let places: Vec<String> = places.into_iter().flatten().collect();
    format!("interface  {}", if places.is_empty() { "none".to_owned() } else { places.join("  ") })
}

/// The last round, and the rounds before it that this peer skipped.
fn reached(round: u64, skipped: u64) -> String {
    match skipped {
        0 => format!("done       round {round}"),
        _ if skipped_most(round, skipped) => format!(
            "NOT WHOLE  round {round}, but this peer SKIPPED {skipped} of these rounds: its data have little part in the model"
        ),
        _ => format!("done       round {round}, {skipped} of them skipped"),
    }
}

fn of_noise(NoiseInUse { partners, own, pair, noise, colluders }: &NoiseInUse) -> String {
    if *partners == 0 {
        return format!(
            "noise      {noise}, all of it this peer's: shared noise would leave more in the models under this plan, which \
             mixes too slowly for it"
        );
    }
    format!(
        "noise      {noise} or more against any {colluders} members and the network: a part of {own:.2} is this peer's own, and \
         {pair:.2} with each of {partners} members is gone once all are mixed"
    )
}

fn in_use(CodecInUse { codec, reason }: &CodecInUse) -> String {
    let reason = reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
    format!("codec      {codec}{reason}")
}

fn finished(round: u64, has_left: bool) -> String {
    if has_left {
        return format!(
            "finished   this peer left after round {round} and is no member any more; a new plan can bring it back"
        );
    }
    format!(
        "finished   this run ended before, after {round} rounds; to go on, start all peers, or the operator of the swarm, with more --rounds; \
         to train anew, with --fresh"
    )
}

fn are_up(neighbours: usize) -> String {
    if neighbours == 1 { "1 neighbour is up".to_owned() } else { format!("{neighbours} neighbours are up") }
}

/// The nodes that are waited for. After a while also other causes: a peer whose neighbours have ended their runs would
/// wait for ever.
fn waiting(missing: &[usize], waited_s: u64) -> String {
    let nodes = list(missing);
    if waited_s < LONG_WAIT_S {
        return format!("waiting    for nodes {nodes}");
    }
    format!(
        "waiting    for nodes {nodes}, since {waited_s} s: `mingle ping` says whether an address answers; if their runs have ended, \
         `mingle stop` ends this one too"
    )
}

fn joined(neighbours: usize, missing: &[usize]) -> String {
    let without = if missing.is_empty() { String::new() } else { format!(" without nodes {}", list(missing)) };
    format!("joined     {}, training starts{without}", are_up(neighbours))
}

fn list(nodes: &[usize]) -> String {
    let words: Vec<String> = nodes.iter().map(usize::to_string).collect();
    words.join(", ")
}

/// The privacy spent, and the consequence where it is exhausted.
fn of_privacy(spending: &PrivacySpending) -> String {
    let PrivacySpending { settings, changes, epsilon, changes_left, is_spent } = spending;
    let clip = settings.clip();
    let noise = settings.noise();
    let most = settings.epsilon_max();
    let delta = settings.delta();
    let against = settings.against_whom();
    let spent = format!("epsilon {epsilon:.3} of {most} at delta {delta:e}{against} for {changes} changes");
    if *is_spent {
        return format!(
            "PRIVACY    is spent: {spent}.\n           This peer takes no local steps any more, and goes on mixing what the \
             others train"
        );
    }
    format!("privacy    {spent}, {changes_left} more to come; each with clip {clip}, noise {noise}")
}

fn set_back(incarnation: u64, discarded_units: u64) -> String {
    format!(
        "SET BACK   neighbours have seen a later state of this peer than its records hold: they are an old copy, or \
         some are missing.\n           Weight {} is given up, since it may be elsewhere by now; start {incarnation} \
         goes on with w = 0 and takes the swarm's model",
        mingle_home::units::exact_weight(u128::from(discarded_units))
    )
}

fn in_milliseconds(seconds: f64) -> String {
    format!("{:.3} ms", 1e3 * seconds)
}

/// The members whose models this peer begins with.
fn borrowed(peers: &[String]) -> String {
    match peers {
        [peer] => format!("model      the one of {peer}, to begin with"),
        peers => format!("model      the median of those of {}, to begin with", peers.join(", ")),
    }
}

fn in_words(solved: &SolvedProblem) -> String {
    let SolvedProblem { iterations, converged, objective, gap, kkt, violation, seconds, sent_bytes, .. } = *solved;
    format!(
        "{} after {iterations} iterations, objective {objective:.12}{}, KKT residual {kkt:.1e}, constraints to \
         {violation:.1e}, {seconds:.1} s, {:.1} MB sent",
        if converged { "solved    " } else { "NOT SOLVED" },
        gap_in_words(gap),
        mingle_home::units::megabytes(sent_bytes)
    )
}

fn gap_in_words(gap: Option<f64>) -> String {
    gap.map_or_else(String::new, |gap| format!(", gap {gap:.1e}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use mingle_net::transport::NetworkCounts;

    /// Events of each kind that a sentence function handles for several kinds.
    const SORTED: [&str; 39] = [
        r#"{"event":"waiting_for_plan","swarm":"ward7"}"#,
        r#"{"event":"waiting_for_model","members":1}"#,
        r#"{"event":"waiting_for_model","members":2}"#,
        r#"{"event":"waiting","missing":[1]}"#,
        r#"{"event":"admitted","peer":"A"}"#,
        r#"{"event":"task_of","peer":"A"}"#,
        r#"{"event":"own_card","columns":0,"classes":2}"#,
        r#"{"event":"own_card","columns":2,"classes":0}"#,
        r#"{"event":"own_card","columns":2,"classes":2}"#,
        r#"{"event":"join_requested","peer":"A"}"#,
        r#"{"event":"new_plan","counter":2,"hash":"e17e","nodes":3,"node":0,"first_round":9}"#,
        r#"{"event":"planned_out","counter":2}"#,
        r#"{"event":"borrowed","peers":["A"]}"#,
        r#"{"event":"state_of","peer":"A"}"#,
        r#"{"event":"leaving","weight_units":1}"#,
        r#"{"event":"left"}"#,
        r#"{"event":"waiting_for_trainer","socket":"mingle.sock"}"#,
        r#"{"event":"trainer_attached","trainer":"train.py"}"#,
        r#"{"event":"trainer_gone","reason":"it ended"}"#,
        r#"{"event":"trainer_started","command":"python train.py","process":7}"#,
        r#"{"event":"trainer_said","line":"hello"}"#,
        r#"{"event":"round","round":1,"weight_units":1}"#,
        r#"{"event":"skipped","rounds":2,"from":1,"to":3,"total":2}"#,
        r#"{"event":"evaluated","round":1,"metrics":{"loss":0.5},"train_loss":null,"weight_units":1,"disagreement":null,"sent_bytes":1}"#,
        r#"{"event":"best","best":{"metric":"loss","value":0.5,"round":1}}"#,
        r#"{"event":"suspended","node":1,"reason":"it is late"}"#,
        r#"{"event":"resumed","node":1}"#,
        r#"{"event":"rejoining","incarnation":2}"#,
        r#"{"event":"recovered","round":1,"weight_units":1,"record":1}"#,
        r#"{"event":"set_back","incarnation":2,"discarded_units":1}"#,
        r#"{"event":"prolonged","round":1,"rounds":2}"#,
        r#"{"event":"finished","round":1,"left":false}"#,
        r#"{"event":"done","round":1,"metrics":{},"weight_units":1,"seconds":1.0,"sent_bytes":1,"peak_resident_bytes":null}"#,
        r#"{"event":"problem","description":"lasso","way":"admm"}"#,
        r#"{"event":"met","neighbours":1}"#,
        r#"{"event":"iterated","iteration":1,"residual":0.5}"#,
        r#"{"event":"solved","iterations":1,"converged":true,"objective":0.5,"kkt":0.1,"violation":0.1,"seconds":1.0,"sent_bytes":1,"peak_resident_bytes":null}"#,
        r#"{"event":"measured","round":1,"metrics":{},"own":{}}"#,
        r#"{"event":"learned","rounds":1,"best_round":1,"metrics":{},"own":{},"seconds":1.0,"sent_bytes":1,"peak_resident_bytes":null}"#,
    ];

    #[test]
    fn every_event_that_is_told_with_others_of_its_sort_says_something() {
        for line in SORTED {
            let event: Event = serde_json::from_str(line).unwrap();
            assert!(!event.sentence().is_empty(), "{line}");
        }
    }

    #[test]
    fn a_run_that_skipped_most_of_its_rounds_does_not_end_like_a_whole_one() {
        let done = |skipped: u64| {
            let line = format!(
                r#"{{"event":"done","round":200,"skipped":{skipped},"metrics":{{}},"weight_units":1,"seconds":1.0,"sent_bytes":1,"peak_resident_bytes":null}}"#
            );
            serde_json::from_str::<Event>(&line).unwrap().sentence()
        };
        assert!(done(0).starts_with("done       round 200, 1.0 s"), "{}", done(0));
        assert!(done(100).starts_with("done       round 200, 100 of them skipped, 1.0 s"), "{}", done(100));
        assert!(done(101).starts_with("NOT WHOLE  round 200") && done(101).contains("SKIPPED 101"), "{}", done(101));
    }

    #[test]
    fn who_waits_long_for_neighbours_hears_what_else_may_be_the_matter() {
        let joined = |missing| Event::Joined { neighbours: 2, missing, network: NetworkCounts::default() }.sentence();
        assert!(joined(vec![]).ends_with("training starts"));
        assert!(joined(vec![1, 3]).ends_with("training starts without nodes 1, 3"), "{}", joined(vec![1, 3]));
        let said = |waited_s| Event::Waiting { missing: vec![0, 2], waited_s }.sentence();
        assert_eq!(said(LONG_WAIT_S - 1), "waiting    for nodes 0, 2");
        assert!(said(75).starts_with("waiting    for nodes 0, 2, since 75 s: "), "{}", said(75));
        assert!(said(75).contains("mingle stop"), "{}", said(75));
    }
}
