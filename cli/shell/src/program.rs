//! One program: from its command line to its exit code.

use crate::Context;
use crate::cloud::{self, CloudRequest};
use crate::config;
use crate::errors::{self, CliError};
use crate::globals::Globals;
use crate::output::{ColorChoice, Format, Io, Output};
use clap::Parser;
use clap::parser::ValueSource;
use ebbtide_client::{Bearer, Credentials, endpoint};
use ebbtide_os_cloud::Environment;
use ebbtide_runtime::clock;
use std::ffi::OsString;
use std::future::Future;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// The commands of a program by what they are for, in the order of the help: title and names.
pub type Groups = &'static [(&'static str, &'static [&'static str])];

/// One of the programs.
pub trait Program: Parser {
    /// Commands that have moved: their words, and the command that does it now.
    const MOVED: &'static [(&'static [&'static str], &'static str)];

    /// The options of every command.
    fn globals(&mut self) -> Globals;

    /// True if the command talks to a region.
    fn uses_region(&self) -> bool;

    /// Runs the command.
    ///
    /// # Errors
    /// Whatever the command meets.
    fn run(self, context: &mut Context) -> impl Future<Output = Result<(), CliError>>;
}

/// The help of a program: its commands by groups.
#[must_use]
pub fn help_template(root: &clap::Command, groups: Groups) -> String {
    let mut text = String::from("{about-with-newline}\n{usage-heading} {usage}\n");
    for (title, names) in groups {
        text.push_str(&format!("\n{title}:\n"));
        for name in *names {
            let about = root
                .find_subcommand(name)
                .and_then(clap::Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let about = crate::layout::wrapped(&about, 64).join("\n              ");
            text.push_str(&format!("  {name:<11} {about}\n"));
        }
    }
    text.push_str("\nGlobal options:\n{options}{after-help}");
    text
}

/// What stands below the help of a program: exit codes, the order of settings, and its own text.
#[must_use]
pub fn after_help(own: &str) -> String {
    format!(
        "\
Exit codes:
  0  all went well
  1  refused or failed, \"no valid host\" included
  2  the command line or the configuration file is wrong
  3  the region cannot be reached
  4  what was asked for does not exist

Data goes to standard output, everything else to standard error.
Options come before environment variables, those before ~/.config/ebbtide/config.toml
(keys: endpoint, os_cloud, project, output, color, ca, certificate, key, token_file), that before
the defaults. On an OpenStack: --os-cloud, or OS_CLOUD or other OS_* variables unless endpoint or
token are given; endpoint and token come from Keystone then.

{own}"
    )
}

/// Runs a program with the process's arguments, streams and environment.
#[must_use]
pub fn main<P: Program>() -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2) // The command waits for the region; more threads would only take memory.
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "EB-CLI-013: cannot start: {error}");
            return ExitCode::from(errors::REFUSED);
        }
    };
    let code = runtime.block_on(run::<P>(std::env::args_os(), process_io()));
    // A task that hangs on the network must not keep the command from ending.
    runtime.shutdown_background();
    ExitCode::from(code)
}

/// The process's own streams and environment.
fn process_io() -> Io {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let home = set("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".config")));
    let out_is_terminal = std::io::stdout().is_terminal();
    Io {
        environment: Environment::of_process(home.as_deref()),
        out: Box::new(std::io::stdout()),
        err: Box::new(std::io::stderr()),
        out_is_terminal,
        err_is_terminal: std::io::stderr().is_terminal(),
        width: comfy_table::Table::new()
            .width()
            .filter(|_| out_is_terminal),
        no_color: set("NO_COLOR").is_some() || set("TERM").is_some_and(|term| term == "dumb"),
        now: clock::utc,
        config_home: home,
        see_table: None,
        in_checkout: std::path::Path::new("devstack/up").is_file(),
        token: std::env::var("EBBTIDE_TOKEN")
            .ok()
            .filter(|token| !token.is_empty()),
    }
}

/// Runs one command line; the first argument is the program's name. Answers with the exit code.
pub async fn run<P: Program>(args: impl IntoIterator<Item = OsString>, mut io: Io) -> u8 {
    let args: Vec<OsString> = args.into_iter().collect();
    let parsed = P::command()
        .try_get_matches_from(&args)
        .and_then(|matches| {
            let source = matches.value_source("endpoint");
            let program = P::from_arg_matches(&matches);
            let program = program.map_err(|error| error.format(&mut P::command()))?;
            Ok((program, source))
        });
    let (mut program, source) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return usage::<P>(&error, &args, &mut io),
    };
    let mut globals = program.globals();
    globals.endpoint_is_variable = source == Some(ValueSource::EnvVariable);
    let uses_region = program.uses_region();
    let (mut context, start) = context(globals, io);
    let result = match start {
        Err(error) => Err(error),
        Ok(()) if uses_region => match Box::pin(cloud::enter(&mut context)).await {
            Err(error) => Err(error),
            Ok(()) => Box::pin(program.run(&mut context)).await,
        },
        Ok(()) => Box::pin(program.run(&mut context)).await,
    };
    match result {
        Ok(()) => errors::OK,
        Err(error) if error.is_broken_pipe() => errors::OK,
        // The exit code of the command that `run` started, not an error of this program.
        Err(CliError::Ended { code }) => code,
        Err(error) => {
            context.output.fail(&error, &context.endpoint);
            error.exit_code()
        }
    }
}

/// What the command works with, and what is wrong with it: even a broken configuration file is
/// reported in the format asked for.
fn context(globals: Globals, io: Io) -> (Context, Result<(), CliError>) {
    let config = config::load(globals.config.as_deref(), io.config_home.as_deref());
    let settings = config.as_ref().cloned().unwrap_or_default();
    let format = globals.output.or(settings.output).unwrap_or(Format::Table);
    let color = globals
        .color
        .or(settings.color)
        .unwrap_or(ColorChoice::Auto);
    let cloud_request = cloud_request(&globals, &settings, &io);
    let both = settings.endpoint.is_some() && settings.os_cloud.is_some();
    let named = globals.endpoint.or(settings.endpoint);
    let endpoint = endpoint::parse(named.as_deref().unwrap_or(endpoint::DEFAULT_ENDPOINT));
    let token_file = globals.token_file.or(settings.token_file);
    let token = match (&io.token, &token_file) {
        (Some(token), _) => Bearer::new(token),
        (None, Some(path)) => Bearer::from_file(path),
        (None, None) => Ok(Bearer::default()),
    };
    let context = Context {
        output: Output::new(io, format, color, globals.quiet, globals.column),
        endpoint: endpoint.as_ref().cloned().unwrap_or_default(),
        cloud: "standalone region".to_owned(),
        cloud_request,
        has_own_project: globals.project.is_some() || settings.project.is_some(),
        project: globals
            .project
            .or(settings.project)
            .unwrap_or_else(|| config::DEFAULT_PROJECT.to_owned()),
        credentials: Credentials {
            ca: globals.ca.or(settings.ca),
            certificate: globals.certificate.or(settings.certificate),
            key: globals.key.or(settings.key),
            token: token.as_ref().cloned().unwrap_or_default(),
            insecure: globals.insecure,
            unverified: false,
        },
    };
    let start = match (config, endpoint, token) {
        (Err(error), _, _) => Err(error),
        _ if both => Err(CliError::Usage(
            "the configuration file has both endpoint and os_cloud; keep one".to_owned(),
        )),
        (_, Err(error), _) | (_, _, Err(error)) => Err(error.into()),
        _ => Ok(()),
    };
    (context, start)
}

/// The OpenStack that is meant, if one is. What names a region of Ebbtide's own comes before
/// variables of OpenStack, as it is more particular; `--os-cloud` comes before everything.
fn cloud_request(globals: &Globals, settings: &config::Config, io: &Io) -> Option<CloudRequest> {
    let is_option = globals.os_cloud.is_some();
    let has_region =
        globals.endpoint.is_some() || globals.token_file.is_some() || io.token.is_some();
    let name = match (&globals.os_cloud, &settings.os_cloud) {
        (Some(name), _) => Some(name.clone()),
        (None, _) if has_region => return None,
        (None, _) if cloud::is_named(&io.environment) => None,
        (None, Some(name)) => Some(name.clone()),
        (None, None) => return None,
    };
    let endpoint = globals.endpoint.as_ref();
    let endpoint = endpoint.filter(|_| is_option && !globals.endpoint_is_variable);
    Some(CloudRequest {
        name,
        region: globals.os_region_name.clone(),
        endpoint: endpoint.cloned(),
        environment: io.environment.clone(),
    })
}

/// A command that has moved, and the command that does it now: the last of its words is the one
/// that is not known here.
fn moved<P: Program>(error: &clap::Error, args: &[OsString]) -> Option<(String, &'static str)> {
    use clap::error::{ContextKind, ContextValue};
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let words: Vec<&str> = args
        .iter()
        .skip(1)
        .filter_map(|word| word.to_str())
        .collect();
    let is_typed = |command: &[&str]| words.windows(command.len()).any(|part| part == command);
    let (command, now) = P::MOVED
        .iter()
        .find(|(command, _)| command.last() == Some(&unknown.as_str()) && is_typed(command))?;
    Some((command.join(" "), now))
}

/// A value such as `-5h` that clap has taken for an option, and would have written behind `--`.
fn below_zero<'a>(error: &clap::Error, args: &'a [OsString]) -> Option<&'a str> {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let unknown = error.kind() == ErrorKind::UnknownArgument;
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let digits = option.strip_prefix('-')?;
    let number = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let mut texts = args.iter().filter_map(|arg| arg.to_str());
    texts.find(|text| unknown && number && text.starts_with(option.as_str()))
}

/// The command that these arguments name, as far as they go.
fn named(root: &mut clap::Command, args: &[OsString]) -> clap::Command {
    root.build();
    let mut command = &*root;
    for word in args.iter().skip(1).filter_map(|word| word.to_str()) {
        command = command.find_subcommand(word).unwrap_or(command);
    }
    command.clone()
}

/// What clap has to say: help and version are data, mistakes are talk.
fn usage<P: Program>(error: &clap::Error, args: &[OsString], io: &mut Io) -> u8 {
    if let Some((command, now)) = moved::<P>(error, args) {
        let name = P::command().get_name().to_owned();
        let _ = writeln!(
            io.err,
            "EB-CLI-017: {name} has no command `{command}` any more: it is `{now}`\n  next: `{now} --help`"
        );
        return errors::USAGE;
    }
    if let Some(value) = below_zero(error, args) {
        let words = format!(
            "error: {value:?} is below zero, which is not taken here\n\nFor more information, try '--help'."
        );
        let _ = writeln!(io.err, "{words}");
        return errors::USAGE;
    }
    if error.kind() == clap::error::ErrorKind::MissingSubcommand {
        // One line with the names of all commands does not help its reader.
        let help = named(&mut P::command(), args).render_help();
        let _ = write!(io.err, "{help}");
        return errors::USAGE;
    }
    let rendered = error.render();
    let (stream, colored) = if error.use_stderr() {
        (&mut io.err, io.err_is_terminal && !io.no_color)
    } else {
        (&mut io.out, io.out_is_terminal && !io.no_color)
    };
    let _ = if colored {
        write!(stream, "{}", rendered.ansi())
    } else {
        write!(stream, "{rendered}")
    };
    let _ = stream.flush();
    if error.use_stderr() {
        errors::USAGE
    } else {
        errors::OK
    }
}
