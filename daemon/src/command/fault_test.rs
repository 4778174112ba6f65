//! `mingle fault-test`: swarms of production nodes on virtual time, killed, cut off and rolled back, one seed after another.
//!
//! Every seed is a swarm, its plan and its faults. The ledger is added up after every single write to a disk; what does
//! not add up, and a swarm that does not come to its end, is a failure. The run of a failing seed is written down, made
//! as short as it can be and still fail, for `mingle replay`.

mod days;
mod failures;
mod hunt;
mod report;

use std::process::ExitCode;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use mingle_peer::{Error, ErrorKind, Result, output_file};
use mingle_protocol::sim::Profile;

use crate::cli::{FaultTestArgs, Profiles};
use crate::out;
use hunt::Hunt;
use report::Report;

/// Runs the seeds of every profile asked for. The exit code says whether any failed.
pub(super) fn execute(arguments: &FaultTestArgs, json: bool) -> Result<ExitCode> {
    if arguments.plant.is_some() {
        return Err(Error::new(ErrorKind::BadInput, "--plant is called --inject now"));
    }
    output_file::check_folder(&arguments.journals)?;
    let profiles = Profiles::listed(&arguments.profiles);
    if let Some(days) = arguments.days {
        return days::execute(arguments, &profiles, days, json);
    }
    if arguments.seeds > u64::MAX - arguments.first {
        return Err(Error::new(ErrorKind::BadInput, "--first and --seeds: the last seed would be beyond 2^64"));
    }
    let mut failing = 0;
    if !json {
        out::line(Report::heading());
    }
    for profile in profiles {
        let report = run(arguments, profile)?;
        failing += report.failing();
        if json {
            out::line(report.to_json());
        } else {
            report.lines().iter().for_each(out::line);
        }
    }
    match failing {
        0 => Ok(ExitCode::SUCCESS),
        // The objects on standard output say it already.
        _ if json => Ok(ExitCode::from(ErrorKind::Integrity as u8)),
        failing => Err(Error::new(ErrorKind::Integrity, format!("{failing} seeds failed"))
            .hint("mingle replay JOURNAL --trace tells what happened in one of them")),
    }
}

fn run(arguments: &FaultTestArgs, profile: Profile) -> Result<Report> {
    let seeds = arguments.first..arguments.first + arguments.seeds;
    let hunt = Hunt { profile, seeds, injected_bug: arguments.inject, threads: threads(arguments) };
    let progress = progress(profile, arguments.seeds);
    let began = Instant::now();
    let mut report = Report::new(&hunt);
    hunt.run(|outcome| {
        report.add(outcome);
        progress.set_message(report.progress());
        progress.inc(1);
    });
    report.finish(began.elapsed());
    progress.finish_and_clear();
    report.write_journals(arguments)?;
    Ok(report)
}

fn threads(arguments: &FaultTestArgs) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    arguments.threads.map_or_else(cores, std::num::NonZero::get)
}

/// A line on a terminal, nothing elsewhere.
fn progress(profile: Profile, seeds: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(seeds), ProgressDrawTarget::stderr());
    let template = format!("{{spinner}} {profile} {{pos}}/{{len}} seeds, {{per_sec}}, {{msg}}, {{eta}} to go");
    if let Ok(style) = ProgressStyle::with_template(&template) {
        bar.set_style(style);
    }
    bar
}
