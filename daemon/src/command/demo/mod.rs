//! `mingle demo`: a whole swarm on this machine, for real.
//!
//! Starts one process of this program per peer, on loopback, each with its own key, home and port, and follows their
//! events. The first peer has the plan; the others know only its address. Afterwards the demo trains the same model
//! without a swarm, audits the peers' books, and draws what happened.

mod baselines;
mod joining;
mod kill;
mod metric;
mod output;
mod peer_options;
mod problem;
mod progress;
mod report;
mod swarm;
mod tally;

use std::time::{Duration, Instant};

use mingle_builtin::options::{PrivacyOptions, parse_policy};
use mingle_builtin::task::{self, Parts};
use mingle_peer::error::Context;
use mingle_peer::events::Event;
use mingle_peer::training::Metrics;
use mingle_peer::{Error, ErrorKind, Home, Identity, Result, encodings, plan};
use mingle_planner::{DesignOptions, Method, Plan, Topology};
use mingle_protocol::Codec;
use tokio::sync::mpsc;

use super::timeline;
use crate::cli::{DemoArgs, Switch};
use crate::event_loop;
use crate::limits;
use crate::signals::StopRequests;
use baselines::Baselines;
use joining::Joining;
use kill::Kills;
use output::Output;
use peer_options::{keeps_records, peer_arguments, training_arguments};
use progress::Progress;
use report::{PeerResult, Report};
use swarm::{PeerEvent, PeerProcesses};
use tally::Tally;

/// More processes than this on one machine would measure the machine.
const MAX_PEERS: usize = 256;
/// After the demo is interrupted, peers that have not stopped by then are killed: nobody waits for what they would still
/// evaluate and write, and what they keep for a later start is on disk at any moment.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// Runs the demo.
pub(super) fn execute(arguments: &DemoArgs, json: bool) -> Result {
    if !(2..=MAX_PEERS).contains(&arguments.peers) {
        return Err(Error::new(
            ErrorKind::BadInput,
            format!("--peers {}: a demo has between 2 and {MAX_PEERS} peers", arguments.peers),
        ));
    }
    if let Some(kind) = arguments.problem {
        if arguments.codec != Codec::F32 {
            let message = "--codec is for models: what peers that solve a problem say is exact";
            return Err(Error::new(ErrorKind::BadInput, message).hint("leave --codec or --problem away"));
        }
        return problem::execute(arguments, kind, json);
    }
    if arguments.restart && !keeps_records(arguments) {
        return Err(Error::new(
            ErrorKind::BadInput,
            "--restart: without records a killed peer comes back without weight",
        )
        .hint("leave --durability off away"));
    }
    limits::check("local-steps", arguments.local_steps.into(), 1..=limits::MOST_LOCAL_STEPS)?;
    let kills = Kills::parse(&arguments.kill, arguments.peers, arguments.rounds())?;
    // Reads the data before anything is started: what is wrong with them is said once, not by every peer.
    let mut parts = Parts::load(&arguments.data, arguments.task, arguments.seed)?;
    parts.deal(&arguments.split, arguments.peers, arguments.seed)?;
    parts.task(&arguments.model)?;
    task::open_device(&arguments.device)?;
    let arguments = &DemoArgs { weight: parts.weight(arguments.weight, arguments.peers)?, ..arguments.clone() };
    let training = training_arguments(arguments);
    task::check_options(&training)?;
    training.optimizer.settings(training.learning_rate)?;
    training.optimizer.rates(training.learning_rate, training.rounds)?;
    PrivacyOptions::from(arguments.privacy).settings()?;
    parse_policy(&arguments.wait)?;
    let plan = make_plan(arguments)?;
    let output = Output::create(&arguments.output)?;
    let runtime = event_loop::start()?;
    runtime.block_on(Demo::run(arguments, json, parts, plan, &output, kills))
}

/// A random geometric base topology, and the design that was asked for on it.
fn make_plan(arguments: &DemoArgs) -> Result<Plan> {
    let method: Method =
        arguments.method.parse().context(ErrorKind::BadInput, format!("--method {}", arguments.method))?;
    let radius = connecting_radius(arguments.peers);
    let spec = format!("rg:n={},r={radius:.2},seed={}", arguments.peers, arguments.seed);
    let topology = Topology::generate(&spec).context(ErrorKind::Unexpected, format!("cannot generate {spec}"))?;
    let options =
        DesignOptions { seed: arguments.seed, local_steps: arguments.local_steps, ..DesignOptions::default() };
    mingle_planner::design(&topology, method, &options).context(ErrorKind::BadInput, "cannot design a plan")
}

/// A radius at which a random geometric graph in the unit square is most likely connected, and far from complete:
/// one and a half times the threshold sqrt(ln n / (pi n)) of Gupta and Kumar.
#[allow(clippy::cast_precision_loss)] // a handful of peers
fn connecting_radius(peers: usize) -> f64 {
    let n = peers as f64;
    1.5 * (n.ln() / (std::f64::consts::PI * n)).sqrt().max(0.2)
}

/// A running demo.
struct Demo<'a> {
    arguments: &'a DemoArgs,
    output: &'a Output,
    started: Instant,
    processes: PeerProcesses,
    events: mpsc::Receiver<(usize, PeerEvent)>,
    tally: Tally,
    kills: Kills,
    /// The kills that were made, with the round.
    killed_at: Vec<(usize, u64)>,
    /// Where each peer listens, by the word of its present process.
    addresses: Vec<Option<String>>,
    joining: Joining,
    progress: Progress,
    results: Vec<Option<PeerResult>>,
    ended: usize,
}

impl<'a> Demo<'a> {
    async fn run(
        arguments: &'a DemoArgs,
        json: bool,
        parts: Parts,
        mut plan: Plan,
        output: &'a Output,
        kills: Kills,
    ) -> Result {
        let mut stop = StopRequests::listen(false)?;
        let homes = bind_to_new_homes(&mut plan, output)?;
        plan::write(&plan, &output.plan())?;
        let joining = Joining::new(&plan)?;
        let progress = Progress::start(arguments, &plan, json);
        if arguments.codec != Codec::F32 {
            let encodings = plan::schedule(&plan)?.encodings(arguments.codec);
            let parameters = parts.task(&arguments.model)?.parameter_count();
            progress.note(&format!("codec    {}", encodings::describe(&encodings, arguments.codec, parameters)));
        }
        let (processes, events) = PeerProcesses::new()?;
        let mut demo = Self {
            arguments,
            output,
            started: Instant::now(),
            processes,
            events,
            tally: Tally::new(arguments.peers),
            kills,
            killed_at: Vec::new(),
            addresses: vec![None; arguments.peers],
            joining,
            progress,
            results: vec![None; arguments.peers],
            ended: 0,
        };
        let trained = tokio::select! {
            trained = demo.train(&homes) => trained,
            reason = stop.next() => Err(Error::new(ErrorKind::Forced, format!("{reason}; all peers are stopped"))),
        };
        if let Err(failure) = trained {
            demo.progress.clear();
            demo.stop_all(&mut stop).await;
            return Err(failure);
        }
        let swarm_seconds = demo.started.elapsed().as_secs_f64();
        let task = parts.task(&arguments.model)?;
        let baselines = tokio::select! {
            baselines = demo.compare(parts) => baselines?,
            reason = stop.next() => return Err(Error::new(ErrorKind::Forced, format!("{reason} during the comparison"))),
        };
        let mut report = Report::new(&demo, &task, &homes, baselines, swarm_seconds)?;
        if arguments.timeline == Switch::On {
            let picture = timeline::look_at(&homes)?;
            output.write("timeline.svg", picture.svg.as_bytes())?;
            report.communication_hidden = picture.hidden;
        }
        demo.progress.clear();
        report.write(output)?;
        report.print(json);
        report.check()
    }

    /// Trains without a swarm, unless that is not wanted.
    async fn compare(&self, parts: Parts) -> Result<Option<Baselines>> {
        if self.arguments.no_comparison {
            return Ok(None);
        }
        Baselines::train_aside(self.arguments.clone(), parts, self.progress.for_comparison()).await.map(Some)
    }

    /// Starts every peer and follows them until the last one ends.
    async fn train(&mut self, homes: &[Home]) -> Result {
        let plan_file = self.output.plan().display().to_string();
        self.start_peer(&homes[0], &["--plan".to_owned(), plan_file])?;
        let bootstrap = self.first_address().await?;
        for home in &homes[1..] {
            self.start_peer(home, &["--bootstrap".to_owned(), bootstrap.clone()])?;
        }
        while self.ended < self.arguments.peers {
            let Some((node, event)) = self.events.recv().await else { break };
            let is_end = matches!(event, PeerEvent::Ended);
            if is_end && self.arguments.restart && self.processes.was_killed(node) {
                self.restart(node, &homes[node]).await?;
            } else {
                self.on_event(node, event)?;
            }
        }
        for (node, status) in self.processes.wait().await?.into_iter().enumerate() {
            if !status.success() && !self.processes.was_killed(node) {
                return Err(self.lost(node, &format!("ended with {status}")));
            }
        }
        Ok(())
    }

    /// Where the first peer listens.
    async fn first_address(&mut self) -> Result<String> {
        while let Some((node, event)) = self.events.recv().await {
            self.on_event(node, event)?;
            if let Some(address) = &self.addresses[node] {
                return Ok(address.clone());
            }
        }
        Err(self.lost(0, "never listened"))
    }

    fn on_event(&mut self, node: usize, event: PeerEvent) -> Result {
        match event {
            PeerEvent::Said(event) => self.on_said(node, &event),
            PeerEvent::Failed(kind, message) => Err(self.lost_to(kind, node, &message)),
            PeerEvent::Ended => {
                self.ended += 1;
                self.processes.note_started(node)?;
                let rows = self.tally.lose(node, self.started.elapsed().as_secs_f64());
                self.show(&rows)?;
                if self.results[node].is_none() && !self.processes.was_killed(node) {
                    return Err(self.lost(node, "went away before it was done"));
                }
                Ok(())
            }
        }
    }

    fn on_said(&mut self, node: usize, event: &Event) -> Result {
        match event {
            Event::Listening { addresses, .. } => {
                let quic = addresses.iter().find(|address| address.contains("/quic-v1"));
                self.addresses[node] = quic.or(addresses.first()).cloned();
            }
            Event::Recovered { round, weight_units, .. } => {
                let weight = mingle_peer::units::weight(*weight_units);
                self.progress.note(&format!(
                    "round {round:>4}   peer {node} started again, with weight {weight:.6} from its disk"
                ));
            }
            Event::Plan { .. } => self.processes.note_started(node)?,
            Event::Joined { neighbours, network } => {
                let elapsed = self.started.elapsed();
                if self.joining.note(node, *neighbours, *network, elapsed) {
                    self.progress.all_joined(elapsed);
                }
            }
            Event::Round { round, .. } => {
                self.progress.round(*round);
                if self.kills.due(node, *round) {
                    self.kill(node, *round)?;
                }
            }
            Event::Evaluated { round, metrics, weight_units, disagreement, .. } => {
                let report = tally::Report {
                    accuracy: score(metrics, self.arguments),
                    weight_units: *weight_units,
                    disagreement: *disagreement,
                };
                let rows = self.tally.report(node, *round, report, self.started.elapsed().as_secs_f64());
                self.show(&rows)?;
            }
            Event::Done { metrics, sent_bytes, peak_resident_bytes, .. } => {
                self.results[node] = Some(PeerResult {
                    accuracy: score(metrics, self.arguments),
                    sent_bytes: *sent_bytes,
                    peak_resident_bytes: *peak_resident_bytes,
                });
            }
            _ => {}
        }
        Ok(())
    }

    fn kill(&mut self, node: usize, round: u64) -> Result {
        self.processes.kill(node)?;
        self.killed_at.push((node, round));
        self.progress.note(&format!("round {round:>4}   peer {node} killed (SIGKILL)"));
        let rows = self.tally.lose(node, self.started.elapsed().as_secs_f64());
        self.show(&rows)
    }

    /// Starts a killed peer again. It knows the plan, and where the others are; its own address is new.
    async fn restart(&mut self, node: usize, home: &Home) -> Result {
        self.addresses[node] = None;
        let way_in: Vec<String> =
            self.addresses.iter().flatten().flat_map(|address| ["--bootstrap".to_owned(), address.clone()]).collect();
        let arguments = peer_arguments(self.arguments, home, &way_in);
        self.processes.restart(node, &arguments, &home.root().join("log.txt")).await
    }

    fn show(&mut self, rows: &[tally::Row]) -> Result {
        for row in rows {
            self.output.append_row(row, self.arguments.task)?;
            self.progress.row(row);
        }
        Ok(())
    }

    fn start_peer(&mut self, home: &Home, way_in: &[String]) -> Result {
        let arguments = peer_arguments(self.arguments, home, way_in);
        self.processes.start(arguments, home.root().join("log.txt"))
    }

    fn lost(&self, node: usize, what: &str) -> Error {
        self.lost_to(ErrorKind::Unexpected, node, what)
    }

    fn lost_to(&self, kind: ErrorKind, node: usize, what: &str) -> Error {
        Error::new(kind, format!("peer {node}: {what}"))
            .hint(format!("its log is {}", self.output.home(node).join("log.txt").display()))
    }

    /// Lets the peers stop by themselves, and kills those that do not, or all at a second signal.
    async fn stop_all(&mut self, stop: &mut StopRequests) {
        self.processes.ask_to_stop();
        // What they still say is of no use, but a full pipe would hold them up.
        self.events.close();
        tokio::select! {
            _ = self.processes.wait() => {}
            () = tokio::time::sleep(STOP_TIMEOUT) => {}
            _ = stop.next() => {}
        }
        self.processes.kill_all().await;
    }
}

/// Gives every node a home with a key of its own, and binds the plan to them.
fn bind_to_new_homes(plan: &mut Plan, output: &Output) -> Result<Vec<Home>> {
    (0..plan.node_count())
        .map(|node| {
            let home = Home::create(Some(&output.home(node)))?;
            let peer = Identity::load_or_create(&home.identity())?.peer_id();
            plan.bind(node, &peer.to_string()).context(ErrorKind::Unexpected, format!("cannot bind node {node}"))?;
            Ok(home)
        })
        .collect()
}

/// What the demo counts by.
fn score(metrics: &Metrics, arguments: &DemoArgs) -> f64 {
    metrics.get(metric::name(arguments.task)).unwrap_or(f64::NAN)
}
