//! The options that every command of every program takes.

use crate::Context;
use crate::io::{ColorChoice, Format};
use clap::Args;
use std::path::PathBuf;

/// Options of every command.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Global options")]
pub struct Globals {
    /// Address of the region [default: http://127.0.0.1:7470]
    #[arg(long, env = "EBBTIDE_ENDPOINT", global = true, value_name = "URL")]
    pub endpoint: Option<String>,
    /// OpenStack of clouds.yaml, or `envvars` for OS_* variables [env: OS_CLOUD]
    #[arg(long, global = true, value_name = "NAME")]
    pub os_cloud: Option<String>,
    /// Its region [env: OS_REGION_NAME] [default: the first]
    #[arg(long, global = true, value_name = "NAME")]
    pub os_region_name: Option<String>,
    /// True if the endpoint is not from the command line.
    #[arg(skip)]
    pub endpoint_is_variable: bool,
    /// On whose behalf [default: default; on an OpenStack, the project of the credentials]
    #[arg(long, env = "EBBTIDE_PROJECT", global = true, value_name = "PROJECT")]
    pub project: Option<String>,
    /// Roots of the region's certificate (PEM), for https:// [default: the system's]
    #[arg(long, env = "EBBTIDE_CA", global = true, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Your certificate (PEM), where the region asks for one
    #[arg(long, env = "EBBTIDE_CERTIFICATE", global = true, value_name = "FILE")]
    pub certificate: Option<PathBuf>,
    /// Its private key (PEM)
    #[arg(long, env = "EBBTIDE_KEY", global = true, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// A file with your token; or put the token itself into EBBTIDE_TOKEN
    #[arg(long, env = "EBBTIDE_TOKEN_FILE", global = true, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Send the token in plain text to another machine
    #[arg(long, global = true)]
    pub insecure: bool,
    /// How to print answers [default: table]
    #[arg(
        short,
        short_alias = 'f',
        long,
        alias = "format",
        global = true,
        value_enum
    )]
    pub output: Option<Format>,
    /// Print only this column; may be repeated
    #[arg(short, long, global = true, value_name = "COLUMN")]
    pub column: Vec<String>,
    /// When to use colours [default: auto: on a terminal, unless NO_COLOR is set]
    #[arg(
        long,
        global = true,
        value_enum,
        hide_possible_values = true,
        value_name = "auto|always|never"
    )]
    pub color: Option<ColorChoice>,
    /// Print data and errors only
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Configuration file [default: ~/.config/ebbtide/config.toml]
    #[arg(long, env = "EBBTIDE_CONFIG", global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// Whose things to show.
#[derive(Debug, Clone, Args)]
pub struct ProjectScope {
    /// Those of all projects (for operators)
    #[arg(long)]
    pub all_projects: bool,
}

impl ProjectScope {
    /// The project to ask for; empty for all.
    #[must_use]
    pub fn project(&self, context: &Context) -> String {
        if self.all_projects {
            String::new()
        } else {
            context.project.clone()
        }
    }
}
