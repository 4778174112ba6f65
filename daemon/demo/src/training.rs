//! A demo whose swarm trains a model on this machine.
//!
//! The first peer has the plan; the others know only its address. Afterwards the demo trains the same model without a
//! swarm, audits the peers' books, and draws the curves.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use mingle_builtin::limits;
use mingle_builtin::options::parse_policy;
use mingle_builtin::task::{self, TaskSamples};
use mingle_peer::events::Event;
use mingle_peer::stop::StopRequests;
use mingle_peer::timeline::Picture;
use mingle_peer::training::Metrics;
use mingle_peer::{Error, ErrorKind, Home, Result};
use mingle_planner::{DesignOptions, Plan};
use tokio::sync::mpsc;

use crate::baselines::Baselines;
use crate::joining::Joining;
use crate::kill::Kills;
use crate::metric;
use crate::options::{DemoOptions, PeerProgram, check_peers};
use crate::output::Output;
use crate::peer_options::peer_arguments;
use crate::plan::{bind_to_new_homes, design, method_of, topology};
use crate::processes::{PeerEvent, PeerProcesses, STOP_TIMEOUT};
use crate::report::{Course, DemoReport, PeerResult};
use crate::tally::{self, ReportTally};
use crate::watcher::{DemoEvent, Watcher};

/// A training demo that is ready to run.
pub struct TrainingDemo {
    options: DemoOptions,
    parts: TaskSamples,
    plan: Plan,
    homes: Vec<Home>,
    output: Output,
    kills: Kills,
}

impl TrainingDemo {
    /// Checks the options, reads the data, makes the plan, and a folder with a home for each peer.
    ///
    /// # Errors
    /// The options are invalid, the data cannot be read, or the folder holds something else.
    pub fn prepare(mut options: DemoOptions) -> Result<Self> {
        check_peers(options.peers)?;
        mingle_peer::medium::check(&options.medium)?;
        if options.restart && !options.keeps_records() {
            return Err(Error::new(
                ErrorKind::BadInput,
                "--restart: without records a killed peer comes back without weight",
            )
            .hint("leave --durability off away"));
        }
        limits::check("local-steps", options.local_steps.into(), 1..=limits::MOST_LOCAL_STEPS)?;
        let kills = Kills::parse(&options.kills, options.peers, options.training.rounds)?;
        let parts = Self::read_data(&mut options)?;
        let training = &options.training;
        task::check_options(training)?;
        training.optimizer.settings(training.learning_rate)?;
        training.optimizer.rates(training.learning_rate, training.rounds)?;
        training.privacy.settings()?;
        parse_policy(&options.wait)?;
        let mut plan = make_plan(&options)?;
        mingle_peer::plan::momentum(options.momentum_across_rounds, &plan)?;
        let output = Output::create(&options.output)?;
        let homes = bind_to_new_homes(&mut plan, &output)?;
        mingle_peer::plan::write(&plan, &output.plan())?;
        Ok(Self { options, parts, plan, homes, output, kills })
    }

    /// Reads the data before anything is started, so that an error is reported once, not by every peer.
    fn read_data(options: &mut DemoOptions) -> Result<TaskSamples> {
        let training = &mut options.training;
        let mut parts = TaskSamples::load(&training.data, training.task, training.seed)?;
        if let Some(split) = &training.split {
            parts.deal(split, options.peers, training.seed)?;
        }
        parts.task(&training.model)?;
        task::open_device(&training.device)?;
        training.weight = parts.weight(training.weight, options.peers)?;
        Ok(parts)
    }

    /// The plan, with a key for each node.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Remarks for people on how the data were read.
    pub fn data_remarks(&self) -> &[String] {
        self.parts.remarks()
    }

    /// The number of parameters of the model.
    ///
    /// # Errors
    /// The model does not fit the data.
    pub fn parameter_count(&self) -> Result<usize> {
        Ok(self.parts.task(&self.options.training.model)?.parameter_count())
    }

    /// Runs the peers to their end, trains the baselines, and writes the results into the folder of the demo.
    ///
    /// # Errors
    /// Any error of a peer; a request to stop.
    pub async fn run(
        self,
        program: PeerProgram,
        watcher: Arc<dyn Watcher>,
        stop: &mut StopRequests,
    ) -> Result<DemoReport> {
        let Self { options, parts, plan, homes, output, kills } = self;
        let mut swarm = Swarm::new(&options, &output, &plan, program, watcher.clone(), kills)?;
        let trained = tokio::select! {
            trained = swarm.train(&homes) => trained,
            reason = stop.next() => Err(Error::new(ErrorKind::Forced, format!("{reason}; all peers are stopped"))),
        };
        if let Err(failure) = trained {
            watcher.see(&DemoEvent::Stops);
            swarm.stop_all(stop).await;
            return Err(failure);
        }
        let seconds = swarm.started.elapsed().as_secs_f64();
        let task = parts.task(&options.training.model)?;
        let compared = async {
            match options.comparison {
                true => Baselines::train_aside(options.clone(), parts, watcher).await.map(Some),
                false => Ok(None),
            }
        };
        let baselines = tokio::select! {
            baselines = compared => baselines?,
            reason = stop.next() => return Err(Error::new(ErrorKind::Forced, format!("{reason} during the comparison"))),
        };
        let mut report = DemoReport::new(swarm.course(seconds), &task, &homes, baselines)?;
        if options.timeline {
            let picture = Picture::of(&homes)?;
            output.write("timeline.svg", picture.svg.as_bytes())?;
            report.communication_hidden = picture.hidden;
        }
        report.write(&output)?;
        Ok(report)
    }
}

/// A random geometric base topology, and the requested design on it.
fn make_plan(options: &DemoOptions) -> Result<Plan> {
    method_of(&options.method)?;
    let seed = options.training.seed;
    let design_options = DesignOptions { seed, local_steps: options.local_steps, ..DesignOptions::default() };
    design(&options.method, &topology(options.peers, seed)?, &design_options)
}

/// The running peers.
struct Swarm<'a> {
    options: &'a DemoOptions,
    output: &'a Output,
    started: Instant,
    processes: PeerProcesses,
    events: mpsc::Receiver<(usize, PeerEvent)>,
    tally: ReportTally,
    kills: Kills,
    /// The kills that were made, with the round.
    killed_at: Vec<(usize, u64)>,
    /// Peers that ended with a result, and skipped most of the rounds.
    late: BTreeSet<usize>,
    /// Warnings of peers that were shown.
    warnings: BTreeSet<String>,
    /// The address of each peer, as reported by its present process.
    addresses: Vec<Option<String>>,
    joining: Joining,
    watcher: Arc<dyn Watcher>,
    results: Vec<Option<PeerResult>>,
    ended: usize,
}

impl<'a> Swarm<'a> {
    /// A swarm before any peer is started.
    fn new(
        options: &'a DemoOptions,
        output: &'a Output,
        plan: &Plan,
        program: PeerProgram,
        watcher: Arc<dyn Watcher>,
        kills: Kills,
    ) -> Result<Self> {
        let (processes, events) = PeerProcesses::new(program);
        Ok(Self {
            options,
            output,
            started: Instant::now(),
            processes,
            events,
            tally: ReportTally::new(options.peers),
            kills,
            killed_at: Vec::new(),
            late: BTreeSet::new(),
            warnings: BTreeSet::new(),
            addresses: vec![None; options.peers],
            joining: Joining::new(plan)?,
            watcher,
            results: vec![None; options.peers],
            ended: 0,
        })
    }

    /// The course of the demo.
    fn course(self, seconds: f64) -> Course<'a> {
        let survivors: Vec<usize> = (0..self.options.peers).filter(|&node| !self.processes.was_killed(node)).collect();
        Course {
            options: self.options,
            output: self.output,
            results: survivors.iter().filter_map(|&node| self.results[node]).collect(),
            survivors,
            killed_at: self.killed_at,
            late: self.late,
            joined: self.joining.summary(),
            rows: self.tally.rows().to_vec(),
            seconds,
        }
    }

    /// Starts every peer and follows them until the last one ends.
    async fn train(&mut self, homes: &[Home]) -> Result {
        let plan_file = self.output.plan().display().to_string();
        self.start_peer(&homes[0], &["--plan".to_owned(), plan_file])?;
        let bootstrap = self.first_address().await?;
        for home in &homes[1..] {
            self.start_peer(home, &["--bootstrap".to_owned(), bootstrap.clone()])?;
        }
        while self.ended < self.options.peers {
            let Some((node, event)) = self.events.recv().await else { break };
            let is_end = matches!(event, PeerEvent::Ended);
            if is_end && self.options.restart && self.processes.was_killed(node) {
                self.restart(node, &homes[node]).await?;
            } else {
                self.on_event(node, event)?;
            }
        }
        for (node, status) in self.processes.wait().await?.into_iter().enumerate() {
            // A late peer ends with an exit code of its own.
            if !status.success() && !self.late.contains(&node) && !self.processes.was_killed(node) {
                return Err(self.lost(node, &format!("ended with {status}")));
            }
        }
        Ok(())
    }

    /// The address of the first peer, once it listens.
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
            PeerEvent::Failed(ErrorKind::TimedOut, message) if self.results[node].is_some() => {
                self.late.insert(node);
                self.see(&DemoEvent::Late { node, message: &message });
                Ok(())
            }
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
                self.see(&DemoEvent::StartedAgain { node, round: *round, weight_units: *weight_units });
            }
            Event::Warning { message, .. } if self.warnings.insert(message.clone()) => {
                self.see(&DemoEvent::Warned { node, message });
            }
            Event::Plan { .. } => self.processes.note_started(node)?,
            Event::Joined { neighbours, network, .. } => {
                let elapsed = self.started.elapsed();
                if self.joining.note(node, *neighbours, *network, elapsed) {
                    self.see(&DemoEvent::Joined { after: elapsed });
                }
            }
            Event::Round { round, .. } => {
                self.see(&DemoEvent::Round(*round));
                if self.kills.due(node, *round) {
                    self.kill(node, *round)?;
                }
            }
            Event::Evaluated { round, metrics, weight_units, disagreement, .. } => {
                let report = tally::RoundEvaluation {
                    accuracy: score(metrics, self.options),
                    weight_units: *weight_units,
                    disagreement: *disagreement,
                };
                let rows = self.tally.report(node, *round, report, self.started.elapsed().as_secs_f64());
                self.show(&rows)?;
            }
            Event::Done { metrics, sent_bytes, peak_resident_bytes, .. } => {
                self.results[node] = Some(PeerResult {
                    accuracy: score(metrics, self.options),
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
        self.see(&DemoEvent::Killed { node, round });
        let rows = self.tally.lose(node, self.started.elapsed().as_secs_f64());
        self.show(&rows)
    }

    /// Starts a killed peer again. It knows the plan and the others' addresses; its own address is new.
    async fn restart(&mut self, node: usize, home: &Home) -> Result {
        self.addresses[node] = None;
        let way_in: Vec<String> =
            self.addresses.iter().flatten().flat_map(|address| ["--bootstrap".to_owned(), address.clone()]).collect();
        let arguments = peer_arguments(self.options, home, &way_in);
        self.processes.restart(node, &arguments, &home.root().join("log.txt")).await
    }

    fn show(&mut self, rows: &[tally::SwarmRow]) -> Result {
        for row in rows {
            self.output.append_row(row, self.options.training.task)?;
            self.see(&DemoEvent::Row(row));
        }
        Ok(())
    }

    fn see(&self, event: &DemoEvent<'_>) {
        self.watcher.see(event);
    }

    fn start_peer(&mut self, home: &Home, way_in: &[String]) -> Result {
        let arguments = peer_arguments(self.options, home, way_in);
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
        // Their further events are of no use, but a full pipe would block them.
        self.events.close();
        tokio::select! {
            _ = self.processes.wait() => {}
            () = tokio::time::sleep(STOP_TIMEOUT) => {}
            _ = stop.next() => {}
        }
        self.processes.kill_all().await;
    }
}

/// The score of an evaluation: accuracy or r2.
fn score(metrics: &Metrics, options: &DemoOptions) -> f64 {
    metrics.get(metric::name(options.training.task)).unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests;
