//! `ebbtide flavor`: sizes of servers.

use clap::{Args, Subcommand};
use ebbtide_model::flavor as specs;
use ebbtide_proto::v1;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::json;
use ebbtide_shell::output::{Details, Listing, TableCell, number, text};
use ebbtide_shell::render::{Tone, optional, pairs, yes};
use ebbtide_shell::resolve::{FLAVOR_HINT, key_value};
use std::collections::HashMap;

const CREATE: &str = "\
A flavor is immutable, and so is what it says about its servers: preemptible or not is decided when
a server is created.

Examples:
  ebbtide flavor create m1.medium --vcpus 2 --ram 4000 --disk 40
  ebbtide flavor create spot.medium --vcpus 2 --ram 4000 --disk 40 --preemptible --grace 60
  ebbtide flavor create gpu --vcpus 8 --ram 32000 --property resources:VGPU=1 --property trait:CUSTOM_NVLINK=required";
const LIST: &str = "Examples:\n  ebbtide flavor list\n  ebbtide flavor list -o value -c name";
const SHOW: &str = "Examples:\n  ebbtide flavor show spot.medium";
const DELETE: &str = "\
Servers keep their copy of the flavor.

Examples:
  ebbtide flavor delete spot.medium m1.medium";

/// What can be done with flavors.
#[derive(Debug, Subcommand)]
pub enum FlavorCommand {
    /// A new flavor
    #[command(after_help = CREATE)]
    Create(CreateArgs),
    /// All flavors
    #[command(after_help = LIST)]
    List,
    /// One flavor
    #[command(after_help = SHOW)]
    Show {
        /// Name or id
        flavor: String,
    },
    /// Delete flavors
    #[command(after_help = DELETE)]
    Delete {
        /// Names or ids
        #[arg(required = true)]
        flavors: Vec<String>,
    },
}

/// Options of `flavor create`.
#[derive(Debug, Args)]
pub struct CreateArgs {
    /// Its name, unique in the region
    pub name: String,
    /// Virtual CPUs
    #[arg(long)]
    pub vcpus: u32,
    /// Memory, in MiB
    #[arg(long, value_name = "MIB")]
    pub ram: u32,
    /// Local disk, in GiB
    #[arg(long, default_value_t = 0, value_name = "GIB")]
    pub disk: u32,
    /// An extra spec; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub property: Vec<(String, String)>,
    /// Its servers may be evacuated when a normal one needs the room
    #[arg(long)]
    pub preemptible: bool,
    /// What happens to a victim
    #[arg(long, value_parser = ["terminate", "stop", "hibernate"], requires = "preemptible")]
    pub interruption: Option<String>,
    /// Seconds between notice and end, 0 to 900 [default: the region's]
    #[arg(long, value_name = "SECONDS", requires = "preemptible")]
    pub grace: Option<u64>,
    /// Seconds after launch without risk [default: the region's]
    #[arg(long, value_name = "SECONDS", requires = "preemptible")]
    pub protected: Option<u64>,
    /// Seconds after launch at which they end in any case, 60 to 31536000 [default: never]
    #[arg(long, value_name = "SECONDS", requires = "preemptible")]
    pub max_lifetime: Option<u64>,
    /// Price of an instance-hour, a decimal number
    #[arg(long, value_name = "PRICE")]
    pub price: Option<String>,
    /// Priority class 0 (goes first) to 3
    #[arg(long, value_name = "0-3", requires = "preemptible")]
    pub priority: Option<u8>,
}

impl CreateArgs {
    /// The extra specs: the properties, and what the shortcuts stand for.
    fn extra_specs(&self) -> Result<HashMap<String, String>, CliError> {
        let shortcuts = [
            (
                specs::PREEMPTIBLE,
                self.preemptible.then(|| "true".to_owned()),
            ),
            (specs::INTERRUPTION, self.interruption.clone()),
            (specs::GRACE_SECONDS, self.grace.map(|n| n.to_string())),
            (
                specs::PROTECTED_SECONDS,
                self.protected.map(|n| n.to_string()),
            ),
            (
                specs::MAX_LIFETIME_SECONDS,
                self.max_lifetime.map(|n| n.to_string()),
            ),
            (specs::PRICE_PER_HOUR, self.price.clone()),
            (specs::PRIORITY, self.priority.map(|n| n.to_string())),
        ];
        let shortcuts = shortcuts
            .into_iter()
            .filter_map(|(key, value)| value.map(|value| (key.to_owned(), value)));
        let mut all = HashMap::new();
        for (key, value) in self.property.iter().cloned().chain(shortcuts) {
            if let Some(before) = all.insert(key.clone(), value.clone())
                && before != value
            {
                return Err(CliError::Usage(format!(
                    "extra spec {key} is given twice: {before:?} and {value:?}"
                )));
            }
        }
        Ok(all)
    }
}

/// Does it.
///
/// # Errors
/// What the region says.
pub async fn run(context: &mut Context, command: FlavorCommand) -> Result<(), CliError> {
    let hint = |status: tonic::Status| CliError::from(status).hint(FLAVOR_HINT);
    match command {
        FlavorCommand::Create(args) => {
            let flavor = v1::Flavor {
                name: args.name.clone(),
                vcpus: args.vcpus,
                ram_mb: args.ram,
                disk_gb: args.disk,
                extra_specs: args.extra_specs()?,
                ..Default::default()
            };
            let request = v1::CreateFlavorRequest {
                flavor: Some(flavor),
            };
            let answer = context.region().await?.admin.create_flavor(request).await?;
            show(context, &answer.into_inner().flavor.unwrap_or_default())
        }
        FlavorCommand::List => {
            let request = v1::ListFlavorsRequest {};
            let answer = context.region().await?.admin.list_flavors(request).await?;
            list(context, &answer.into_inner().flavors)
        }
        FlavorCommand::Show { flavor } => {
            let request = v1::GetFlavorRequest { id: flavor };
            let answer = context
                .region()
                .await?
                .admin
                .get_flavor(request)
                .await
                .map_err(hint)?;
            show(context, &answer.into_inner().flavor.unwrap_or_default())
        }
        FlavorCommand::Delete { flavors } => {
            let mut region = context.region().await?;
            for id in flavors {
                let request = v1::DeleteFlavorRequest { id: id.clone() };
                region.admin.delete_flavor(request).await.map_err(hint)?;
                context.output.say(&format!("deleted flavor {id}"));
            }
            Ok(())
        }
    }
}

fn preemptible(flavor: &v1::Flavor) -> TableCell {
    let cell = yes(flavor.preemptible);
    if flavor.preemptible {
        cell.tone(Tone::Warn)
    } else {
        cell
    }
}

fn list(context: &mut Context, flavors: &[v1::Flavor]) -> Result<(), CliError> {
    let row = |flavor: &v1::Flavor| {
        vec![
            TableCell::new(&flavor.id),
            TableCell::new(&flavor.name),
            TableCell::new(flavor.vcpus),
            TableCell::new(flavor.ram_mb),
            TableCell::new(flavor.disk_gb),
            preemptible(flavor),
            optional(&pairs(&flavor.extra_specs)),
        ]
    };
    let listing = Listing {
        columns: vec![
            text("id", "ID").detail(3),
            text("name", "Name"),
            number("vcpus", "VCPUs"),
            number("ram_mb", "RAM (MiB)"),
            number("disk_gb", "Disk (GiB)"),
            text("preemptible", "Preemptible"),
            text("extra_specs", "Properties").detail(1),
        ],
        rows: flavors.iter().map(row).collect(),
        json: json::list(flavors),
        none: "no flavors; `ebbtide flavor create --help` shows how to make one",
    };
    context.output.listing(listing)
}

fn show(context: &mut Context, flavor: &v1::Flavor) -> Result<(), CliError> {
    context.output.details(Details {
        fields: vec![
            ("id", TableCell::new(&flavor.id)),
            ("name", TableCell::new(&flavor.name)),
            ("vcpus", TableCell::new(flavor.vcpus)),
            ("ram_mb", TableCell::new(flavor.ram_mb)),
            ("disk_gb", TableCell::new(flavor.disk_gb)),
            ("preemptible", preemptible(flavor)),
            ("extra_specs", optional(&pairs(&flavor.extra_specs))),
        ],
        json: json::message(flavor),
    })
}
