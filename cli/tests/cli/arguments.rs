//! What may be typed.

use crate::run::{CapturedOutput, alone, io};
use clap::{CommandFactory, Parser};
use ebbtide_cli::args::{Cli, Command};
use ebbtide_shell::program;
use std::ffi::OsString;

/// The three programs.
fn programs() -> [clap::Command; 3] {
    [
        Cli::command(),
        ebbtide_manage::args::Cli::command(),
        ebbtide_lab::args::Cli::command(),
    ]
}

#[test]
fn the_trees_of_commands_are_consistent() {
    for program in programs() {
        program.debug_assert();
    }
}

/// Every command, with its whole path.
fn leaves(command: &clap::Command, path: &str) -> Vec<(String, clap::Command)> {
    let subcommands: Vec<&clap::Command> = command
        .get_subcommands()
        .filter(|sub| sub.get_name() != "help")
        .collect();
    if subcommands.is_empty() {
        return vec![(path.to_owned(), command.clone())];
    }
    let deeper = |sub: &&clap::Command| leaves(sub, &format!("{path} {}", sub.get_name()));
    subcommands.iter().flat_map(deeper).collect()
}

/// Every command of every program.
fn every_leaf() -> Vec<(String, clap::Command)> {
    let programs = programs();
    let all = programs
        .iter()
        .flat_map(|program| leaves(program, program.get_name()));
    all.collect()
}

#[test]
fn every_command_has_help_with_examples_of_itself() {
    let all = every_leaf();
    assert!(all.len() >= 60, "{}", all.len());
    for (path, command) in all {
        assert!(
            command.get_about().is_some(),
            "{path} does not say what it does"
        );
        let examples = command
            .get_after_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        assert!(
            examples.contains("Examples:") && examples.contains(&path),
            "{path}: {examples:?}"
        );
        for line in examples.lines() {
            assert!(line.chars().count() <= 120, "{path}: too wide: {line}");
        }
    }
}

#[test]
fn every_example_can_be_typed() {
    let programs = programs();
    let mut all = every_leaf();
    all.extend(
        programs
            .iter()
            .map(|program| (program.get_name().to_owned(), program.clone())),
    );
    for (path, command) in all {
        let examples = command
            .get_after_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        for line in examples
            .lines()
            .filter(|line| line.starts_with("  ebbtide"))
        {
            let line = line.split(['|', '#', '>']).next().unwrap().trim();
            if line.contains("$(") {
                continue;
            }
            let words: Vec<String> = words(line);
            // Programs without a test here: ebbtide-scheduler.
            let Some(program) = programs.iter().find(|p| p.get_name() == words[0]) else {
                assert!(words[0] != path.split(' ').next().unwrap(), "{line}");
                continue;
            };
            if let Err(error) = program.clone().try_get_matches_from(&words) {
                panic!("{path}: {line}: {error}");
            }
        }
    }
}

/// Splits as a shell does, double quotes only.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[test]
fn global_options_may_stand_anywhere_and_f_is_o() {
    for line in [
        &["ebbtide", "-o", "json", "host", "list"][..],
        &["ebbtide", "host", "list", "-f", "json"][..],
        &["ebbtide", "host", "list", "--format", "json"][..],
        &["ebbtide", "host", "--output", "json", "list"][..],
    ] {
        let cli = Cli::try_parse_from(line).unwrap();
        assert_eq!(
            cli.globals.output,
            Some(ebbtide_shell::output::Format::Json),
            "{line:?}"
        );
        assert!(matches!(cli.command, Command::Host(_)));
    }
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_asked() {
    for line in [
        "ebbtide",
        "ebbtide host",
        "ebbtide host disable h",
        "ebbtide flavor create x --vcpus -1 --ram 5",
        "ebbtide flavor create x --ram 5",
        "ebbtide flavor create x --vcpus 1 --ram 5 --interruption stop",
        "ebbtide flavor create x --vcpus 1 --ram 5 --preemptible --interruption explode",
        "ebbtide flavor create x --vcpus 1 --ram 5 --property novalue",
        "ebbtide server create --flavor x --count 0 n",
        "ebbtide server create n",
        "ebbtide server delete",
        "ebbtide server group create --policy friendly n",
        "ebbtide budget set --max-victims 1 --window 5",
        "ebbtide budget set --of-project a --group b --max-victims 1 --window 5",
        "ebbtide-lab replay f --speed-up 0",
        "ebbtide-lab replay f --speed-up NaN",
        "ebbtide-lab replay f --in-flight 0",
        "ebbtide-lab replay f --hosts 5",
        "ebbtide host list -o yaml",
        "ebbtide completion tcsh",
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let programs = programs();
        let program = programs.iter().find(|p| p.get_name() == words[0]).unwrap();
        let error = program
            .clone()
            .try_get_matches_from(&words)
            .expect_err(line);
        assert_eq!(error.exit_code(), 2, "{line}");
    }
}

#[tokio::test]
async fn completion_scripts_know_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let ran = alone(&["completion", shell]).await;
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(
            ran.out.contains("evacuation") && ran.out.contains("what-if"),
            "{shell}"
        );
        let (out, err) = (CapturedOutput::default(), CapturedOutput::default());
        let words = ["ebbtide-lab", "completion", shell];
        let io = io(None, &out, &err);
        let code = program::run::<ebbtide_lab::args::Cli>(words.map(OsString::from), io).await;
        assert_eq!((code, out.text().contains("conform")), (0, true), "{shell}");
    }
}

#[tokio::test]
async fn papers_agree_in_every_format_without_a_region() {
    let table = alone(&["conform", "papers"]).await;
    assert_eq!(table.code, 0, "{}", table.err);
    assert_eq!(table.out.lines().last(), Some("4 of 4 tables agree"));
    insta::assert_snapshot!("conform_papers", table.all());
    let json = alone(&["conform", "papers", "-o", "json"]).await.json();
    assert_eq!((&json["agree"], &json["total"]), (&4.into(), &4.into()));
    assert_eq!(
        json["tables"][2]["victims"],
        serde_json::json!(["AP2", "AP3", "AP4"])
    );
    let value = alone(&["conform", "papers", "-o", "value"]).await;
    assert!(
        value.out.lines().all(|line| line.ends_with(" true")),
        "{}",
        value.out
    );
}

#[tokio::test]
async fn a_bare_call_shows_the_commands_by_groups() {
    let ran = alone(&[]).await;
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert!(ran.err.contains("\nServers:\n  server "), "{}", ran.err);
    assert!(ran.err.contains("\nExit codes:\n"), "{}", ran.err);
    let with_option = alone(&["--endpoint", "http://127.0.0.1:1"]).await;
    assert_eq!(with_option.err, ran.err);
    let help = alone(&["--help"]).await;
    assert_eq!((help.code, help.err.as_str()), (0, ""));
    assert!(help.out.contains("\nServers:\n  server "), "{}", help.out);
    for line in help.out.lines() {
        assert!(line.chars().count() <= 100, "too wide: {line}");
    }
    let noun = alone(&["--endpoint", "http://127.0.0.1:1", "host"]).await;
    assert_eq!(noun.code, 2);
    assert!(noun.err.contains("disable"), "{}", noun.err);
}

#[test]
fn every_command_is_in_one_group_of_the_help() {
    let groups = [
        ebbtide_cli::args::GROUPS,
        ebbtide_manage::args::GROUPS,
        ebbtide_lab::args::GROUPS,
    ];
    for (command, groups) in programs().into_iter().zip(groups) {
        let names = command.get_subcommands().map(clap::Command::get_name);
        let mut all: Vec<&str> = names.filter(|name| *name != "help").collect();
        let mut grouped: Vec<&str> = groups
            .iter()
            .flat_map(|(_, names)| names.iter().copied())
            .collect();
        all.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, all, "{}", command.get_name());
    }
}

#[tokio::test]
async fn what_has_moved_says_where_it_is() {
    for (words, program) in [
        (
            &["ebbtide", "bench", "preempt", "--hosts", "9"][..],
            "ebbtide-lab bench",
        ),
        (
            &["ebbtide", "-o", "json", "plugin", "check", "x.wasm"],
            "ebbtide-lab plugin check",
        ),
        (
            &["ebbtide", "--quiet", "token", "list"],
            "ebbtide-manage token",
        ),
        (&["ebbtide", "bag", "submit", "bag.toml"], "ebbtide batch"),
        (&["ebbtide", "burst", "report"], "ebbtide batch elastic"),
    ] {
        let (out, err) = (CapturedOutput::default(), CapturedOutput::default());
        let words = words.iter().map(OsString::from);
        let code = program::run::<Cli>(words, io(None, &out, &err)).await;
        assert_eq!((code, out.text().as_str()), (2, ""));
        assert!(err.text().starts_with("EB-CLI-017: "), "{}", err.text());
        assert!(
            err.text().contains(&format!("`{program}`")),
            "{}",
            err.text()
        );
    }
    // A value of an option is no command, and a command that never was is unknown.
    let ran = alone(&["sever", "list"]).await;
    assert!(ran.err.contains("server"), "{}", ran.err);
}
