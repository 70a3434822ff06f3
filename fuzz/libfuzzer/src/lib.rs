//! One program of libFuzzer for each target of `ebbtide-fuzz`.

pub use ebbtide_fuzz::{TARGETS, FuzzTarget};
pub use libfuzzer_sys;

/// A program that gives a target whatever libFuzzer makes up.
#[macro_export]
macro_rules! program {
    ($name:literal) => {
        $crate::libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
            const RUN: fn(&[u8]) = $crate::named($name);
            RUN(bytes);
        });
    };
}

/// The function of a target.
///
/// # Panics
/// While compiling, if there is none of that name.
pub const fn named(name: &str) -> fn(&[u8]) {
    let mut at = 0;
    while at < TARGETS.len() {
        if same(TARGETS[at].name.as_bytes(), name.as_bytes()) {
            return TARGETS[at].run;
        }
        at += 1;
    }
    panic!("there is no such target");
}

const fn same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut at = 0;
    while at < a.len() {
        if a[at] != b[at] {
            return false;
        }
        at += 1;
    }
    true
}
