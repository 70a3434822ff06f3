//! `ebbtide-manage token`: who may talk to a region. Works on the token file alone; no region is
//! needed, and the scheduler reads the file again by itself.

use crate::error::ManageError;
use clap::{Args, Subcommand, ValueEnum};
use ebbtide_access::{AccessError, Role, TokenFile, TokenRow};
use ebbtide_model::{Seconds, Timestamp};
use ebbtide_runtime::clock;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::json::Json;
use ebbtide_shell::output::{Details, Listing, TableCell, text};
use ebbtide_shell::render::optional;
use std::path::PathBuf;

const CREATE: &str = "\
The token is printed once and cannot be shown again: the file holds its hash only. Its owner
puts it into EBBTIDE_TOKEN, or into a file (--token-file) that no other account can read.

Examples:
  ebbtide-manage token create --role operator --name ops --file /etc/ebbtide/tokens.toml
  ebbtide-manage token create --role tenant --of-project science --name ci --days 90 --file tokens.toml";
const LIST: &str = "Examples:\n  ebbtide-manage token list --file /etc/ebbtide/tokens.toml";
const REVOKE: &str = "\
The scheduler refuses the token within two seconds; no restart is needed.

Examples:
  ebbtide-manage token revoke 3f9c2a71d0e4 --file /etc/ebbtide/tokens.toml";

/// What can be done with tokens.
#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Make a token; it is shown only now
    #[command(after_help = CREATE)]
    Create {
        /// What its holder may do
        #[arg(long, value_enum)]
        role: RoleName,
        /// With role tenant: whose things; may be repeated
        #[arg(long, value_name = "PROJECT")]
        of_project: Vec<String>,
        /// What it is for, in words
        #[arg(long, default_value = "", value_name = "WORDS")]
        name: String,
        /// How long it is valid [default: for ever]
        #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=3650))]
        days: Option<u32>,
        /// Where
        #[command(flatten)]
        file: FileArg,
    },
    /// All tokens, without their secrets
    #[command(after_help = LIST)]
    List {
        /// Where
        #[command(flatten)]
        file: FileArg,
    },
    /// Take a token back
    #[command(after_help = REVOKE)]
    Revoke {
        /// Its id, as `ebbtide-manage token list` shows it
        id: String,
        /// Where
        #[command(flatten)]
        file: FileArg,
    },
}

/// The token file.
#[derive(Debug, Args)]
pub struct FileArg {
    /// The token file; the scheduler's auth.tokens
    #[arg(
        long,
        env = "EBBTIDE_TOKENS",
        default_value = "/etc/ebbtide/tokens.toml",
        value_name = "FILE"
    )]
    pub file: PathBuf,
}

/// A role as it is typed.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum RoleName {
    /// May do everything
    Operator,
    /// Sees everything, changes nothing
    Reader,
    /// Sees and changes what belongs to its projects
    Tenant,
    /// Sees what belongs to its projects, changes nothing
    TenantReader,
}

impl From<RoleName> for Role {
    fn from(name: RoleName) -> Self {
        match name {
            RoleName::Operator => Self::Operator,
            RoleName::Reader => Self::Reader,
            RoleName::Tenant => Self::Tenant,
            RoleName::TenantReader => Self::TenantReader,
        }
    }
}

/// Does it.
///
/// # Errors
/// What is wrong with the file.
pub fn run(context: &mut Context, command: TokenCommand) -> Result<(), CliError> {
    match command {
        TokenCommand::Create {
            role,
            of_project,
            name,
            days,
            file,
        } => {
            let path = file.file;
            let now = clock::now();
            let expires_at = days.map(|days| now.plus(Seconds(days * 86_400)));
            let (token, row) = TokenFile::change(&path, |tokens| {
                let token = tokens.create(&name, role.into(), of_project, now, expires_at)?;
                let row = tokens.rows().find(|row| row.id == token.id()).cloned();
                Ok::<_, ManageError>((token, row))
            })?;
            let mut fields = row.as_ref().map(fields).unwrap_or_default();
            let secret = token.reveal();
            fields.push(("token", TableCell::new(&secret)));
            let json = row.as_ref().map_or(Json::Null, json).with("token", secret);
            context.output.details(Details { fields, json })?;
            context
                .output
                .say("the token is not kept anywhere; this is the only time that it is shown");
            Ok(())
        }
        TokenCommand::List { file } => {
            let tokens = TokenFile::read(&file.file).map_err(ManageError::Access)?;
            let columns = vec![
                text("id", "ID"),
                text("name", "Name"),
                text("role", "Role"),
                text("projects", "Projects"),
                text("created_at", "Created").detail(1),
                text("expires_at", "Expires"),
            ];
            let rows = |row: &TokenRow| fields(row).into_iter().map(|(_, cell)| cell).collect();
            context.output.listing(Listing {
                columns,
                rows: tokens.rows().map(rows).collect(),
                json: Json::List(tokens.rows().map(json).collect()),
                none: "no tokens: no client can authenticate with one",
            })
        }
        TokenCommand::Revoke { id, file } => {
            // An error keeps the file as it was.
            let revoked = TokenFile::change(&file.file, |tokens| match tokens.revoke(&id) {
                true => Ok(()),
                false => Err(RevokeError::NoToken),
            });
            match revoked {
                Ok(()) => {}
                Err(RevokeError::Access(error)) => return Err(ManageError::Access(error).into()),
                Err(RevokeError::NoToken) => {
                    return Err(CliError::NotFound {
                        what: "token",
                        name: ebbtide_model::names::shorten(&id),
                        place: format!(" in {}", file.file.display()),
                        next: "`ebbtide-manage token list` shows the ids",
                    });
                }
            }
            context.output.say(&format!("revoked token {id}"));
            Ok(())
        }
    }
}

/// Why a token is not revoked.
enum RevokeError {
    Access(AccessError),
    NoToken,
}

impl From<AccessError> for RevokeError {
    fn from(error: AccessError) -> Self {
        Self::Access(error)
    }
}

fn fields(row: &TokenRow) -> Vec<(&'static str, TableCell)> {
    let time = |at: Option<Timestamp>| optional(&at.map(|at| at.to_string()).unwrap_or_default());
    vec![
        ("id", TableCell::new(&row.id)),
        ("name", optional(&row.name)),
        ("role", TableCell::new(row.role)),
        ("projects", optional(&row.projects.join(", "))),
        ("created_at", time(row.created_at)),
        ("expires_at", time(row.expires_at)),
    ]
}

/// All fields except the hash, which is of no use to the reader.
fn json(row: &TokenRow) -> Json {
    let time = |at: Option<Timestamp>| at.map_or(Json::Null, |at| Json::from(at.to_string()));
    Json::object([
        ("id", Json::from(row.id.as_str())),
        ("name", Json::from(row.name.as_str())),
        ("role", Json::from(row.role.to_string())),
        (
            "projects",
            Json::List(
                row.projects
                    .iter()
                    .map(|p| Json::from(p.as_str()))
                    .collect(),
            ),
        ),
        ("created_at", time(row.created_at)),
        ("expires_at", time(row.expires_at)),
    ])
}
