//! Shops on this machine that learn recommenders together, compared with each alone and with FedAvg.

use std::fs;

use mingle_builtin::errors::recommend_error;
use mingle_peer::error::Context;
use mingle_peer::stop::StopRequests;
use mingle_peer::{ErrorKind, Result};
use mingle_planner::Plan;
use mingle_problems::RECOMMENDER;
use mingle_recommend::{DealOptions, Interactions, Planted, Recommender, co_cluster};

use super::rounds::{self, Comparison, RoundDemo, RoundsReport, Way};
use super::{ProblemDemo, Tell, given};
use crate::options::{PeerProgram, ProblemOptions, check_peers};
use crate::output::Output;

/// Users and items of a shop's own community.
const USERS: usize = 90;
const ITEMS: usize = 80;
/// Default number of rounds.
const ROUNDS: u64 = 10;
/// The lines of the problem file besides the method.
const OPTIONS: &str = "epochs = 3\nfrozen_rounds = 2\nfrequencies = 32\nbatch_size = 512\n";
/// The methods that are compared: rows of the table.
const WAYS: &[Way] = &[
    Way { name: "each alone", lines: "method = \"alone\"\n" },
    Way { name: "FedAvg", lines: "method = \"fedavg\"\n" },
    Way { name: "LPSFed", lines: "method = \"lpsfed\"\n" },
];

/// A demo of shops on this machine that learn recommenders together.
pub struct RecommendationDemo {
    demo: RoundDemo,
    plan: Plan,
    output: Output,
    introduction: String,
}

impl RecommendationDemo {
    /// Makes the plan, and draws the data of each peer.
    ///
    /// # Errors
    /// The options are invalid, or the folder holds something else.
    pub fn prepare(options: &ProblemOptions) -> Result<Self> {
        check_peers(options.peers)?;
        let plan = given::design(options, &given::places(options)?)?;
        let planted = Planted {
            communities: options.peers,
            users: USERS,
            items: ITEMS,
            seed: options.seed,
            ..Planted::default()
        };
        let all = planted.draw();
        let deal = DealOptions { seed: options.seed, ..DealOptions::default() };
        let dealt = co_cluster(&all, options.peers, deal).map_err(recommend_error)?;
        let output = Output::at(&options.output)?;
        let file = |((name, _), part): ((&str, _), &Interactions)| (format!("shops/{name}.csv"), table(part));
        let files = plan.nodes().zip(&dealt.parts).map(file).collect();
        let introduction = format!(
            "{} shops have {} interactions of {} customers with {} articles, in communities that are planted; {} lie between shops and\n\
             are dropped. None leaves its shop: what is shared are two small networks, a margin and how alike the shops' graphs are.\n",
            options.peers,
            all.count() - dealt.dropped,
            all.users().len(),
            all.items().len(),
            dealt.dropped
        );
        let demo = RoundDemo {
            schema: "mingle.demo.recommend/1",
            question: "What might a customer want next? Each shop keeps who bought what.",
            files,
            lines: format!(
                "kind = \"recommendation\"\ndata = \"shops/{{node}}.csv\"\nseed = {}\n{OPTIONS}",
                options.seed
            ),
            rounds: options.rounds.unwrap_or(ROUNDS),
            ways: WAYS,
            comparison: Comparison::OneProcess,
            metrics: &["recall@20", "ndcg@20"],
        };
        Ok(Self { demo, plan, output, introduction })
    }

    /// The methods that are compared; the last one is that of the peers.
    pub fn ways(&self) -> &'static [Way] {
        WAYS
    }

    /// The recommender that the first shop has learned.
    ///
    /// # Errors
    /// It is not there yet, or it is damaged.
    pub fn recommender(&self) -> Result<Recommender> {
        let path = self.output.home(0).join(RECOMMENDER);
        let bytes = fs::read(path).context(ErrorKind::Unexpected, "the first shop's recommender")?;
        Recommender::from_bytes(&bytes).map_err(recommend_error)
    }
}

impl ProblemDemo for RecommendationDemo {
    type Report = RoundsReport;

    fn introduction(&self) -> String {
        self.introduction.clone()
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

fn table(part: &Interactions) -> String {
    let mut text = "user,item\n".to_owned();
    for (user, name) in part.users().iter().enumerate() {
        part.of_user(user).iter().for_each(|item| text += &format!("{name},{}\n", part.items()[*item as usize]));
    }
    text
}
