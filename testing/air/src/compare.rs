//! `mingle-air compare` and `mingle-air draw`.

use std::path::Path;
use std::process::ExitCode;

use mingle_air::{AirtimeComparison, AirtimeRequest, RoundPayload, Slotting, draw_round};
use mingle_planner::Method;

use super::{
    Failure,
    cli::{CompareArguments, DrawArguments, RoundArguments},
    topology,
};

pub(super) fn compare(arguments: &CompareArguments) -> Result<ExitCode, Failure> {
    let request = request(&arguments.round, &arguments.graphs, &arguments.designs, arguments.runs)?;
    let comparison = AirtimeComparison::make(&request, |graph, design| eprintln!("{graph} {design}"))?;
    if let Some(path) = &arguments.json {
        write(path, serde_json::to_string_pretty(&comparison)?)?;
    }
    print!("{}", comparison.to_markdown());
    Ok(ExitCode::SUCCESS)
}

pub(super) fn draw(arguments: &DrawArguments) -> Result<ExitCode, Failure> {
    let graphs = std::slice::from_ref(&arguments.graph);
    let request = request(&arguments.round, graphs, &[arguments.design], 1)?;
    write(&arguments.output, draw_round(&request, arguments.design)?)?;
    println!("drawn: {}", arguments.output.display());
    Ok(ExitCode::SUCCESS)
}

fn request(
    round: &RoundArguments,
    graphs: &[String],
    designs: &[Method],
    runs: u32,
) -> Result<AirtimeRequest, Failure> {
    let graphs = graphs.iter().map(|text| Ok((text.clone(), topology(text)?)));
    Ok(AirtimeRequest {
        graphs: graphs.collect::<Result<_, Failure>>()?,
        designs: designs.to_vec(),
        settings: round.medium.settings(),
        payload: RoundPayload { bytes: round.payload, packet_bytes: round.packet, ..RoundPayload::default() },
        slotting: Slotting { guard: round.guard, clock_error: round.clock_error },
        runs,
    })
}

fn write(path: &Path, text: String) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|error| format!("{} cannot be written: {error}", path.display()).into())
}
