//! `ebbtide what-if`: a decision that changes nothing.

use crate::commands::server_create::RequestArgs;
use crate::decision_view;
use clap::Args;
use ebbtide_proto::v1;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;

const EXAMPLES: &str = "\
Says where servers would go now and who would have to leave. Nothing is claimed and no server is
notified; a moment later the answer may be another. No valid host: exit code 1.

Examples:
  ebbtide what-if --flavor m1.large
  ebbtide what-if --flavor m1.large --count 10 --availability-zone north -o json";

/// Options of `what-if`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct WhatIfArgs {
    /// What
    #[command(flatten)]
    pub request: RequestArgs,
}

/// Asks and shows.
///
/// # Errors
/// What the region says; [`CliError::NoValidHost`].
pub async fn run(context: &mut Context, args: WhatIfArgs) -> Result<(), CliError> {
    let request = v1::WhatIfRequest {
        request: Some(args.request.request(&context.project)),
    };
    let answer = context.region().await?.scheduler.what_if(request).await?;
    let decision = answer.into_inner().decision.unwrap_or_default();
    decision_view::print(context, &decision)?;
    context
        .output
        .say("This was a question: nothing was changed.");
    match decision.no_valid_host {
        // Nothing is kept of a question, so there is nothing to explain later.
        Some(nowhere) => Err(CliError::NoValidHost {
            reason: nowhere.reason,
            decision_id: String::new(),
        }),
        None => Ok(()),
    }
}
