//! Measures of the structure of this workspace, each beside its goal and its limit.
//!
//! `scripts/measures` runs it. A limit is what the last change reached: a change that passes it fails, and one that
//! comes nearer to the goal lowers it here.

mod circles;
mod crates;
mod functions;
mod lexer;
mod names;
mod paths;
mod report;
mod source;

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "\
usage: mingle-measures [--list] [-h]

Prints measures of the sources of the workspace in the current folder, tests left out, with goals and limits. Ends with
status 1 where a measure is above its limit.

  --list   print each place that counts
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let with_places = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => false,
        ["--list"] => true,
        ["-h" | "--help"] => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    let crates = match crates::read_workspace(Path::new("")) {
        Ok(crates) => crates,
        Err(error) => {
            eprintln!("mingle-measures: cannot read the sources of the workspace in this folder: {error}");
            return ExitCode::from(2);
        }
    };
    let measures = report::measures(&crates);
    if with_places {
        let mut output = std::io::stdout().lock();
        for place in measures.iter().flat_map(|measure| &measure.places) {
            if writeln!(output, "{place}").is_err() {
                break; // the reader has enough
            }
        }
        return ExitCode::SUCCESS;
    }
    print!("{}", report::table(&measures));
    let above: Vec<_> = measures.iter().filter(|measure| measure.value > measure.limit).collect();
    for measure in &above {
        eprintln!("mingle-measures: too many {}: scripts/measures --list | grep '^{}'", measure.name, measure.key);
    }
    if above.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
