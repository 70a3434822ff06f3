//! `ebbtide explain`: why.

use crate::decision_view;
use clap::Args;
use ebbtide_proto::v1;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::resolve;

const EXAMPLES: &str = "\
Shows how many hosts each filter dropped, what each weigher gave each host, which victim sets were
compared, and who was second.

Examples:
  ebbtide explain web-1
  ebbtide explain 0190f5fe-7c00-7a00-8000-000000000001
  ebbtide explain req-7ce5bcb8-0b4f-4b63-9d30-1c2b7d8b21f5    # on an OpenStack
  ebbtide explain web-1 --as-project research    # as that tenant may see it";

/// Options of `explain`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ExplainArgs {
    /// A decision id, the id or name of a server for the last decision about it, or a request id
    pub id: String,
    /// As this tenant may see it: other tenants' servers keep no name
    #[arg(long, value_name = "PROJECT")]
    pub as_project: Option<String>,
}

/// Asks and shows. A decision that there is no place is a good answer to this question: exit code
/// 0.
///
/// # Errors
/// What the region says.
pub async fn run(context: &mut Context, args: ExplainArgs) -> Result<(), CliError> {
    let mut region = context.region().await?;
    let id = if resolve::is_id(&args.id) || args.id.starts_with("req-") {
        args.id
    } else {
        resolve::server(&mut region, context, &args.id, true)
            .await?
            .id
    };
    let request = v1::ExplainRequest {
        id,
        as_project: args.as_project.unwrap_or_default(),
    };
    let answer = region.scheduler.explain(request).await.map_err(|status| {
        CliError::from(status).hint("`ebbtide decision list` shows the last decisions")
    })?;
    decision_view::print(context, &answer.into_inner().decision.unwrap_or_default())
}
