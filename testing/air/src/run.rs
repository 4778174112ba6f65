//! `mingle-air run`.

use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use mingle_air::live::{self, LiveAir, LiveReport};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator::Signals,
};

use super::{AIR_VARIABLE, Failure, cli::RunArguments, janitor::Janitor, topology};

/// The time that the command has to end after a signal.
const PATIENCE: Duration = Duration::from_secs(10);

/// The end of an air's work.
enum AirEnd {
    Asked,
    Ended(std::io::Result<ExitStatus>),
}

pub(super) fn run(arguments: &RunArguments) -> Result<ExitCode, Failure> {
    let base = topology(&arguments.graph)?;
    let ends = signals()?;
    let prefix = live::prefix_of(std::process::id());
    let _janitor = Janitor::start(&prefix)?;
    let air = LiveAir::start(&base, &arguments.settings(), arguments.mtu, &prefix)?;
    let status = match &arguments.command[..] {
        [] => wait(&air, &ends.1),
        command => run_command(command, &prefix, &air, ends),
    };
    let report = air.stop();
    if let Some(path) = &arguments.report {
        std::fs::write(path, report.to_json()?)
            .map_err(|error| format!("the report {} cannot be written: {error}", path.display()))?;
    }
    summarise(&report);
    status
}

/// A channel of the ends of an air, with the signals that ask for one.
fn signals() -> Result<(Sender<AirEnd>, Receiver<AirEnd>), Failure> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    let (sender, ends) = channel();
    let asked = sender.clone();
    std::thread::spawn(move || {
        for _ in signals.forever() {
            // Nothing is left to end where this fails.
            let _ = asked.send(AirEnd::Asked);
        }
    });
    Ok((sender, ends))
}

fn wait(air: &LiveAir, ends: &Receiver<AirEnd>) -> Result<ExitCode, Failure> {
    let mut output = std::io::stdout().lock();
    for (number, node) in air.nodes().iter().enumerate() {
        writeln!(output, "{number} {} {} {}", node.namespace, node.address, node.name)?;
    }
    output.flush()?;
    ends.recv()?;
    Ok(ExitCode::SUCCESS)
}

fn run_command(
    command: &[String],
    prefix: &str,
    air: &LiveAir,
    (sender, ends): (Sender<AirEnd>, Receiver<AirEnd>),
) -> Result<ExitCode, Failure> {
    let nodes = air.nodes().len().to_string();
    let mut child = Command::new(&command[0])
        .args(&command[1..])
        .env(AIR_VARIABLE, prefix)
        .env("MINGLE_AIR_NODES", nodes)
        .spawn()
        .map_err(|error| format!("{} did not start: {error}", command[0]))?;
    let process = pid(&child);
    std::thread::spawn(move || {
        // Where this fails, the air has ended without waiting for its command.
        let _ = sender.send(AirEnd::Ended(child.wait()));
    });
    let end = match ends.recv()? {
        AirEnd::Asked => {
            signal(process, Signal::TERM);
            let is_ended = |end: &AirEnd| matches!(end, AirEnd::Ended(_));
            let end = std::iter::from_fn(|| ends.recv_timeout(PATIENCE).ok()).find(is_ended);
            if end.is_none() {
                signal(process, Signal::KILL);
            }
            end
        }
        end => Some(end),
    };
    let Some(AirEnd::Ended(status)) = end else {
        return Ok(ExitCode::from(128 + 9));
    };
    let status = status?;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

fn pid(child: &Child) -> Option<Pid> {
    Pid::from_raw(i32::try_from(child.id()).ok()?)
}

fn signal(process: Option<Pid>, signal: Signal) {
    // It may have ended by itself.
    let _ = process.map(|process| kill_process(process, signal));
}

fn summarise(report: &LiveReport) {
    let sum = |count: fn(&mingle_air::RadioCounts) -> u64| -> u64 {
        report.nodes.iter().map(|node| count(&node.counts)).sum()
    };
    eprintln!(
        "air: {:.1} s, busy {:.2} s; {} frames, {} of them retries, {} given up; at receivers {} arrived, {} collided, {} \
         missed while sending, {} lost; delivered {:.1} ms late at most",
        report.elapsed.as_secs_f64(),
        report.busy.as_secs_f64(),
        sum(|counts| counts.frames),
        sum(|counts| counts.retries),
        sum(|counts| counts.given_up),
        sum(|counts| counts.received + counts.overheard),
        sum(|counts| counts.collided),
        sum(|counts| counts.missed),
        sum(|counts| counts.lost),
        1e3 * report.delivery_late.max_s,
    );
    if let Some(warning) = report.warning() {
        eprintln!("air: {warning}");
    }
}
