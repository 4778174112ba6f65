//! `mingle-air compare`.

use std::process::ExitCode;

use mingle_air::{AirtimeComparison, AirtimeRequest, RoundPayload, Slotting};

use super::{Failure, cli::CompareArguments, topology};

pub(super) fn compare(arguments: &CompareArguments) -> Result<ExitCode, Failure> {
    let graphs = arguments.graphs.iter().map(|text| Ok((text.clone(), topology(text)?)));
    let request = AirtimeRequest {
        graphs: graphs.collect::<Result<_, Failure>>()?,
        designs: arguments.designs.clone(),
        settings: arguments.medium.settings(),
        payload: RoundPayload { bytes: arguments.payload, packet_bytes: arguments.packet, ..RoundPayload::default() },
        slotting: Slotting { guard: arguments.guard, clock_error: arguments.clock_error },
        runs: arguments.runs,
    };
    let comparison = AirtimeComparison::make(&request, |graph, design| eprintln!("{graph} {design}"))?;
    if let Some(path) = &arguments.json {
        let text = serde_json::to_string_pretty(&comparison)?;
        std::fs::write(path, text).map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
    }
    print!("{}", comparison.to_markdown());
    Ok(ExitCode::SUCCESS)
}
