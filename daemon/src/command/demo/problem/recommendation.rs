//! `mingle demo --problem recommendation`: shops on this machine that learn recommenders together, beside each alone and beside FedAvg.

use std::fs;

use mingle_builtin::errors::recommend_error;
use mingle_peer::error::Context;
use mingle_peer::{ErrorKind, Home, Result};
use mingle_problems::RECOMMENDER;
use mingle_recommend::{DealOptions, Interactions, METRICS, Planted, Recommender, co_cluster};

use super::super::output::Output;
use super::rounds::{self, Report, RoundDemo, Way};
use super::{given, out};
use crate::cli::DemoArgs;

/// Users and items of a shop's own community.
const USERS: usize = 90;
const ITEMS: usize = 80;
/// Rounds, unless the user says how many.
const ROUNDS: u64 = 10;
/// What the peers are given, besides the method.
const OPTIONS: &str = "epochs = 3\nfrozen_rounds = 2\nfrequencies = 32\nbatch_size = 512\nlearning_rate = 0.002\n";
/// The rows of the table.
const WAYS: &[Way] = &[
    Way { name: "each alone", lines: "method = \"alone\"\n" },
    Way { name: "FedAvg", lines: "method = \"fedavg\"\n" },
    Way { name: "LPSFed", lines: "method = \"lpsfed\"\n" },
];

/// Runs it.
pub(super) fn execute(arguments: &DemoArgs, json: bool) -> Result {
    let plan = given::design(arguments, &given::places(arguments)?)?;
    let planted = Planted {
        communities: arguments.peers,
        users: USERS,
        items: ITEMS,
        seed: arguments.seed,
        ..Planted::default()
    };
    let all = planted.draw();
    let options = DealOptions { seed: arguments.seed, ..DealOptions::default() };
    let dealt = co_cluster(&all, arguments.peers, options).map_err(recommend_error)?;
    let output = Output::create(&arguments.output)?;
    let folder = output.root().join("shops");
    fs::create_dir_all(&folder).context(ErrorKind::BadInput, format!("cannot create {}", folder.display()))?;
    for ((name, _), part) in plan.nodes().zip(&dealt.parts) {
        output.write(&format!("shops/{name}.csv"), table(part).as_bytes())?;
    }
    if !json {
        out::line(format!(
            "{} shops have {} interactions of {} customers with {} articles, in communities that are planted; {} lie between shops and\n\
             are dropped. None leaves its shop: what is shared are two small networks, a margin and how alike the shops' graphs are.\n",
            arguments.peers,
            all.count() - dealt.dropped,
            all.users().len(),
            all.items().len(),
            dealt.dropped
        ));
    }
    let demo = RoundDemo {
        schema: "mingle.demo.recommend/1",
        question: "What might a customer want next? Each shop keeps who bought what.",
        lines: format!(
            "kind = \"recommendation\"\ndata = \"shops/{{node}}.csv\"\nseed = {}\n{OPTIONS}",
            arguments.seed
        ),
        rounds: arguments.rounds.unwrap_or(ROUNDS),
        ways: WAYS,
        metrics: &["recall@20", "ndcg@20"],
    };
    let (homes, report) = demo.learn(plan, &output, json)?;
    rounds::write(&report, &output)?;
    if json {
        out::line(serde_json::json!(report));
    } else {
        print(&report, &homes[0], &output)?;
    }
    report.check()
}

fn table(part: &Interactions) -> String {
    let mut text = "user,item\n".to_owned();
    for (user, name) in part.users().iter().enumerate() {
        part.of_user(user).iter().for_each(|item| text += &format!("{name},{}\n", part.items()[*item as usize]));
    }
    text
}

fn print(report: &Report, home: &Home, output: &Output) -> Result {
    let columns = &METRICS[1..];
    let head: Vec<String> = columns.iter().map(|name| format!("{:>18}", name.replace('_', " "))).collect();
    out::line(format!("\n{:<12}{}", "mean", head.concat()));
    for Way { name, .. } in WAYS {
        let cell =
            |metric: &&str| report.mean(name, metric).map_or_else(|| "-".to_owned(), |value| format!("{value:.4}"));
        let cells: Vec<String> = columns.iter().map(|metric| format!("{:>18}", cell(metric))).collect();
        out::line(format!("{name:<12}{}", cells.concat()));
    }
    report.print_end();
    let recommender =
        fs::read(home.root().join(RECOMMENDER)).context(ErrorKind::Unexpected, "the first shop's recommender")?;
    let recommender = Recommender::from_bytes(&recommender).map_err(recommend_error)?;
    let folder = output.root().display();
    out::line(format!(
        "wrote {folder}/report.json, {folder}/curves.svg; what a customer of the first shop might want next:"
    ));
    let user = recommender.users().first().map_or("", String::as_str);
    out::line(format!("  mingle recommend --home {} --user {user}", home.root().display()));
    Ok(())
}
