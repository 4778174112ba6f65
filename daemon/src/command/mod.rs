//! The commands, one file each.

mod audit;
mod bugreport;
mod ckpt;
mod completions;
mod config;
mod data;
mod demo;
mod design_request;
mod doctor;
mod eval;
mod evaluate;
mod expel;
mod export;
mod fault_test;
mod follow;
mod generate;
mod graph;
mod id;
mod init;
mod invite;
mod join;
mod leave;
mod logs;
mod man;
mod operator;
mod ping;
mod plan_apply;
mod plan_bind;
mod plan_check;
mod plan_compare;
mod plan_diff;
mod plan_draw;
mod plan_make;
mod plan_show;
mod predict;
mod probe;
mod recommend;
mod replay;
mod run;
mod simulate;
mod solve;
mod solve_rounds;
mod solve_trainers;
mod status;
mod stop;
mod timeline;
mod topology_convert;
mod topology_show;
mod wait;
mod watch;

use std::num::NonZero;
use std::process::ExitCode;

use mingle_peer::Result;

use crate::cli::{Cli, Command, GraphCommand, PlanCommand, TopologyCommand};

/// Executes a command. The exit code is not 0 where the answer of a command is a code.
pub(crate) fn execute(cli: Cli) -> Result<ExitCode> {
    let json = cli.json;
    match cli.command {
        Command::Demo(arguments) => demo::execute(&arguments, json)?,
        Command::Init(arguments) => init::execute(&arguments, json)?,
        Command::Invite(arguments) => invite::execute(&arguments, json)?,
        Command::Expel(arguments) => expel::execute(&arguments, json)?,
        Command::Operator(command) => operator::execute(&command, json)?,
        Command::Join(arguments) => join::execute(&arguments, json)?,
        Command::Follow(arguments) => follow::execute(&arguments, json)?,
        Command::Id(arguments) => id::execute(&arguments, json)?,
        Command::Run(arguments) => run::execute(&arguments, json)?,
        Command::Status(arguments) => status::execute(&arguments, json)?,
        Command::Peers(arguments) => status::peers(&arguments, json)?,
        Command::Wait(arguments) => wait::execute(&arguments, json)?,
        Command::Logs(arguments) => logs::execute(&arguments, json)?,
        Command::Watch(arguments) => watch::execute(&arguments)?,
        Command::Probe(arguments) => probe::execute(&arguments, json)?,
        Command::Ping(arguments) => ping::execute(&arguments, json)?,
        Command::Timeline(arguments) => timeline::execute(&arguments, json)?,
        Command::Stop(arguments) => stop::execute(&arguments, json)?,
        Command::Leave(arguments) => leave::execute(*arguments, json)?,
        Command::Audit(arguments) => return audit::execute(&arguments, json),
        Command::FaultTest(arguments) => return fault_test::execute(&arguments, json),
        Command::Simulate(arguments) => simulate::execute(&arguments, json)?,
        Command::Solve(arguments) => solve::execute(&arguments, json)?,
        Command::Recommend(arguments) => recommend::execute(&arguments, json)?,
        Command::Graph(GraphCommand::Show(arguments)) => graph::show(&arguments, json)?,
        Command::Evaluate(arguments) => evaluate::execute(&arguments, json)?,
        Command::Replay(arguments) => replay::execute(&arguments, json)?,
        Command::Plan(command) => return plan(command, json),
        Command::Data(command) => data::execute(&command, json)?,
        Command::Topology(command) => topology(command, json)?,
        Command::Eval(arguments) => eval::execute(&arguments, json)?,
        Command::Predict(arguments) => predict::execute(&arguments, json)?,
        Command::Generate(arguments) => generate::execute(&arguments, json)?,
        Command::Export(arguments) => export::execute(&arguments, json)?,
        Command::Ckpt(command) => return ckpt::execute(&command, json),
        Command::Doctor(arguments) => return doctor::execute(&arguments, json),
        Command::Bugreport(arguments) => bugreport::execute(&arguments, json)?,
        Command::Config(command) => config::execute(&command, json)?,
        Command::Completions(arguments) => completions::execute(&arguments)?,
        Command::Man(arguments) => man::execute(&arguments, json)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn plan(command: PlanCommand, json: bool) -> Result<ExitCode> {
    match command {
        PlanCommand::Make(arguments) => plan_make::execute(&arguments, json)?,
        PlanCommand::Compare(arguments) => plan_compare::execute(&arguments, json)?,
        PlanCommand::Show(arguments) => plan_show::execute(&arguments, json)?,
        PlanCommand::Diff(arguments) => return plan_diff::execute(&arguments, json),
        PlanCommand::Draw(arguments) => plan_draw::execute(&arguments, json)?,
        PlanCommand::Check(arguments) => plan_check::execute(&arguments, json)?,
        PlanCommand::Bind(arguments) => plan_bind::execute(&arguments, json)?,
        PlanCommand::Apply(arguments) => plan_apply::execute(&arguments, json)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn topology(command: TopologyCommand, json: bool) -> Result {
    match command {
        TopologyCommand::Show(arguments) => topology_show::execute(&arguments, json),
        TopologyCommand::Convert(arguments) => topology_convert::convert(&arguments, json),
        TopologyCommand::Generate(arguments) => topology_convert::generate(&arguments, json),
    }
}

/// The number of threads that the user wants, or one for each core.
fn threads_or_all(wanted: Option<NonZero<usize>>) -> NonZero<usize> {
    wanted.or_else(|| std::thread::available_parallelism().ok()).unwrap_or(NonZero::<usize>::MIN)
}
