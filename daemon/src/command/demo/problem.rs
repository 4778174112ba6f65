//! `mingle demo --problem`: peers on this machine that solve a convex problem together, beside the same problem in one place, or
//! that learn in rounds, beside the same and other methods in one process.

mod given;
mod nodes;
mod recommendation;
mod report;
mod rounds;

use std::time::{Duration, Instant};

use mingle_peer::events::Event;
use mingle_peer::{Error, ErrorKind, Home, Result, plan};
use tokio::sync::mpsc;

use super::output::Output;
use super::swarm::{PeerEvent, PeerProcesses};
use super::{STOP_TIMEOUT, bind_to_new_homes};
use crate::cli::{DemoArgs, ProblemKind};
use crate::event_loop;
use crate::out;
use crate::signals::StopRequests;
use given::{ConvexKind, Given};
use report::Report;

/// Runs the demo.
pub(super) fn execute(arguments: &DemoArgs, kind: ProblemKind, json: bool) -> Result {
    let kind = match kind {
        ProblemKind::SparseRegression => ConvexKind::SparseRegression,
        ProblemKind::ResourceAllocation => ConvexKind::ResourceAllocation,
        ProblemKind::RobustClassification => ConvexKind::RobustClassification,
        ProblemKind::Recommendation => return recommendation::execute(arguments, json),
        ProblemKind::NodeClassification => return nodes::execute(arguments, json),
    };
    if let Some(rounds) = arguments.rounds {
        let message = format!("--rounds {rounds}: peers that solve a convex problem iterate to a tolerance");
        return Err(Error::new(ErrorKind::BadInput, message).hint("leave --rounds away"));
    }
    let given = Given::new(arguments, kind)?;
    let output = Output::create(&arguments.output)?;
    let runtime = event_loop::start()?;
    runtime.block_on(run(given, &output, json))
}

async fn run(mut given: Given, output: &Output, json: bool) -> Result {
    let homes = bind_to_new_homes(&mut given.plan, output)?;
    plan::write(&given.plan, &output.plan())?;
    given.write(output)?;
    if !json {
        out::line(given.introduction());
    }
    let told = Told { json, metrics: &[], each: 1 };
    let ended = Swarm::run(output, told, &homes).await?;
    let report = Report::new(&given, &homes, &ended)?;
    report.write(output)?;
    report.print(&given, output, json);
    report.check()
}

/// What is told while peers learn.
#[derive(Clone, Copy)]
struct Told {
    json: bool,
    /// Metrics of a round, by name.
    metrics: &'static [&'static str],
    /// Every so many rounds.
    each: u64,
}

/// What peers took that are done.
struct Ended {
    /// From the start of the first process to the end of the last.
    took: Duration,
    /// The largest resident memory of any peer, where the system tells.
    peak_bytes: Option<u64>,
}

/// The peers of the demo.
struct Swarm<'a> {
    output: &'a Output,
    told: Told,
    started: Instant,
    processes: PeerProcesses,
    events: mpsc::Receiver<(usize, PeerEvent)>,
    /// The largest resident memory of any peer that is done.
    peak_bytes: Option<u64>,
}

impl<'a> Swarm<'a> {
    /// Runs all peers to their end, or until the user stops them.
    async fn run(output: &'a Output, told: Told, homes: &[Home]) -> Result<Ended> {
        let mut stop = StopRequests::listen(false)?;
        let (processes, events) = PeerProcesses::new()?;
        let mut swarm = Self { output, told, started: Instant::now(), processes, events, peak_bytes: None };
        let ended = tokio::select! {
            ended = swarm.solve(homes) => ended,
            reason = stop.next() => Err(Error::new(ErrorKind::Forced, format!("{reason}; all peers are stopped"))),
        };
        match ended {
            Ok(()) => Ok(Ended { took: swarm.started.elapsed(), peak_bytes: swarm.peak_bytes }),
            Err(failure) => {
                swarm.stop_all().await;
                Err(failure)
            }
        }
    }

    /// Starts every peer and follows them until the last one ends.
    async fn solve(&mut self, homes: &[Home]) -> Result {
        let plan_file = self.output.plan().display().to_string();
        self.start(&homes[0], ["--plan".to_owned(), plan_file])?;
        let bootstrap = self.first_address().await?;
        for home in &homes[1..] {
            self.start(home, ["--bootstrap".to_owned(), bootstrap.clone()])?;
        }
        let mut ended = 0;
        while ended < homes.len() {
            let Some((node, event)) = self.events.recv().await else { break };
            match event {
                PeerEvent::Said(event) => {
                    if matches!(event, Event::Plan { .. }) {
                        self.processes.note_started(node)?;
                    }
                    self.on_said(node, &event);
                }
                PeerEvent::Failed(_, message) => return Err(self.lost(node, &message)),
                PeerEvent::Ended => {
                    self.processes.note_started(node)?;
                    ended += 1;
                }
            }
        }
        for (node, status) in self.processes.wait().await?.into_iter().enumerate() {
            if !status.success() {
                return Err(self.lost(node, &format!("ended with {status}")));
            }
        }
        Ok(())
    }

    fn start(&mut self, home: &Home, way_in: [String; 2]) -> Result {
        let mut arguments: Vec<String> = ["run", "--json", "--stop-with-stdin", "--home"].map(str::to_owned).to_vec();
        arguments.push(home.root().display().to_string());
        for address in ["/ip4/127.0.0.1/udp/0/quic-v1", "/ip4/127.0.0.1/tcp/0"] {
            arguments.extend(["--listen".to_owned(), address.to_owned()]);
        }
        arguments.extend(["--problem".to_owned(), given::file(self.output).display().to_string()]);
        arguments.extend(way_in);
        self.processes.start(arguments, home.root().join("log.txt"))
    }

    /// Where the first peer listens.
    async fn first_address(&mut self) -> Result<String> {
        while let Some((node, event)) = self.events.recv().await {
            match event {
                PeerEvent::Said(Event::Listening { addresses, .. }) if !addresses.is_empty() => {
                    return Ok(addresses[0].clone());
                }
                PeerEvent::Said(_) => {}
                PeerEvent::Failed(_, message) => return Err(self.lost(node, &message)),
                PeerEvent::Ended => break,
            }
        }
        Err(self.lost(0, "never listened"))
    }

    /// What one peer finds out about all is told once.
    fn on_said(&mut self, node: usize, event: &Event) {
        let is_told = node == 0 && !self.told.json;
        match event {
            Event::Solved { peak_resident_bytes, .. } | Event::Learned { peak_resident_bytes, .. } => {
                self.peak_bytes = self.peak_bytes.max(*peak_resident_bytes);
            }
            Event::Measured { round, metrics, .. } if is_told && round % self.told.each == 0 => {
                let cell = |name: &&str| Some(format!("   {} {:.4}", name.replace('_', " "), metrics.get(name)?));
                let cells: Vec<String> = self.told.metrics.iter().filter_map(cell).collect();
                let seconds = self.started.elapsed().as_secs_f64();
                out::line(format!("round {round:>4}{}   {seconds:.1} s", cells.concat()));
            }
            Event::Iterated { iteration, residual } if is_told => {
                let seconds = self.started.elapsed().as_secs_f64();
                out::line(format!("iteration {iteration:>5}   residual {residual:.1e}   {seconds:.2} s"));
            }
            _ => {}
        }
    }

    fn lost(&self, node: usize, what: &str) -> Error {
        Error::new(ErrorKind::Unexpected, format!("peer {node}: {what}"))
            .hint(format!("its log is {}", self.output.home(node).join("log.txt").display()))
    }

    async fn stop_all(&mut self) {
        self.processes.ask_to_stop();
        self.events.close();
        let _ = tokio::time::timeout(STOP_TIMEOUT, self.processes.wait()).await;
        self.processes.kill_all().await;
    }
}
