//! The `ebbtide-lab` command. Everything is in the library, where tests reach it.

use std::process::ExitCode;

fn main() -> ExitCode {
    ebbtide_shell::program::main::<ebbtide_lab::args::Cli>()
}
