//! The commands, one file a noun.

pub mod advice;
pub mod aggregate;
pub mod audit;
pub mod bag;
pub mod bench;
pub mod billing;
pub mod budget;
pub mod burst;
pub mod completion;
pub mod config;
pub mod conform;
pub mod decision;
pub mod evacuation;
pub mod explain;
pub mod flavor;
pub mod host;
pub mod init;
pub mod model;
pub mod plan;
pub mod plugin;
pub mod price;
pub mod region_audit;
pub mod replay;
pub mod run;
pub mod server;
pub mod server_create;
pub mod server_group;
pub mod server_view;
pub mod simulate;
pub mod status;
pub mod token;
pub mod wait;
pub mod watch;
pub mod what_if;

use crate::Context;
use crate::args::Command;
use crate::errors::CliError;

/// Does what was asked for.
///
/// # Errors
/// Whatever the command meets.
pub async fn run(context: &mut Context, command: Command) -> Result<(), CliError> {
    match command {
        Command::Host(command) => host::run(context, command).await,
        Command::Flavor(command) => flavor::run(context, command).await,
        Command::Server(command) => server::run(context, command).await,
        Command::Aggregate(command) => aggregate::run(context, command).await,
        Command::Bag(command) => Box::pin(bag::run(context, &command)).await,
        Command::Burst(command) => burst::run(context, &command),
        Command::Budget(command) => budget::run(context, command).await,
        Command::Config(command) => config::run(context, &command),
        Command::Plugin(command) => plugin::run(context, command).await,
        Command::Advice(args) => advice::run(context, args).await,
        Command::WhatIf(args) => what_if::run(context, args).await,
        Command::Explain(args) => explain::run(context, args).await,
        Command::Decision(command) => decision::run(context, command).await,
        Command::Evacuation(command) => evacuation::run(context, command).await,
        Command::Watch(args) => watch::run(context, args).await,
        Command::Status(args) => status::run(context, args).await,
        Command::Init(args) => init::run(context, &args),
        Command::Token(command) => token::run(context, command),
        Command::Audit(args) => Box::pin(audit::run(context, args)).await,
        Command::Replay(args) => Box::pin(replay::run(context, *args)).await,
        Command::Bench(command) => bench::run(context, command),
        Command::Conform(command) => conform::run(context, command),
        Command::Simulate(command) => simulate::run(context, command),
        Command::Model(command) => model::run(context, command).await,
        Command::Price(command) => price::run(context, command).await,
        Command::Billing(command) => billing::run(context, command).await,
        Command::Plan(command) => plan::run(context, command),
        Command::Run(args) => Box::pin(run::run(context, *args)).await,
        Command::Completion(args) => completion::run(context, &args),
    }
}
