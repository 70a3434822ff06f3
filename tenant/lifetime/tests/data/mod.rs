//! The public data of the paper, or reduced ones where they are not.

use ebbtide_test_data::Data;

/// The file, and whether it is a reduced one.
pub(crate) fn file() -> Data {
    ebbtide_test_data::data("goog-preemption/preemptions.csv")
}

/// The whole file.
#[allow(dead_code, reason = "each test file is a program of its own")]
pub(crate) fn preemptions() -> Vec<u8> {
    std::fs::read(file().path).expect("it was there a moment ago")
}
