//! Times of the steps of recommenders, and their quality. Interactions are dealt to clients; each computes its spectrum
//! and trains alone for some epochs. Prints a line of JSON for each step.
//!
//! ```text
//! recommender_speed DATA [clients=1] [frequencies=128] [epochs=2] [learning_rate=0.0005] [loss=contrastive|bpr] [batch_size=4096]
//!                        [negatives=4] [seed=0] [evaluate_every=0] [evaluation_users=all] [balanced=false] [cache=FOLDER]
//!                        [split=FOLDER]
//! ```
//!
//! `DATA` is a file of interactions in any form, or planted ones such as `planted:communities=4,users=1510`. With
//! `split` each client's training, validation and test pairs are written into that folder, `user item` by number in a
//! line, for other programs to train on. The client is evaluated after every `evaluate_every` epochs; 0: at the end
//! alone. Memory is the largest resident set of the whole process so far.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Instant;

use mingle_models::DeviceName;
use mingle_recommend::{
    ClientOptions, DealOptions, Form, Interactions, LossKind, METRICS, RecommenderClient, SpectrumCache, UserSplit,
    co_cluster, interactions_of,
};

type Options = BTreeMap<String, String>;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let data = arguments.next().ok_or("what to learn from is missing: a file of interactions, or planted:...")?;
    let mut given = Options::new();
    for argument in arguments {
        let (name, value) = argument.split_once('=').ok_or_else(|| format!("{argument}: name=value is expected"))?;
        given.insert(name.to_owned(), value.to_owned());
    }
    let began = Instant::now();
    let all = interactions_of(&data, Path::new(""), Form::Auto)?;
    let (users, items) = (all.users().len(), all.items().len());
    tell("read", began, &format!(r#""users":{users},"items":{items},"interactions":{}"#, all.count()));
    let options = client_options(&given)?;
    let cache = given.get("cache").map(SpectrumCache::at);
    let clients: usize = get(&given, "clients", 1)?;
    let began = Instant::now();
    let deal = DealOptions { balanced: get(&given, "balanced", false)?, seed: options.seed };
    let dealt = match &cache {
        Some(cache) => cache.co_cluster(&all, clients, deal)?,
        None => co_cluster(&all, clients, deal)?,
    };
    let counts: Vec<usize> = dealt.parts.iter().map(Interactions::count).collect();
    tell("dealt", began, &format!(r#""interactions":{counts:?},"dropped":{}"#, dealt.dropped));
    drop(all);
    learn(dealt.parts, options, cache.as_ref(), &given)
}

/// Trains all clients at the same time in this process, an epoch of each in turn, as in a round.
fn learn(
    parts: Vec<Interactions>,
    options: ClientOptions,
    cache: Option<&SpectrumCache>,
    given: &Options,
) -> Result<(), Box<dyn Error>> {
    let device = DeviceName::Cpu.open()?;
    let mut clients = Vec::new();
    for (at, part) in parts.into_iter().enumerate() {
        if let Some(folder) = given.get("split") {
            write_split(&Path::new(folder).join(at.to_string()), &part, options.seed)?;
        }
        let (began, count) = (Instant::now(), part.count());
        clients.push(RecommenderClient::new(part, options, at as u64 + 1, &device, cache)?);
        tell("opened", began, &format!(r#""client":{at},"interactions":{count}"#));
    }
    let (epochs, every): (u32, u32) = (get(given, "epochs", 2)?, get(given, "evaluate_every", 0)?);
    for epoch in 1..=epochs {
        let began = Instant::now();
        let mut losses = Vec::new();
        for client in &mut clients {
            losses.push(client.train(1)?);
        }
        tell("epoch", began, &format!(r#""epoch":{epoch},"loss":{losses:?}"#));
        if epoch == epochs || (every > 0 && epoch.is_multiple_of(every)) {
            evaluate(&clients, epoch)?;
        }
    }
    Ok(())
}

fn evaluate(clients: &[RecommenderClient], epoch: u32) -> Result<(), Box<dyn Error>> {
    let began = Instant::now();
    let mut text = format!(r#""epoch":{epoch}"#);
    let found = clients.iter().map(RecommenderClient::evaluate).collect::<Result<Vec<_>, _>>()?;
    for (at, name) in METRICS.iter().enumerate() {
        let values: Vec<f64> = found.iter().filter_map(|quality| quality.values()[at]).collect();
        write!(text, r#","{name}":{}"#, values.iter().sum::<f64>() / values.len().max(1) as f64)?;
    }
    tell("evaluated", began, &text);
    Ok(())
}

fn write_split(folder: &Path, interactions: &Interactions, seed: u64) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(folder)?;
    let split = UserSplit::of(interactions, seed);
    for (name, part) in [("train", &split.train), ("validation", &split.validation), ("test", &split.test)] {
        let mut text = String::new();
        for (user, items) in part.iter().enumerate() {
            items.iter().try_for_each(|item| writeln!(text, "{user} {item}"))?;
        }
        fs::write(folder.join(format!("{name}.txt")), text)?;
    }
    Ok(())
}

fn client_options(given: &Options) -> Result<ClientOptions, Box<dyn Error>> {
    let usual = ClientOptions::default();
    let loss = match given.get("loss").map(String::as_str) {
        None | Some("contrastive") => LossKind::Contrastive,
        Some("bpr") => LossKind::Bpr,
        Some(other) => return Err(format!("loss={other}: contrastive or bpr").into()),
    };
    Ok(ClientOptions {
        loss,
        frequencies: get(given, "frequencies", usual.frequencies)?,
        learning_rate: get(given, "learning_rate", usual.learning_rate)?,
        batch_size: get(given, "batch_size", usual.batch_size)?,
        negatives: get(given, "negatives", usual.negatives)?,
        seed: get(given, "seed", usual.seed)?,
        evaluation_users: get(given, "evaluation_users", usize::MAX)?,
        ..usual
    })
}

fn get<T: std::str::FromStr>(given: &Options, name: &str, usual: T) -> Result<T, String> {
    given.get(name).map_or(Ok(usual), |text| text.parse().map_err(|_| format!("{name}={text} cannot be understood")))
}

fn tell(what: &str, began: Instant, more: &str) {
    let seconds = began.elapsed().as_secs_f64();
    println!(r#"{{"what":"{what}","seconds":{seconds:.4},"peak_memory_mb":{:.0},{more}}}"#, peak_memory_mb());
}

/// The largest resident set so far in megabytes, where the kernel reports it; else 0.
fn peak_memory_mb() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes: Option<f64> = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse().ok());
    kilobytes.map_or(0.0, |kilobytes| kilobytes * 1024.0 / 1e6)
}
