//! Members on this machine that train one model over masked sums, with noise that all share, compared with each alone and
//! with no noise.

use mingle_peer::Result;
use mingle_peer::stop::StopRequests;
use mingle_planner::Plan;

use super::rounds::{self, Comparison, RoundDemo, RoundsReport, Way};
use super::{ProblemDemo, Tell, given};
use crate::options::{PeerProgram, ProblemOptions, check_peers};
use crate::output::Output;

/// Default number of rounds.
const ROUNDS: u64 = 40;
/// The lines of the problem file besides the method.
const OPTIONS: &str = "split = \"dirichlet:0.3\"\nmodel = \"softmax\"\nlocal_steps = 10\nlearning_rate = 0.2\n";
/// The methods that are compared: rows of the table.
const WAYS: &[Way] = &[
    Way { name: "each alone", lines: "method = \"alone\"\n" },
    Way { name: "no noise", lines: "method = \"fedavg\"\n" },
    Way {
        name: "shared noise",
        lines: "method = \"fedavg\"\nprivacy = { clip = 0.3, epsilon_max = 8.1, delta = 1e-5, colluders = 1 }\n",
    },
];

/// A demo of members on this machine that train one model and share the noise of differential privacy.
pub struct SharedNoiseDemo {
    demo: RoundDemo,
    plan: Plan,
    output: Output,
}

impl SharedNoiseDemo {
    /// Makes the plan.
    ///
    /// # Errors
    /// The options are invalid, or the folder holds something else.
    pub fn prepare(options: &ProblemOptions) -> Result<Self> {
        check_peers(options.peers)?;
        let plan = given::design(options, &given::places(options)?)?;
        let output = Output::at(&options.output)?;
        let demo = RoundDemo {
            schema: "mingle.demo.training/1",
            question: "Which digit is it? Each member keeps its images, and the sum of all has noise enough for epsilon 8.1.",
            files: Vec::new(),
            lines: format!("kind = \"training\"\ndata = \"digits\"\nseed = {}\n{OPTIONS}", options.seed),
            rounds: options.rounds.unwrap_or(ROUNDS),
            ways: WAYS,
            comparison: Comparison::AmongPeers("model.safetensors"),
            metrics: &["epsilon", "accuracy"],
        };
        Ok(Self { demo, plan, output })
    }

    /// The methods that are compared; the last one is that of the peers.
    pub fn ways(&self) -> &'static [Way] {
        WAYS
    }
}

impl ProblemDemo for SharedNoiseDemo {
    type Report = RoundsReport;

    fn introduction(&self) -> String {
        format!(
            "{} members train one model on images that stay where they are; each has few classes. Nobody sees a member's own change: sums are masked.\n\
             Each adds a part of the noise, so that the sum of all has what differential privacy needs.\n",
            self.plan.node_count()
        )
    }

    fn output(&self) -> &Output {
        &self.output
    }

    async fn run(&self, program: PeerProgram, tell: Tell<'_>, stop: &mut StopRequests) -> Result<RoundsReport> {
        let (_, report) = self.demo.learn(self.plan.clone(), &self.output, program, tell, stop).await?;
        rounds::write(&report, &self.output)?;
        Ok(report)
    }
}
