//! Named places of a preemption at which a process dies on request, so that tests can kill it
//! exactly there.
//!
//! `EBBTIDE_DIE_AT=NAME` in the environment of a scheduler or an agent ends it with SIGABRT when it
//! comes to that place: as with SIGKILL nothing is flushed, nothing is said goodbye to, no
//! destructor runs. `NAME:N` means the N-th time. A name that is not known ends the process at the
//! first place that it comes to, so that a typing error is no test that always passes.
//!
//! Only builds with debug assertions have such places: in release builds [`reach`], [`reach_if`]
//! and [`is_armed`] are nothing, and the variable is not read. No other crate reads it or ends its
//! process at a place of its own; `tests/release.rs` checks both.

#[cfg(debug_assertions)]
mod armed;
mod point;

pub use point::FailPoint;

/// The variable that names the place.
pub const VARIABLE: &str = "EBBTIDE_DIE_AT";

/// Dies here if it was asked to.
#[inline]
pub fn reach(point: FailPoint) {
    reach_if(point, || true);
}

/// Dies here if it was asked to, and if `here` says that this is the place that is meant. `here` is
/// asked only then.
#[inline]
pub fn reach_if(point: FailPoint, here: impl FnOnce() -> bool) {
    #[cfg(debug_assertions)]
    if armed::is_next(point, here) {
        std::process::abort();
    }
    #[cfg(not(debug_assertions))]
    let _ = (point, here);
}

/// True if this process is to die at this place: for those that have to prepare something for it,
/// such as half a write.
#[inline]
#[must_use]
pub fn is_armed(point: FailPoint) -> bool {
    #[cfg(debug_assertions)]
    return armed::at().is_some_and(|at| at.point == point);
    #[cfg(not(debug_assertions))]
    {
        let _ = point;
        false
    }
}
