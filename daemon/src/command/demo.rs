//! `mingle demo`: a whole swarm on this machine, by `mingle_demo`.

mod problem;
mod progress;
mod report;

use std::sync::Arc;

use mingle_demo::{CheckedTraining, PeerProgram};
use mingle_peer::error::Context;
use mingle_peer::{Error, ErrorKind, Result, encodings, plan};
use mingle_protocol::{Codec, CodecChoice};

use crate::cli::DemoArgs;
use crate::{config, event_loop, signals};
use progress::Progress;

/// Runs the demo.
pub(super) fn execute(arguments: &DemoArgs, json: bool) -> Result {
    mingle_demo::check_peers(arguments.peers)?;
    if let Some(kind) = arguments.problem {
        if !matches!(arguments.communication.codec, CodecChoice::Auto | CodecChoice::Fixed(Codec::F32)) {
            let message = "--codec is for models: what peers that solve a problem say is exact";
            return Err(Error::new(ErrorKind::BadInput, message).hint("leave --codec or --problem away"));
        }
        return problem::execute(&arguments.problem_options(), kind, json);
    }
    let options = arguments.options();
    let checked = CheckedTraining::new(options.clone())?;
    let program = this_program()?;
    let (report, progress) = event_loop::run(async {
        // Before the folder is made: an interrupted demo puts the files of an earlier one back.
        let mut stop = signals::forward()?;
        let demo = checked.make_folder()?;
        let progress = Arc::new(Progress::start(&options, demo.plan(), json));
        let schedule = plan::schedule(demo.plan())?;
        let momentum = plan::momentum(options.momentum_across_rounds, demo.plan())?;
        let codec = encodings::introduce(&schedule, options.codec, demo.parameter_count()?, momentum);
        codec.iter().for_each(|line| progress.note(line));
        demo.data_remarks().iter().for_each(|remark| progress.note(&format!("data     {remark}")));
        let report = demo.run(program, progress.clone(), &mut stop).await?;
        Ok((report, progress))
    })?;
    progress.clear();
    report::print(&report, json);
    report.check()
}

/// The program that each peer runs. The demo passes all settings as arguments; variables meant for the user's own peer
/// are hidden.
fn this_program() -> Result<PeerProgram> {
    let file = std::env::current_exe().context(ErrorKind::Unexpected, "cannot find this program's own file")?;
    Ok(PeerProgram { file, hidden_variables: config::variables().map(str::to_owned).collect() })
}
