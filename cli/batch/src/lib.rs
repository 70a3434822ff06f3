//! What the parts of `ebbtide-batch` share: works, bags by maps, the elastic partition, and what
//! slurmctld calls.
//!
//! - [`pool`] says which servers there are and where they come from. [`power`] and [`setup`] are
//!   what slurmctld calls and needs, [`program`] is its command line.
//! - [`args`] is what may be typed.
//! - [`journal`] keeps the record on disk, [`accounts`] what servers cost. [`act`] carries actions
//!   out, [`faults`] reports what goes wrong, once for as long as it lasts.

/// One line of output. A reader that has gone away (`| head`) ends nothing and is no error:
/// `println!` would panic.
#[macro_export]
macro_rules! say {
    ($($words:tt)*) => {{
        let _ = std::io::Write::write_fmt(
            &mut std::io::stdout(),
            format_args!("{}\n", format_args!($($words)*)),
        );
    }};
}

/// The same to standard error.
#[macro_export]
macro_rules! complain {
    ($($words:tt)*) => {{
        let _ = std::io::Write::write_fmt(
            &mut std::io::stderr(),
            format_args!("{}\n", format_args!($($words)*)),
        );
    }};
}

pub mod accounts;
pub mod act;
pub mod args;
pub mod check;
pub mod faults;
pub mod journal;
pub mod lines;
pub mod pool;
pub mod power;
pub mod program;
pub mod setup;

use ebbtide_burst::BurstError;
use std::path::Path;

/// The error of the operating system for a file.
pub fn storage(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> BurstError {
    let path = path.display().to_string();
    move |error| BurstError::Storage {
        what,
        path,
        problem: error.to_string(),
    }
}
