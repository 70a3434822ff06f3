//! Runs the program beside this one that starts a broker and a scheduler and measures them.
//!
//! It is a program of its own because it needs the test harness, the bus, agents and the whole
//! service, and this command only the contract.

use crate::error::LabError;
use ebbtide_bench::BenchError;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::json::Json;
use ebbtide_shell::output::{Details, TableCell};
use std::process::{Command, Stdio};

/// The program that measures.
const PROGRAM: &str = "ebbtide-bench-service";

/// Runs it with these options and shows what it says, these fields of it first.
///
/// # Errors
/// [`BenchError::Service`].
pub(super) fn run(
    context: &mut Context,
    options: &[String],
    shown: &[&'static str],
) -> Result<(), CliError> {
    let failed = |problem: String| CliError::from(LabError::Bench(BenchError::Service(problem)));
    let here = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
    let program = here.with_file_name(PROGRAM);
    if !program.exists() {
        return Err(failed(format!("{} is not there", program.display())));
    }
    let mut command = Command::new(&program);
    command.args(options).arg("--json").stdout(Stdio::piped());
    if context.output.is_quiet() {
        command.stderr(Stdio::null());
    }
    let done = command
        .spawn()
        .and_then(std::process::Child::wait_with_output)
        .map_err(|error| failed(format!("{}: {error}", program.display())))?;
    if !done.status.success() {
        return Err(failed(format!("{PROGRAM} ended with {}", done.status)));
    }
    let json: Json = serde_json::from_slice(&done.stdout)
        .map_err(|error| failed(format!("{PROGRAM} did not print JSON: {error}")))?;
    let value = |key: &str| match json.clone().only(&[key]) {
        Json::Object(pairs) => pairs
            .into_iter()
            .next()
            .map_or(Json::Null, |(_, value)| value),
        other => other,
    };
    let cell = |key: &str| match value(key) {
        Json::Text(text) => TableCell::new(text),
        Json::Number(number) => TableCell::new(number),
        Json::Bool(yes) => TableCell::new(yes),
        _ => TableCell::new("-"),
    };
    let fields = shown.iter().map(|key| (*key, cell(key))).collect();
    context.output.details(Details { fields, json })
}
