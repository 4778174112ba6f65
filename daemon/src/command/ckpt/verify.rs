//! `mingle ckpt verify`: verifies files and homes.

use std::process::ExitCode;

use mingle_builtin::verification::{VerifiedModel, verify};
use mingle_peer::{Error, ErrorKind, Result};

use crate::cli::CkptVerifyArgs;
use crate::out;

/// Verifies all named paths; the exit code is 0 if all of them hold.
pub(super) fn execute(arguments: &CkptVerifyArgs, json: bool) -> Result<ExitCode> {
    let mut verdicts = Vec::new();
    for path in &arguments.paths {
        verdicts.extend(verify(path)?);
    }
    print(&verdicts, json);
    let damaged = verdicts.iter().filter(|verdict| verdict.result.is_err()).count();
    match damaged {
        0 => Ok(ExitCode::SUCCESS),
        // The object on standard output contains the faults already.
        _ if json => Ok(ExitCode::from(ErrorKind::Integrity as u8)),
        _ => Err(Error::new(ErrorKind::Integrity, format!("{damaged} of {} do not hold", verdicts.len()))),
    }
}

fn print(verdicts: &[VerifiedModel], json: bool) {
    if json {
        let verdict = |verdict: &VerifiedModel| {
            let (found, fault) = (verdict.result.as_ref().ok(), verdict.result.as_ref().err());
            serde_json::json!({ "path": verdict.path, "holds": fault.is_none(), "found": found, "fault": fault })
        };
        let verdicts: Vec<_> = verdicts.iter().map(verdict).collect();
        out::line(serde_json::json!({ "schema": "mingle.ckpt-verify/1", "verdicts": verdicts }));
        return;
    }
    for VerifiedModel { path, result } in verdicts {
        match result {
            Ok(found) => out::line(format!("ok       {}: {found}", path.display())),
            Err(fault) => out::line(format!("DAMAGED  {}: {fault}", path.display())),
        }
    }
}
