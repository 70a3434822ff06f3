//! `ebbtide-manage policy`: which roles of Keystone may do what over the API of an OpenStack. Works
//! on the policy file alone.

use crate::error::ManageError;
use clap::{Args, Subcommand};
use ebbtide_access::policy_checks;
use ebbtide_keystone::{AccessPolicy, KeystoneError, ROLE_RULES};
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::json::Json;
use ebbtide_shell::output::{Listing, TableCell, text};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

const SAMPLE: &str = "\
Prints every rule with its default, commented out. Take the comment sign off a line and change its
check; the rest stays as it is. nova.conf names the file: [ebbtide] api_policy_file.

Checks are those of oslo.policy: role:NAME, rule:NAME, user_id:ID, project_id:ID, system_scope:all,
@ (every token), ! (none), joined by and, or, not and parentheses.

Examples:
  ebbtide-manage policy sample > /etc/ebbtide/policy.yaml";
const SHOW: &str = "\
With a file: judges it as the scheduler does, and shows what is in force with it.

Examples:
  ebbtide-manage policy show
  ebbtide-manage policy show --file /etc/ebbtide/policy.yaml";

/// What can be done with a policy.
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// Print a policy file with all rules to start from
    #[command(after_help = SAMPLE)]
    Sample,
    /// The rules in force
    #[command(after_help = SHOW)]
    Show(ShowArgs),
}

/// Options of `policy show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The policy file [default: none]
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
}

/// Runs a command of `policy`.
///
/// # Errors
/// [`ManageError::Policy`] for a file that the scheduler would refuse.
pub fn run(context: &mut Context, command: &PolicyCommand) -> Result<(), CliError> {
    match command {
        PolicyCommand::Sample => context.output.raw(sample().trim_end()),
        PolicyCommand::Show(args) => show(context, args.file.as_deref()),
    }
}

/// A policy file in which every rule is a comment.
fn sample() -> String {
    let mut text = String::new();
    for rule in ROLE_RULES {
        let _ = writeln!(
            text,
            "# {}\n#\"{}\": \"{}\"\n",
            rule.meaning, rule.name, rule.check
        );
    }
    for (name, check) in policy_checks() {
        let _ = writeln!(text, "#\"{name}\": \"{check}\"");
    }
    text
}

fn show(context: &mut Context, file: Option<&Path>) -> Result<(), CliError> {
    let policy = read(file)?;
    let defaults = ROLE_RULES.map(|rule| (rule.name.to_owned(), rule.check));
    let mut rules: Vec<_> = defaults.into_iter().chain(policy_checks()).collect();
    let own = policy.written().iter();
    let own = own.filter(|(name, _)| rules.iter().all(|(known, _)| known != *name));
    let own: Vec<_> = own
        .map(|(name, check)| (name.clone(), check.as_str()))
        .collect();
    rules.extend(own);
    let shown = rules.iter().map(|(name, check)| {
        let written = policy.written().get(name);
        let from = if written.is_some() { "file" } else { "default" };
        (name.as_str(), written.map_or(*check, String::as_str), from)
    });
    let shown: Vec<_> = shown.collect();
    let row = |(name, check, from): &(&str, &str, &str)| {
        [*name, *check, *from].map(TableCell::new).to_vec()
    };
    let json = |(name, check, from): &(&str, &str, &str)| {
        Json::object([
            ("rule", Json::from(*name)),
            ("check", Json::from(*check)),
            ("from", Json::from(*from)),
        ])
    };
    context.output.listing(Listing {
        columns: vec![
            text("rule", "RULE"),
            text("check", "CHECK"),
            text("from", "FROM"),
        ],
        rows: shown.iter().map(row).collect(),
        json: Json::List(shown.iter().map(json).collect()),
        none: "",
    })
}

fn read(file: Option<&Path>) -> Result<AccessPolicy, ManageError> {
    let wrong = |source| ManageError::Policy {
        path: file.unwrap_or_else(|| Path::new("-")).to_owned(),
        source,
    };
    let text = file.map(std::fs::read_to_string).transpose();
    let text = text.map_err(|error| wrong(KeystoneError::Policy(error.to_string())))?;
    AccessPolicy::new(policy_checks(), text.as_deref()).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_changes_nothing_and_its_rules_can_be_used() {
        let text = sample();
        let untouched = AccessPolicy::new(policy_checks(), Some(&text)).unwrap();
        assert!(untouched.written().is_empty(), "{untouched:?}");
        let taken: Vec<_> = text.lines().map(|line| line.strip_prefix("#\"")).collect();
        let taken = taken
            .into_iter()
            .flatten()
            .map(|line| format!("\"{line}\n"));
        let all = AccessPolicy::new(policy_checks(), Some(&taken.collect::<String>())).unwrap();
        assert_eq!(
            all.written().len(),
            ROLE_RULES.len() + policy_checks().count()
        );
    }
}
