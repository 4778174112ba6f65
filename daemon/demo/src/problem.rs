//! Demos whose peers solve a convex problem, compared with the same problem in one place, or learn in rounds, compared
//! with the same and other methods in one process.

mod convex;
mod given;
mod nodes;
mod recommendation;
mod rounds;
mod shared_noise;

use std::time::{Duration, Instant};

use mingle_peer::events::{Event, SolvedProblem};
use mingle_peer::stop::StopRequests;
use mingle_peer::{Error, ErrorKind, Home, Result};
use serde::Serialize;
use tokio::sync::mpsc;

use crate::options::PeerProgram;
use crate::output::Output;
use crate::processes::{PeerEvent, PeerProcesses, STOP_TIMEOUT};
pub use convex::{ConvexDemo, ConvexReport, OnePlace};
pub use given::ConvexKind;
pub use nodes::{ClientScores, JUDGED, NodesDemo, NodesReport, WEIGHTS};
pub use recommendation::RecommendationDemo;
pub use rounds::{RoundsReport, Way};
pub use shared_noise::SharedNoiseDemo;

/// An event while peers solve a problem: a result about all peers, as one of them reports it.
#[derive(Debug)]
pub enum ProblemEvent<'a> {
    /// So many iterations are done.
    Iterated {
        /// The iterations done.
        iteration: u64,
        /// The residual, which falls to 0 at the solution.
        residual: f64,
        /// Of a robust model, the duality gap.
        gap: Option<f64>,
        /// Time since the first peer was started.
        after: Duration,
    },
    /// A round is done.
    Measured {
        /// The round.
        round: u64,
        /// The metrics to report, by name.
        metrics: &'a [(&'static str, f64)],
        /// Time since the first peer was started.
        after: Duration,
    },
    /// The peers are done, and so many methods are compared with theirs.
    Comparing {
        /// The number of methods.
        methods: usize,
    },
}

/// The receiver of these events.
pub type Tell<'a> = &'a dyn Fn(&ProblemEvent<'_>);

/// A demo whose peers solve a problem, or learn in rounds, once it is prepared.
pub trait ProblemDemo {
    /// The results, beside those of other methods.
    type Report: Serialize;

    /// An introduction for people, in a few lines.
    fn introduction(&self) -> String;

    /// The folder of the demo.
    fn output(&self) -> &Output;

    /// Runs the peers to their end, compares, and writes the results into the folder of the demo.
    ///
    /// # Errors
    /// Any error of a peer; a request to stop.
    fn run(
        &self,
        program: PeerProgram,
        tell: Tell<'_>,
        stop: &mut StopRequests,
    ) -> impl Future<Output = Result<Self::Report>>;
}

/// The progress that is reported while peers learn, and its receiver.
#[derive(Clone, Copy)]
struct ProgressReport<'a> {
    tell: Tell<'a>,
    /// The metrics of a round to report, by name.
    metrics: &'static [&'static str],
    /// The number of rounds between two reports.
    each: u64,
}

/// The cost of peers that are done.
struct FinishedPeers {
    /// Time from the start of the first process to the end of the last.
    took: Duration,
    /// The largest resident memory of any peer, where the system reports it.
    peak_bytes: Option<u64>,
}

/// The peers of the demo.
struct Swarm<'a> {
    output: &'a Output,
    progress: ProgressReport<'a>,
    started: Instant,
    processes: PeerProcesses,
    events: mpsc::Receiver<(usize, PeerEvent)>,
    /// The largest resident memory of any peer that is done.
    peak_bytes: Option<u64>,
}

impl<'a> Swarm<'a> {
    /// Runs all peers to their end, or until the user stops them.
    async fn run(
        output: &'a Output,
        progress: ProgressReport<'a>,
        homes: &[Home],
        program: PeerProgram,
        stop: &mut StopRequests,
    ) -> Result<FinishedPeers> {
        let (processes, events) = PeerProcesses::new(program);
        let mut swarm = Self { output, progress, started: Instant::now(), processes, events, peak_bytes: None };
        let ended = tokio::select! {
            ended = swarm.solve(homes) => ended,
            reason = stop.next() => Err(Error::new(ErrorKind::Forced, format!("{reason}; all peers are stopped"))),
        };
        match ended {
            Ok(()) => Ok(FinishedPeers { took: swarm.started.elapsed(), peak_bytes: swarm.peak_bytes }),
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
                    self.output.note(&event)?;
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
        arguments.extend(["--problem".to_owned(), self.output.problem().display().to_string()]);
        arguments.extend(way_in);
        self.processes.start(arguments, home.root().join("log.txt"))
    }

    /// The address of the first peer, once it listens.
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

    /// Reports results about all peers, as the first peer finds them, and notes the memory of those that are done.
    fn on_said(&mut self, node: usize, event: &Event) {
        match event {
            Event::Solved(SolvedProblem { peak_resident_bytes, .. }) | Event::Learned { peak_resident_bytes, .. } => {
                self.peak_bytes = self.peak_bytes.max(*peak_resident_bytes);
            }
            Event::Measured { round, metrics, .. } if node == 0 && round % self.progress.each == 0 => {
                let of = |name: &&'static str| Some((*name, metrics.get(name)?));
                let metrics: Vec<(&'static str, f64)> = self.progress.metrics.iter().filter_map(of).collect();
                (self.progress.tell)(&ProblemEvent::Measured {
                    round: *round,
                    metrics: &metrics,
                    after: self.started.elapsed(),
                });
            }
            Event::Iterated { iteration, residual, gap } if node == 0 => {
                let iteration = *iteration;
                let residual = *residual;
                let gap = *gap;
                let after = self.started.elapsed();
                (self.progress.tell)(&ProblemEvent::Iterated { iteration, residual, gap, after });
            }
            _ => {}
        }
    }

    fn lost(&self, node: usize, what: &str) -> Error {
        Error::new(ErrorKind::Unexpected, format!("peer {node}: {what}"))
            .hint(format!("its log is {}", self.output.log_of_failed(node).display()))
    }

    async fn stop_all(&mut self) {
        self.processes.ask_to_stop();
        self.events.close();
        let _ = tokio::time::timeout(STOP_TIMEOUT, self.processes.wait()).await;
        self.processes.kill_all().await;
    }
}
