//! `mingle demo --recommend`: shops on this machine that learn recommenders together, beside each alone and beside FedAvg.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::time::Instant;

use mingle_lab::solving::{Conditions, learn_here};
use mingle_peer::error::Context;
use mingle_peer::solving::Explain;
use mingle_peer::{Error, ErrorKind, Home, Result, plan, units};
use mingle_planner::Plan;
use mingle_recommend::{Interactions, METRICS, Planted, co_cluster};
use mingle_solving::{Learned, Problem};
use serde::Serialize;

use super::super::bind_to_new_homes;
use super::super::output::Output;
use super::{PeerProcesses, StopRequests, Swarm, event_loop, given, lab, out};
use crate::cli::DemoArgs;
use crate::recommendation::{self, RECOMMENDER, Recommendation};

/// Users and items of a shop's own community.
const USERS: usize = 90;
const ITEMS: usize = 80;
/// What the peers are given, besides the method.
const OPTIONS: &str =
    "rounds = 10\nepochs = 3\nfrozen_rounds = 2\nfrequencies = 32\nbatch_size = 512\nlearning_rate = 0.002\n";
/// What the table has: methods, and their lines in the file.
const BESIDE: [(&str, &str); 2] = [("each alone", "method = \"alone\"\n"), ("FedAvg", "method = \"fedavg\"\n")];

/// What came of all of them.
#[derive(Debug, Serialize)]
struct Report {
    schema: &'static str,
    peers: usize,
    seconds: f64,
    peak_resident_bytes: Option<u64>,
    /// By method: the mean of each metric over all peers.
    methods: BTreeMap<String, BTreeMap<String, f64>>,
    learned: Vec<Learned>,
}

/// Runs it.
pub(in super::super) fn execute(arguments: &DemoArgs, json: bool) -> Result {
    let mut plan = given::design(arguments, &given::places(arguments)?)?;
    let planted = Planted {
        communities: arguments.peers,
        users: USERS,
        items: ITEMS,
        seed: arguments.seed,
        ..Planted::default()
    };
    let all = planted.draw();
    let dealt = co_cluster(&all, arguments.peers, arguments.seed).map_err(recommendation::explain)?;
    let output = Output::create(&arguments.output)?;
    let folder = output.root().join("shops");
    fs::create_dir_all(&folder).context(ErrorKind::BadInput, format!("cannot create {}", folder.display()))?;
    for ((name, _), part) in plan.nodes().zip(&dealt.parts) {
        output.write(&format!("shops/{name}.csv"), table(part).as_bytes())?;
    }
    output.write("problem.toml", text("", arguments.seed).as_bytes())?;
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
    let homes = bind_to_new_homes(&mut plan, &output)?;
    plan::write(&plan, &output.plan())?;
    let run = event_loop::start()?.block_on(run(&homes, &output, json))?;
    let report = report(arguments, &plan, &homes, &output, run)?;
    let text = serde_json::to_string_pretty(&report.0).context(ErrorKind::Unexpected, "cannot encode the report")?;
    output.write("report.json", format!("{text}\n").as_bytes())?;
    print(&report.0, &homes, &report.1, &output, json);
    Ok(())
}

fn table(part: &Interactions) -> String {
    let mut text = "user,item\n".to_owned();
    for (user, name) in part.users().iter().enumerate() {
        part.of_user(user).iter().for_each(|item| text += &format!("{name},{}\n", part.items()[*item as usize]));
    }
    text
}

fn text(method: &str, seed: u64) -> String {
    format!(
        "# What might a customer want next? Each shop keeps who bought what.\n\
         kind = \"recommendation\"\ndata = \"shops/{{node}}.csv\"\nseed = {seed}\n{method}{OPTIONS}"
    )
}

/// Seconds that the peers ran for, and the largest resident memory of any.
async fn run(homes: &[Home], output: &Output, json: bool) -> Result<(f64, Option<u64>)> {
    let mut stop = StopRequests::listen(false)?;
    let (processes, events) = PeerProcesses::new()?;
    let mut swarm = Swarm { output, json, started: Instant::now(), processes, events, peak_bytes: Vec::new() };
    let ended = tokio::select! {
        ended = swarm.solve(homes) => ended,
        reason = stop.next() => Err(Error::new(ErrorKind::Forced, format!("{reason}; all peers are stopped"))),
    };
    if let Err(failure) = ended {
        swarm.stop_all().await;
        return Err(failure);
    }
    Ok((swarm.started.elapsed().as_secs_f64(), swarm.peak_bytes.iter().copied().max()))
}

/// The report, and a customer to ask for.
fn report(
    arguments: &DemoArgs,
    plan: &Plan,
    homes: &[Home],
    output: &Output,
    (seconds, peak_resident_bytes): (f64, Option<u64>),
) -> Result<(Report, String)> {
    let read = |home: &Home| -> Result<Learned> {
        let path = home.root().join("learned.json");
        let doing = || format!("cannot read {}", path.display());
        let text = fs::read_to_string(&path).context(ErrorKind::Unexpected, doing())?;
        serde_json::from_str(&text).context(ErrorKind::Unexpected, doing())
    };
    let learned = homes.iter().map(read).collect::<Result<Vec<Learned>>>()?;
    let mut methods = BTreeMap::new();
    for (name, method) in BESIDE {
        methods.insert(name.to_owned(), in_one_process(plan, &text(method, arguments.seed), output)?);
    }
    methods.insert("LPSFed".to_owned(), learned.first().map(means).unwrap_or_default());
    let recommender = fs::read(homes[0].root().join(RECOMMENDER))
        .context(ErrorKind::Unexpected, "the first shop has no recommender")?;
    let recommender = mingle_recommend::Recommender::from_bytes(&recommender).map_err(recommendation::explain)?;
    let report = Report {
        schema: "mingle.demo.recommend/1",
        peers: homes.len(),
        seconds,
        peak_resident_bytes,
        methods,
        learned,
    };
    Ok((report, recommender.users().first().cloned().unwrap_or_default()))
}

/// The same with another method, all shops in this process.
fn in_one_process(plan: &Plan, text: &str, output: &Output) -> Result<BTreeMap<String, f64>> {
    let doing = "cannot learn in one process";
    let file = toml::from_str(text).context(ErrorKind::Unexpected, doing)?;
    let recommendation = Recommendation::new(file, output.root().to_owned(), None)?;
    let names = plan.nodes().map(|(name, _)| name.to_owned()).collect();
    let problem = Problem::of_rounds(Arc::new(recommendation), Arc::new(names));
    let schedule = Arc::new(plan::schedule(plan)?);
    let communication = Arc::new(problem.communication(plan, schedule).map_err(Explain::explain)?);
    let found = learn_here(&problem, &communication, Conditions { loss: 0.0, seed: 0 }, |_| {});
    let found = found.map_err(lab::swarm_error)?;
    Ok(found.learned.first().map(means).unwrap_or_default())
}

fn means(learned: &Learned) -> BTreeMap<String, f64> {
    let values = learned.best().map(|best| best.mean.clone()).unwrap_or_default();
    METRICS.iter().zip(values).filter_map(|(name, value)| Some(((*name).to_owned(), value?))).collect()
}

fn print(report: &Report, homes: &[Home], user: &str, output: &Output, json: bool) {
    if json {
        out::line(serde_json::json!(report));
        return;
    }
    let columns = &METRICS[1..];
    let head: Vec<String> = columns.iter().map(|name| format!("{:>18}", name.replace('_', " "))).collect();
    out::line(format!("\n{:<12}{}", "mean", head.concat()));
    for method in BESIDE.iter().map(|beside| beside.0).chain(["LPSFed"]) {
        let Some(values) = report.methods.get(method) else { continue };
        let cell = |name: &&str| values.get(*name).map_or_else(|| "-".to_owned(), |value| format!("{value:.4}"));
        let cells: Vec<String> = columns.iter().map(|name| format!("{:>18}", cell(name))).collect();
        out::line(format!("{method:<12}{}", cells.concat()));
    }
    let folder = output.root().display();
    let memory =
        report.peak_resident_bytes.map(|bytes| format!(", up to {:.0} MB of memory each", units::megabytes(bytes)));
    out::line(format!(
        "\n{} peers, {:.1} s{}; the rows beside LPSFed are from one process",
        report.peers,
        report.seconds,
        memory.unwrap_or_default()
    ));
    out::line(format!("wrote {folder}/report.json; what a customer of the first shop might want next:"));
    out::line(format!("  mingle recommend --home {} --user {user}", homes[0].root().display()));
}
