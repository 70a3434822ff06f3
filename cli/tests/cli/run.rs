//! Running the command inside the test, with streams that can be read and a clock that stands
//! still.

use crate::fake::Fake;
use clap::CommandFactory;
use ebbtide_shell::output::Io;
use ebbtide_shell::program;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use time::OffsetDateTime;
use time::macros::datetime;

/// A stream that is kept.
#[derive(Clone, Default)]
pub struct CapturedOutput(Arc<Mutex<Vec<u8>>>);

impl CapturedOutput {
    pub fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for CapturedOutput {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What a run of the command came to.
#[derive(Debug, Clone)]
pub struct Ran {
    pub code: u8,
    pub out: String,
    pub err: String,
}

impl Ran {
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.out))
    }

    /// All of it, for a snapshot.
    pub fn all(&self) -> String {
        format!(
            "exit code {}\n--- stdout\n{}--- stderr\n{}",
            self.code, self.out, self.err
        )
    }
}

fn now() -> OffsetDateTime {
    datetime!(2026-11-20 20:40:12 UTC)
}

/// Runs the command with these streams and arguments.
pub async fn with_streams(args: &[&str], out: &CapturedOutput, err: &CapturedOutput) -> u8 {
    at_width(None, args, out, err).await
}

/// The same on a terminal of this width.
pub async fn at_width(
    width: Option<u16>,
    args: &[&str],
    out: &CapturedOutput,
    err: &CapturedOutput,
) -> u8 {
    let io = io(width, out, err);
    let args = args.iter().copied();
    match program_of(args.clone()) {
        name @ "ebbtide-lab" => program::run::<ebbtide_lab::args::Cli>(words(name, args), io).await,
        name @ "ebbtide-manage" => {
            program::run::<ebbtide_manage::args::Cli>(words(name, args), io).await
        }
        name => program::run::<ebbtide_cli::args::Cli>(words(name, args), io).await,
    }
}

/// Streams and a clock for a run on a terminal of this width.
pub fn io(width: Option<u16>, out: &CapturedOutput, err: &CapturedOutput) -> Io {
    Io {
        out: Box::new(out.clone()),
        err: Box::new(err.clone()),
        out_is_terminal: width.is_some(),
        err_is_terminal: false,
        width,
        see_table: Some(crate::widths::fits_everywhere),
        no_color: width.is_some(),
        now,
        config_home: None,
        in_checkout: false,
        token: None,
        environment: ebbtide_os_cloud::Environment::default(),
    }
}

fn words<'a>(name: &'a str, args: impl Iterator<Item = &'a str>) -> Vec<OsString> {
    std::iter::once(name)
        .chain(args)
        .map(OsString::from)
        .collect()
}

/// The program that has this command: the first word that names one.
pub fn program_of<'a>(args: impl Iterator<Item = &'a str>) -> &'static str {
    let programs = [
        ("ebbtide-lab", ebbtide_lab::args::Cli::command()),
        ("ebbtide-manage", ebbtide_manage::args::Cli::command()),
    ];
    let args: Vec<&str> = args.collect();
    let all = ebbtide_cli::args::Cli::command();
    for (at, word) in args.iter().enumerate() {
        for (name, command) in &programs {
            let Some(noun) = command.find_subcommand(word) else {
                continue;
            };
            // `plugin` is in two programs: the verb decides.
            let verb = args.get(at + 1);
            if all.find_subcommand(word).is_none()
                || verb.is_some_and(|verb| noun.find_subcommand(verb).is_some())
            {
                return name;
            }
        }
        if all.find_subcommand(word).is_some() {
            break;
        }
    }
    "ebbtide"
}

/// A program, beside the one that Cargo built for these tests.
pub fn binary(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_ebbtide")).with_file_name(name);
    let there = path.is_file();
    assert!(
        there,
        "{name} is missing: `cargo build --workspace --bins` builds it"
    );
    path
}

/// The program that is built and has this command.
pub fn binary_of(args: &[&str]) -> PathBuf {
    binary(program_of(args.iter().copied()))
}

/// Runs the command without a region.
pub async fn alone(args: &[&str]) -> Ran {
    let (out, err) = (CapturedOutput::default(), CapturedOutput::default());
    let code = with_streams(args, &out, &err).await;
    Ran {
        code,
        out: out.text(),
        err: err.text(),
    }
}

/// Runs the command against the fake region, as project `default`.
pub async fn against(fake: &Fake, args: &[&str]) -> Ran {
    let endpoint = fake.endpoint();
    let mut all = vec!["--endpoint", &endpoint];
    if !args.contains(&"--project") {
        all.extend(["--project", "default"]);
    }
    all.extend(args);
    let mut ran = alone(&all).await;
    // The port is another one each time; as long as the real ones, so that tables keep their shape.
    // With the colon: its digits alone may be some other number's, too.
    let port = format!(":{}", endpoint.rsplit(':').next().unwrap());
    let shown = format!(":{}", "P".repeat(port.len() - 1));
    for text in [&mut ran.out, &mut ran.err] {
        *text = text.replace(&port, &shown);
    }
    ran
}
