//! The public data. They lie outside of the repository: in the directory that EBBTIDE_DATA names, or beside the checkout.

use std::path::{Path, PathBuf};

/// The whole file.
///
/// # Panics
/// If it is not there: the test says what it needs.
#[allow(dead_code, reason = "each test file is a program of its own")]
pub(crate) fn preemptions() -> Vec<u8> {
    std::fs::read(path()).expect("it was there a moment ago")
}

/// Where the file is.
///
/// # Panics
/// If it is nowhere.
pub(crate) fn path() -> PathBuf {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let root = std::env::var_os("EBBTIDE_DATA").map_or(beside, PathBuf::from);
    let places = [
        root.join("goog-preemption/preemptions.csv"),
        root.join("preemptions.csv"),
    ];
    places.iter().find(|path| path.is_file()).cloned().unwrap_or_else(|| {
        panic!(
            "{} is missing: this test needs the public preemption data. Set EBBTIDE_DATA to the directory that has \
             goog-preemption/preemptions.csv, or put it at ../shared/data beside the checkout",
            places[0].display()
        )
    })
}
