//! `mingle fault-test`: runs swarms of production nodes on virtual time, killed, cut off and rolled back, one seed
//! after another, by `mingle_lab::campaign`. The run of a failing seed is written down for `mingle replay`, shortened
//! as long as it still fails.

mod days;

use std::process::ExitCode;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use mingle_lab::campaign::sums::{self, SUMS};
use mingle_lab::campaign::{Campaign, Cost, FailingSeed, ProfileReport, run_seeds, table};
use mingle_peer::error::Context;
use mingle_peer::{Error, ErrorKind, Result, output_file, results};
use mingle_protocol::sim::{Profile, Variant};
use mingle_protocol::{Robust, TrainingOverlap};

use super::threads_or_all;
use crate::cli::{FaultProfile, FaultTestArgs, Profiles};
use crate::out;

/// Failing seeds of a profile whose runs are shortened and written down, which takes hundreds of runs each.
const MOST_JOURNALS: usize = 5;

/// Runs the seeds of every requested profile. The exit code is not 0 if any failed.
pub(super) fn execute(arguments: &FaultTestArgs, json: bool) -> Result<ExitCode> {
    output_file::check_folder(&arguments.journals)?;
    let profiles = Profiles::listed(&arguments.profiles);
    if let Some(days) = arguments.days {
        return days::execute(arguments, &push_sum(&profiles)?, days, json);
    }
    if arguments.seeds > u64::MAX - arguments.first {
        return Err(Error::new(ErrorKind::BadInput, "--first and --seeds: the last seed would be beyond 2^64"));
    }
    let mut failing = 0;
    if !json {
        out::line(table::heading());
    }
    for profile in profiles {
        let found = match profile {
            FaultProfile::PushSum(profile) => run(arguments, profile)?,
            FaultProfile::Sums => run_sums(arguments)?,
        };
        failing += found.failed;
        if json {
            out::line(serde_json::json!(found));
        } else {
            table::lines(&found).iter().for_each(out::line);
        }
    }
    match failing {
        0 => Ok(ExitCode::SUCCESS),
        // The objects on standard output contain the failures already.
        _ if json => Ok(ExitCode::from(ErrorKind::Integrity as u8)),
        failing => Err(Error::new(ErrorKind::Integrity, format!("{failing} seeds failed"))
            .hint("mingle replay JOURNAL --trace tells what happened in one of them")),
    }
}

fn run(arguments: &FaultTestArgs, profile: Profile) -> Result<ProfileReport> {
    let seeds = arguments.first..arguments.first + arguments.seeds;
    let variant = Variant { injected_bug: arguments.inject, robust: arguments.robust, overlap: arguments.overlap };
    let campaign = Campaign { profile, seeds, variant, threads: threads_or_all(arguments.threads) };
    let progress = progress(profile.name(), arguments.seeds);
    let began = Instant::now();
    let mut found = ProfileReport::new(&campaign);
    campaign.run(|outcome| {
        found.add(outcome);
        progress.set_message(table::progress(&found));
        progress.inc(1);
    });
    found.finish(cost(began));
    progress.finish_and_clear();
    for failing in found.failures.iter_mut().take(MOST_JOURNALS) {
        write_journal(failing, arguments)?;
    }
    Ok(found)
}

/// The swarms of masked sums, whose failing seeds have no journals.
fn run_sums(arguments: &FaultTestArgs) -> Result<ProfileReport> {
    if arguments.inject.is_some() || arguments.robust != Robust::Off || arguments.overlap != TrainingOverlap::Off {
        return Err(Error::new(ErrorKind::BadInput, "--inject, --robust and --overlap are not about sums"));
    }
    let seeds = arguments.first..arguments.first + arguments.seeds;
    let progress = progress(SUMS, arguments.seeds);
    let began = Instant::now();
    let mut found = ProfileReport::of_sums(arguments.first);
    run_seeds(seeds, threads_or_all(arguments.threads), sums::run_sums, |outcome| {
        found.add_sums(outcome);
        progress.set_message(table::progress(&found));
        progress.inc(1);
    });
    found.finish(cost(began));
    progress.finish_and_clear();
    Ok(found)
}

/// The profiles of swarms that run for days.
fn push_sum(profiles: &[FaultProfile]) -> Result<Vec<Profile>> {
    let of = |profile: &FaultProfile| match profile {
        FaultProfile::PushSum(profile) => Ok(*profile),
        FaultProfile::Sums => Err(Error::new(ErrorKind::BadInput, "--days: a swarm of sums ends after some rounds")),
    };
    profiles.iter().map(of).collect()
}

/// Writes the run of a failing seed down, with as few faults as needed to fail.
fn write_journal(failing: &mut FailingSeed, arguments: &FaultTestArgs) -> Result {
    let Some(short) = failing.shorten(arguments.shrink_runs) else { return Ok(()) };
    let Some(name) = failing.file_name() else { return Ok(()) };
    let text =
        serde_json::to_string_pretty(&short.journal).context(ErrorKind::Unexpected, "cannot encode the journal")?;
    output_file::make_folder(&arguments.journals)?;
    let path = arguments.journals.join(name);
    output_file::write(&path, format!("{text}\n").as_bytes())?;
    failing.written(path, &short);
    Ok(())
}

/// Time and memory of this process since `began`.
fn cost(began: Instant) -> Cost {
    Cost { wall: began.elapsed(), peak_memory_bytes: results::peak_resident_bytes() }
}

/// A progress line on a terminal, nothing elsewhere.
fn progress(profile: &str, seeds: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(seeds), ProgressDrawTarget::stderr());
    let template = format!("{{spinner}} {profile} {{pos}}/{{len}} seeds, {{per_sec}}, {{msg}}, {{eta}} to go");
    if let Ok(style) = ProgressStyle::with_template(&template) {
        bar.set_style(style);
    }
    bar
}
