//! One file a command.

mod demo;
mod id;
mod init;
mod plan_bind;
mod plan_check;
mod plan_make;
mod plan_show;
mod run;

use crate::cli::{Cli, Command, PlanCommand};
use crate::failure::Outcome;

/// Does what the command line asks for.
pub(crate) fn execute(cli: Cli) -> Outcome {
    let json = cli.json;
    match cli.command {
        Command::Demo(arguments) => demo::execute(&arguments, json),
        Command::Init(arguments) => init::execute(&arguments, json),
        Command::Id(arguments) => id::execute(&arguments, json),
        Command::Run(arguments) => run::execute(&arguments, json),
        Command::Plan(PlanCommand::Make(arguments)) => plan_make::execute(&arguments, json),
        Command::Plan(PlanCommand::Show(arguments)) => plan_show::execute(&arguments, json),
        Command::Plan(PlanCommand::Check(arguments)) => plan_check::execute(&arguments, json),
        Command::Plan(PlanCommand::Bind(arguments)) => plan_bind::execute(&arguments, json),
    }
}
