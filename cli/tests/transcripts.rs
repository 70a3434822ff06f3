//! The documents' transcripts are what the program says: every fenced `console` block of README.md
//! and docs/ whose commands need no region is run here and compared.
//!
//! In a transcript `…` on a line of its own stands for any lines, and within a line for any text:
//! times of the day, random identifiers, measured times. What cannot be run stands in [`NOT_RUN`]
//! with its reason, and a block that is in neither is an error.

#![allow(clippy::unwrap_used, clippy::expect_used)] // A test that cannot go on fails.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const REGION: &str = "needs a region";
const SYSTEM: &str = "installs or starts something on the machine";
const MEASURED: &str = "measures, so every run says something else";
const HELD: &str = "cli/tests/cli/elastic.rs runs and compares it";
const MINUTES: &str = "takes minutes in a build for tests";

/// The public data of lifetimes, as the documents name them.
const LIFETIMES: &str = "preemptions.csv";

/// The document, the beginning of the block's first command, and why it is not run.
const NOT_RUN: &[(&str, &str, &str)] = &[
    ("README.md", "./devstack/up", SYSTEM),
    ("README.md", "source .devstack/env", REGION),
    ("README.md", "./devstack/openstack up", SYSTEM),
    ("README.md", "ebbtide-lab bench preempt", MEASURED),
    (
        "docs/operate/sizing.md",
        "ebbtide-lab bench sizing",
        MEASURED,
    ),
    ("README.md", "./devstack/test", SYSTEM),
    (
        "docs/reference/benchmarks.md",
        "ebbtide-lab bench preempt",
        MEASURED,
    ),
    (
        "docs/reference/benchmarks.md",
        "ebbtide-lab bench request",
        MEASURED,
    ),
    (
        "docs/reference/benchmarks.md",
        "ebbtide-lab bench figure2",
        MEASURED,
    ),
    (
        "docs/reference/benchmarks.md",
        "./devstack/bench-nova",
        SYSTEM,
    ),
    (
        "docs/reference/benchmarks.md",
        "ebbtide-lab bench memory",
        MEASURED,
    ),
    ("docs/reference/benchmarks.md", "cargo build", SYSTEM),
    (
        "docs/reference/benchmarks.md",
        "ebbtide-lab bench evacuate",
        MEASURED,
    ),
    (
        "docs/reference/benchmarks.md",
        "ebbtide-lab bench takeover",
        MEASURED,
    ),
    ("docs/reference/benchmarks.md", "cargo install", SYSTEM),
    (
        "docs/tenants/burst.md",
        "ebbtide batch elastic",
        "reads what a Slurm cluster did",
    ),
    (
        "docs/tenants/checkpointing.md",
        "ebbtide-lab simulate checkpointing",
        MINUTES,
    ),
    (
        "docs/tenants/checkpointing.md",
        "ebbtide-lab plan bid",
        MINUTES,
    ),
    (
        "docs/plugins/cost-modules.md",
        "ebbtide-lab model fit",
        "reads lifetimes that the operator has",
    ),
    (
        "docs/tenants/deadlines.md",
        "ebbtide-lab simulate deadline",
        MINUTES,
    ),
    (
        "docs/tenants/elastic.md",
        "ebbtide-lab simulate elastic",
        HELD,
    ),
    (
        "docs/development/evacuation-protocol.md",
        "ebbtide-lab simulate evacuation --seeds 1000",
        MINUTES,
    ),
    ("docs/operate/libvirt.md", "", "needs a hypervisor"),
    ("docs/operate/market.md", "./devstack/up", SYSTEM),
    ("docs/operate/market.md", "ebbtide price list", REGION),
    ("docs/operate/market.md", "ebbtide server create", REGION),
    ("docs/operate/market.md", "ebbtide billing hours", REGION),
    ("docs/openstack/openstack.md", "", "needs an OpenStack"),
    (
        "docs/tenants/openstack-client.md",
        "",
        "needs an OpenStack; devstack/openstack-tools/preemptible_commands.py runs the commands",
    ),
    ("docs/operate/operator-guide.md", "cargo build", SYSTEM),
    (
        "docs/operate/operator-guide.md",
        "ebbtide-agent",
        "another program; its own tests hold it",
    ),
    (
        "docs/operate/operator-guide.md",
        "rabbitmq",
        "needs a broker",
    ),
    (
        "docs/plugins/plugin-tutorial.md",
        "",
        "a session with a region and a compiler",
    ),
    ("docs/tenants/run.md", "", "a session with a region"),
    (
        "docs/reference/rest.md",
        "",
        "a session with a region; scheduler/service/tests/rest calls the same",
    ),
    ("docs/operate/security.md", "openssl", SYSTEM),
    (
        "docs/operate/security.md",
        "./devstack/advisories",
        "fetches a database from the internet",
    ),
    ("docs/operate/security.md", "cargo nextest", MINUTES),
    (
        "docs/operate/security.md",
        "ebbtide-manage token create",
        "identifiers and secrets are random",
    ),
    ("docs/operate/security.md", "export", REGION),
    (
        "docs/tenants/tenant-guide.md",
        "ebbtide server list",
        "a snapshot of cli/tests/cli",
    ),
    ("docs/tenants/tenant-guide.md", "ebbtide --project", REGION),
    ("docs/tenants/tenant-guide.md", "ebbtide price", REGION),
    (
        "docs/tenants/tenant-guide.md",
        "ebbtide server create",
        REGION,
    ),
    ("docs/operate/maintenance.md", "ebbtide host", REGION),
    ("docs/operate/maintenance.md", "ebbtide flavor", REGION),
    (
        "docs/operate/maintenance.md",
        "openstack",
        "needs an OpenStack",
    ),
    ("docs/operate/lending.md", "ebbtide host", REGION),
    ("docs/operate/lending.md", "ebbtide flavor", REGION),
    ("docs/tenants/tenant-guide.md", "ebbtide evacuation", REGION),
    ("docs/tenants/tenant-guide.md", "ebbtide billing", REGION),
    ("docs/tenants/lifetimes.md", "ebbtide advice", REGION),
    (
        "docs/tenants/lifetimes.md",
        "ebbtide-lab model fit preemptions.csv -q --by flavor -o json | jq",
        "pipes into jq, which no script of ours installs",
    ),
    (
        "docs/tenants/lifetimes.md",
        "ebbtide-lab plan reuse --job 5h",
        REGION,
    ),
    (
        "docs/plugins/weighers.md",
        "ebbtide-lab model fit --from-region",
        REGION,
    ),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()
        .unwrap()
}

/// A command with what the document shows below it.
#[derive(Debug)]
struct ConsoleExample {
    command: String,
    lines: Vec<String>,
}

#[derive(Debug)]
struct Block {
    file: String,
    line: usize,
    commands: Vec<ConsoleExample>,
}

impl Block {
    fn first(&self) -> &str {
        self.commands.first().map_or("", |shown| &shown.command)
    }

    fn reason(&self) -> Option<(usize, &'static str)> {
        let known = NOT_RUN.iter().enumerate();
        known
            .filter(|(_, (file, begins, _))| *file == self.file && self.first().starts_with(begins))
            .max_by_key(|(_, (_, begins, _))| begins.len())
            .map(|(at, (_, _, why))| (at, *why))
    }
}

/// The pages below a folder of the repository, as paths from its root.
fn pages_of(dir: &str, found: &mut Vec<String>) {
    for entry in fs::read_dir(root().join(dir)).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{dir}/{}", entry.file_name().into_string().unwrap());
        if entry.file_type().unwrap().is_dir() {
            pages_of(&path, found);
        } else if path.ends_with(".md") {
            found.push(path);
        }
    }
}

fn blocks() -> Vec<Block> {
    let mut files = vec!["README.md".to_owned()];
    pages_of("docs", &mut files);
    files.sort();
    let mut found = Vec::new();
    for file in files {
        let text = fs::read_to_string(root().join(&file)).unwrap();
        let mut open: Option<(usize, Block)> = None;
        for (n, line) in text.lines().enumerate() {
            match &mut open {
                None if line.trim_start() == "```console" => {
                    let indent = line.len() - line.trim_start().len();
                    let block = Block {
                        file: file.clone(),
                        line: n + 1,
                        commands: Vec::new(),
                    };
                    open = Some((indent, block));
                }
                None => {}
                Some(_) if line.trim() == "```" => {
                    found.extend(open.take().map(|(_, block)| block))
                }
                Some((indent, block)) => {
                    let line = line.get(*indent..).unwrap_or("");
                    let goes_on = block
                        .commands
                        .last()
                        .is_some_and(|last| last.lines.is_empty() && last.command.ends_with('\\'));
                    if let Some(command) = line.strip_prefix("$ ") {
                        block.commands.push(ConsoleExample {
                            command: command.to_owned(),
                            lines: Vec::new(),
                        });
                    } else if let Some(last) = block.commands.last_mut() {
                        if goes_on {
                            last.command.push('\n');
                            last.command.push_str(line);
                        } else {
                            last.lines.push(line.to_owned());
                        }
                    }
                }
            }
        }
    }
    found
}

/// Whether a line is as it is shown, where `…` stands for any text.
fn line_agrees(shown: &str, said: &str) -> bool {
    let mut parts = shown.split('…');
    let first = parts.next().unwrap_or("");
    let Some(mut rest) = said.strip_prefix(first) else {
        return false;
    };
    let mut last = None;
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else {
            return false;
        };
        (rest, last) = (after, Some(part));
    }
    match last {
        None | Some("") => last.is_some() || rest.is_empty(),
        Some(part) => said.ends_with(part),
    }
}

/// Whether what was said is what is shown, where a line `…` stands for any lines.
fn agrees(shown: &[String], said: &[&str]) -> bool {
    match (shown, said) {
        ([], said) => said.is_empty(),
        ([any, shown @ ..], said) if any == "…" => {
            (0..=said.len()).any(|skip| agrees(shown, &said[skip..]))
        }
        ([first, shown @ ..], [line, said @ ..]) => {
            line_agrees(first, line.trim_end()) && agrees(shown, said)
        }
        (_, []) => false,
    }
}

/// The files that transcripts name, in a folder of their own.
fn place(data: &Path) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for name in ["docs", "integration"] {
        symlink(root().join(name), dir.path().join(name)).unwrap();
    }
    symlink(data.canonicalize().unwrap(), dir.path().join(LIFETIMES)).unwrap();
    // The file of the operator's guide, as it shows it.
    let guide = fs::read_to_string(root().join("docs/operate/operator-guide.md")).unwrap();
    if let Some(text) = guide.split("<!-- scheduler.toml -->\n```toml\n").nth(1) {
        let text = text.split("```").next().unwrap();
        fs::write(dir.path().join("scheduler.toml"), text).unwrap();
    }
    dir
}

/// Runs it as a shell would, and gives both streams in one.
fn run(command: &str, dir: &Path) -> (bool, String) {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_ebbtide"));
    let path = std::env::var_os("PATH").unwrap();
    let built = program.parent().unwrap();
    for other in ["ebbtide-lab", "ebbtide-manage"] {
        let there = built.join(other).is_file();
        assert!(
            there,
            "{other} is missing: `cargo build --workspace --bins` builds it"
        );
    }
    let mut folders = vec![built.to_owned()];
    folders.extend(std::env::split_paths(&path));
    let log = dir.join(".said");
    let out = File::create(&log).unwrap();
    let status = Command::new("bash")
        .args(["-c", command])
        .current_dir(dir)
        .env("PATH", std::env::join_paths(folders).unwrap())
        .env("HOME", dir)
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("EBBTIDE_ENDPOINT")
        .stdin(Stdio::null())
        .stderr(out.try_clone().unwrap())
        .stdout(out)
        .status()
        .unwrap();
    let said = fs::read(&log).unwrap();
    (
        status.success(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

/// A line such as `3 of 7 groups, flavor=small`.
fn is_progress(line: &str) -> bool {
    let is_number = |word: &str| word.parse::<u64>().is_ok();
    match line.split(' ').take(3).collect::<Vec<_>>().as_slice() {
        [done, "of", total] => is_number(done) && is_number(total),
        _ => false,
    }
}

#[test]
fn every_transcript_that_needs_no_region_says_what_the_program_says() {
    let mut wrong = Vec::new();
    let mut ran = 0;
    let data = ebbtide_test_data::data("goog-preemption/preemptions.csv");
    let dir = place(&data.path);
    for block in blocks().iter().filter(|block| block.reason().is_none()) {
        // Figures of the public data, and of models that were fitted to them, are not those of a
        // reduced file.
        let of_public_data = |shown: &ConsoleExample| {
            let command = &shown.command;
            command.contains(LIFETIMES) || command.contains("models.json")
        };
        if data.reduced && block.commands.iter().any(of_public_data) {
            continue;
        }
        for shown in &block.commands {
            let (_, said) = run(&shown.command, dir.path());
            // Warnings of a build that is not optimised, and how far a command is after some
            // seconds, are about this test only.
            let of_this_test = |line: &str| {
                let progress = is_progress(line) && !shown.lines.iter().any(|one| one == line);
                progress || line.starts_with("this build is not optimised")
            };
            let lines: Vec<&str> = said.lines().filter(|line| !of_this_test(line)).collect();
            ran += 1;
            if !agrees(&shown.lines, &lines) {
                wrong.push(format!(
                    "{}:{}: $ {}\n--- shown\n{}\n--- said\n{said}",
                    block.file,
                    block.line,
                    shown.command,
                    shown.lines.join("\n")
                ));
            }
        }
    }
    assert!(ran >= 9, "only {ran} commands were run");
    assert!(
        wrong.is_empty(),
        "{} of {ran} transcripts are not true:\n\n{}",
        wrong.len(),
        wrong.join("\n\n")
    );
}

#[test]
fn what_is_not_run_is_there_and_has_its_reason() {
    let mut used = BTreeSet::new();
    for block in blocks() {
        used.extend(block.reason().map(|(at, _)| at));
    }
    let idle: Vec<_> = (0..NOT_RUN.len())
        .filter(|at| !used.contains(at))
        .map(|at| NOT_RUN[at])
        .collect();
    assert!(idle.is_empty(), "these blocks are gone: {idle:?}");
}

#[test]
fn a_transcript_agrees_only_with_what_it_shows() {
    let shown: Vec<String> = ["a … c", "…", "end"].map(str::to_owned).into();
    assert!(agrees(&shown, &["a b c", "x", "y", "end"]));
    assert!(agrees(&shown, &["a  c", "end"]));
    assert!(!agrees(&shown, &["a b d", "end"]));
    assert!(!agrees(&shown, &["a b c", "end", "more"]));
    assert!(!agrees(&shown, &[]));
    assert!(line_agrees("took … s", "took 0.3 s") && !line_agrees("took … s", "took 0.3 s!"));
    assert!(
        line_agrees("id …", "id 7")
            && line_agrees("plain", "plain")
            && !line_agrees("plain", "plainer")
    );
}
