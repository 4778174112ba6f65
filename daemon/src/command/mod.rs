//! One file a command.

mod demo;
mod design_request;
mod id;
mod init;
mod plan_bind;
mod plan_check;
mod plan_compare;
mod plan_diff;
mod plan_draw;
mod plan_make;
mod plan_show;
mod run;
mod topology;

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
        Command::Plan(PlanCommand::Compare(arguments)) => plan_compare::execute(&arguments, json),
        Command::Plan(PlanCommand::Diff(arguments)) => plan_diff::execute(&arguments, json),
        Command::Plan(PlanCommand::Draw(arguments)) => plan_draw::execute(&arguments),
        Command::Topology(command) => topology::execute(&command, json),
        Command::Plan(PlanCommand::Bind(arguments)) => plan_bind::execute(&arguments, json),
    }
}
