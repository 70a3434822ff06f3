//! `ebbtide server create`: asks for servers and, with `--wait`, follows them until they run.

use crate::commands::{server_view, wait};
use crate::decision_view;
use clap::Args;
use ebbtide_client::Region;
use ebbtide_model::Money;
use ebbtide_proto::v1;
use ebbtide_shell::Context;
use ebbtide_shell::backoff::PollBackoff;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::json::{self, Json};
use ebbtide_shell::output::Format;
use std::time::Duration;

/// Examples for `--help`.
pub const EXAMPLES: &str = "\
All or nothing: several servers get room together or not at all. For several, -1, -2, … is appended
to the name. If there is no valid host the servers are in status error, and the exit code is 1.

With --wait the command follows the servers until they are active: victims have their grace period
before the room is free. A region that goes away meanwhile is asked again until --wait-timeout.

Examples:
  ebbtide server create --flavor m1.medium web-1
  ebbtide server create --flavor m1.large --count 3 --group db --wait db
  ebbtide server create --flavor spot.small --availability-zone north worker
  ebbtide server create --flavor spot.small --max-price 0.012 worker
  id=$(ebbtide server create --flavor m1.small -o value -c id probe)";

/// What is asked of the scheduler: options of `server create` and `what-if`.
#[derive(Debug, Args)]
pub struct RequestArgs {
    /// Flavor, by name or id
    #[arg(long)]
    pub flavor: String,
    /// How many, all or nothing
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub count: u32,
    /// Only hosts of this zone
    #[arg(long, value_name = "ZONE")]
    pub availability_zone: Option<String>,
    /// Server group that they join, by name or id
    #[arg(long)]
    pub group: Option<String>,
    /// Only this host; may be repeated
    #[arg(long, value_name = "HOST")]
    pub host: Vec<String>,
    /// Not this host; may be repeated
    #[arg(long, value_name = "HOST")]
    pub ignore_host: Vec<String>,
    /// How many other hosts to name for each
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub alternates: u32,
}

impl RequestArgs {
    /// As the API wants it.
    #[must_use]
    pub fn request(self, project: &str) -> v1::PlacementRequest {
        v1::PlacementRequest {
            count: self.count,
            project_id: project.to_owned(),
            flavor: self.flavor,
            availability_zone: self.availability_zone.unwrap_or_default(),
            group: self.group.unwrap_or_default(),
            ignore_hosts: self.ignore_host,
            force_hosts: self.host,
            alternates: self.alternates,
            server_ids: Vec::new(),
        }
    }
}

/// Options of `server create`.
#[derive(Debug, Args)]
pub struct CreateArgs {
    /// What
    #[command(flatten)]
    pub request: RequestArgs,
    /// The most that you pay for an hour of a preemptible flavor; above it they leave with notice
    /// [default: whatever the market takes]
    #[arg(long, value_name = "PRICE")]
    pub max_price: Option<Money>,
    /// Follow them until they are active or have failed
    #[arg(long)]
    pub wait: bool,
    /// How long to follow them, in seconds
    #[arg(
        long,
        default_value_t = 1800,
        value_name = "SECONDS",
        requires = "wait"
    )]
    pub wait_timeout: u64,
    /// Their name
    pub name: String,
}

/// Asks, follows, shows.
///
/// # Errors
/// What the region says; [`CliError::NoValidHost`]; with `--wait`, [`CliError::NotActive`] and
/// [`CliError::WaitTimeout`].
pub async fn run(context: &mut Context, args: CreateArgs) -> Result<(), CliError> {
    let mut region = context.region().await?;
    // The stream is opened first, so that nothing is missed between the answer and the first event.
    let events = if args.wait {
        ebbtide_client::Events::open(&region, &context.project).await
    } else {
        None
    };
    let mut request = args.request.request(&context.project);
    // Our own ids make the call safe to repeat, by us and by anything between us and the region.
    request.server_ids = (0..request.count)
        .map(|_| ebbtide_runtime::ids::new().to_string())
        .collect();
    let create = v1::CreateServersRequest {
        name: args.name,
        request: Some(request),
        max_price: args.max_price.map(|p| p.to_string()).unwrap_or_default(),
    };
    let limit = Duration::from_secs(args.wait_timeout);
    let asking = ask(context, &mut region, create, args.wait);
    let answer = match tokio::time::timeout(limit, asking).await {
        Ok(answer) => answer?,
        Err(_) => {
            return Err(CliError::Refused {
                problem: format!("the region did not answer within {} s", limit.as_secs()),
                next: "`ebbtide server list` shows whether it has taken the request up".to_owned(),
            });
        }
    };
    let decision = answer.decision.unwrap_or_default();
    let mut servers = answer.servers;
    let warnings = answer.warnings;
    for warning in &warnings {
        context.output.say(&format!("note: {warning}"));
    }
    if let Some(nowhere) = &decision.no_valid_host {
        print(context, &servers, &decision, &warnings)?;
        return Err(CliError::NoValidHost {
            reason: nowhere.reason.clone(),
            decision_id: decision.id,
        });
    }
    context.output.say(&decision_view::headline(&decision));
    let mut failed = None;
    if args.wait {
        failed = wait::until_active(context, &mut region, &mut servers, events, limit)
            .await
            .err();
    }
    print(context, &servers, &decision, &warnings)?;
    failed.map_or(Ok(()), Err)
}

/// Asks for the servers. Who waits asks again when the region goes away meanwhile: the ids are
/// ours, so it is one request.
async fn ask(
    context: &mut Context,
    region: &mut Region,
    create: v1::CreateServersRequest,
    wait: bool,
) -> Result<v1::CreateServersResponse, CliError> {
    let mut patience = PollBackoff::default();
    loop {
        let answer = region.servers.create_servers(create.clone()).await;
        match answer.map_err(CliError::from) {
            Ok(answer) => {
                patience.answered(context, "");
                return Ok(answer.into_inner());
            }
            Err(error) if wait && error.is_passing() => patience.pause(context, &error).await,
            Err(error) => return Err(error),
        }
    }
}

fn print(
    context: &mut Context,
    servers: &[v1::Server],
    decision: &v1::Decision,
    warnings: &[String],
) -> Result<(), CliError> {
    if context.output.format() == Format::Json {
        let json = Json::object([("servers", json::list(servers))])
            .with("decision", json::message(decision))
            .with("warnings", json::texts(warnings));
        return context.output.json(&json);
    }
    match servers {
        [one] => server_view::show(context, one),
        several => server_view::list(context, several, false),
    }
}
