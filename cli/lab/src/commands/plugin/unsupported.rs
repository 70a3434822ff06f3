//! What is said where WebAssembly is not built in.

use super::{BenchArgs, FileArgs, NewArgs};
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;

fn refused() -> CliError {
    CliError::Refused {
        problem: "this ebbtide was built without WebAssembly".to_owned(),
        next: "build it with --features wasm".to_owned(),
    }
}

pub(super) fn new(_: &mut Context, _: NewArgs) -> Result<(), CliError> {
    Err(refused())
}

pub(super) fn check(_: &mut Context, _: &FileArgs) -> Result<(), CliError> {
    Err(refused())
}

pub(super) fn bench(_: &mut Context, _: &BenchArgs) -> Result<(), CliError> {
    Err(refused())
}
