//! `ebbtide aggregate`: groups of hosts with metadata.

use clap::{Args, Subcommand};
use ebbtide_client::Region;
use ebbtide_proto::v1;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::json;
use ebbtide_shell::output::{Details, Listing, TableCell, text};
use ebbtide_shell::render::{optional, pairs};
use ebbtide_shell::resolve::key_value;

const HINT: &str = "`ebbtide aggregate list` shows what there is";
const CREATE: &str = "\
The property availability_zone makes the aggregate a zone; weight multipliers
(for example ram_weight_multiplier) count on its hosts only.

Examples:
  ebbtide aggregate create rack-1 --host host-A --host host-B --zone north
  ebbtide aggregate create ssd --host host-C --property disk=ssd";
const SET: &str = "\
Examples:
  ebbtide aggregate set rack-1 --host host-C
  ebbtide aggregate set rack-1 --no-host host-A --property ram_weight_multiplier=-1
  ebbtide aggregate set rack-1 --no-property ram_weight_multiplier";
const LIST: &str = "Examples:\n  ebbtide aggregate list";
const DELETE: &str = "Examples:\n  ebbtide aggregate delete rack-1";
/// Nova's metadata key for the zone of an aggregate.
const ZONE: &str = "availability_zone";

/// What can be done with aggregates.
#[derive(Debug, Subcommand)]
pub enum AggregateCommand {
    /// A new aggregate
    #[command(after_help = CREATE)]
    Create(PutArgs),
    /// Change hosts or properties of an aggregate
    #[command(after_help = SET)]
    Set {
        /// What to add or replace
        #[command(flatten)]
        put: PutArgs,
        /// Take a host out; may be repeated
        #[arg(long, value_name = "HOST")]
        no_host: Vec<String>,
        /// Remove a property; may be repeated
        #[arg(long, value_name = "KEY")]
        no_property: Vec<String>,
    },
    /// All aggregates
    #[command(after_help = LIST)]
    List,
    /// Delete aggregates
    #[command(after_help = DELETE)]
    Delete {
        /// Names or ids
        #[arg(required = true)]
        aggregates: Vec<String>,
    },
}

/// Options of `aggregate create` and `set`.
#[derive(Debug, Args)]
pub struct PutArgs {
    /// Its name
    pub name: String,
    /// A host to put in; may be repeated
    #[arg(long, value_name = "HOST")]
    pub host: Vec<String>,
    /// A property; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub property: Vec<(String, String)>,
    /// Availability zone, short for --property availability_zone=ZONE
    #[arg(long)]
    pub zone: Option<String>,
}

impl PutArgs {
    fn apply(self, mut aggregate: v1::Aggregate) -> v1::Aggregate {
        aggregate.name = self.name;
        for host in self.host {
            if !aggregate.hosts.contains(&host) {
                aggregate.hosts.push(host);
            }
        }
        aggregate.metadata.extend(self.property);
        aggregate
            .metadata
            .extend(self.zone.map(|zone| (ZONE.to_owned(), zone)));
        aggregate
    }
}

/// Does it.
///
/// # Errors
/// What the region says; [`CliError::Refused`] to create what is there already.
pub async fn run(context: &mut Context, command: AggregateCommand) -> Result<(), CliError> {
    let mut region = context.region().await?;
    match command {
        AggregateCommand::Create(args) => {
            // The call replaces an aggregate; "create" must not silently empty an existing one.
            if find(&mut region, &args.name).await?.is_some() {
                return Err(CliError::Refused {
                    problem: format!("aggregate {:?} is there already", args.name),
                    next: "`ebbtide aggregate set` changes it".to_owned(),
                });
            }
            put(context, &mut region, args.apply(v1::Aggregate::default())).await
        }
        AggregateCommand::Set {
            put: args,
            no_host,
            no_property,
        } => {
            let found = find(&mut region, &args.name).await?;
            let Some(mut aggregate) = found else {
                return Err(CliError::NotFound {
                    what: "aggregate",
                    name: args.name,
                    place: String::new(),
                    next: HINT,
                });
            };
            aggregate.hosts.retain(|host| !no_host.contains(host));
            aggregate
                .metadata
                .retain(|key, _| !no_property.contains(key));
            let args = PutArgs {
                name: aggregate.name.clone(),
                ..args
            };
            put(context, &mut region, args.apply(aggregate)).await
        }
        AggregateCommand::List => {
            let answer = region
                .admin
                .list_aggregates(v1::ListAggregatesRequest {})
                .await?;
            list(context, &answer.into_inner().aggregates)
        }
        AggregateCommand::Delete { aggregates } => {
            for id in aggregates {
                let request = v1::DeleteAggregateRequest { id: id.clone() };
                let answer = region.admin.delete_aggregate(request).await;
                answer.map_err(|status| CliError::from(status).hint(HINT))?;
                context.output.say(&format!("deleted aggregate {id}"));
            }
            Ok(())
        }
    }
}

async fn find(region: &mut Region, name: &str) -> Result<Option<v1::Aggregate>, CliError> {
    let answer = region
        .admin
        .list_aggregates(v1::ListAggregatesRequest {})
        .await?;
    let mut all = answer.into_inner().aggregates.into_iter();
    Ok(all.find(|aggregate| aggregate.name == name || aggregate.id == name))
}

async fn put(
    context: &mut Context,
    region: &mut Region,
    aggregate: v1::Aggregate,
) -> Result<(), CliError> {
    let request = v1::PutAggregateRequest {
        aggregate: Some(aggregate),
    };
    let answer = region.admin.put_aggregate(request).await?;
    let aggregate = answer.into_inner().aggregate.unwrap_or_default();
    context.output.details(Details {
        fields: vec![
            ("id", TableCell::new(&aggregate.id)),
            ("name", TableCell::new(&aggregate.name)),
            ("hosts", optional(&aggregate.hosts.join(", "))),
            ("metadata", optional(&pairs(&aggregate.metadata))),
        ],
        json: json::message(&aggregate),
    })
}

fn list(context: &mut Context, aggregates: &[v1::Aggregate]) -> Result<(), CliError> {
    let row = |aggregate: &v1::Aggregate| {
        vec![
            TableCell::new(&aggregate.id),
            TableCell::new(&aggregate.name),
            optional(aggregate.metadata.get(ZONE).map_or("", String::as_str)),
            optional(&aggregate.hosts.join(", ")),
            optional(&pairs(&aggregate.metadata)),
        ]
    };
    let listing = Listing {
        columns: vec![
            text("id", "ID").detail(2),
            text("name", "Name"),
            text(ZONE, "Zone"),
            text("hosts", "Hosts"),
            text("metadata", "Properties"),
        ],
        rows: aggregates.iter().map(row).collect(),
        json: json::list(aggregates),
        none: "no aggregates",
    };
    context.output.listing(listing)
}
