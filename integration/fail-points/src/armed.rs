//! What this process was asked for.

use crate::{FailPoint, VARIABLE};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Where this process is to die.
#[derive(Debug)]
pub(crate) struct ArmedPoint {
    pub(crate) point: FailPoint,
    /// How often it may still pass there.
    left: AtomicU32,
}

static AT: OnceLock<Option<ArmedPoint>> = OnceLock::new();

/// Where this process is to die, if anywhere.
pub(crate) fn at() -> Option<&'static ArmedPoint> {
    let read = || {
        let wanted = std::env::var(VARIABLE).ok()?;
        let at = parse(&wanted);
        if at.is_none() {
            unknown(&wanted);
        }
        at
    };
    AT.get_or_init(read).as_ref()
}

/// True if this is the place, and the time.
pub(crate) fn is_next(point: FailPoint, here: impl FnOnce() -> bool) -> bool {
    let Some(at) = at().filter(|at| at.point == point) else {
        return false;
    };
    here() && at.left.fetch_sub(1, Ordering::SeqCst) == 1
}

fn parse(wanted: &str) -> Option<ArmedPoint> {
    let (name, times) = wanted.split_once(':').unwrap_or((wanted, "1"));
    let point = FailPoint::ALL.iter().find(|point| point.name() == name)?;
    let left: u32 = times.parse().ok().filter(|times| *times > 0)?;
    Some(ArmedPoint {
        point: *point,
        left: AtomicU32::new(left),
    })
}

#[allow(clippy::print_stderr)] // The log may not be there yet, and the process ends here.
fn unknown(wanted: &str) -> ! {
    eprintln!(
        "{VARIABLE}={wanted}: there is no such place; write NAME or NAME:N with a name of integration/fail-points/src/point.rs"
    );
    std::process::abort()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_named_with_or_without_a_count() {
        let at = parse("claim-committed:3").unwrap();
        assert_eq!(at.point, FailPoint::ClaimCommitted);
        assert_eq!(at.left.into_inner(), 3);
        assert_eq!(parse("notice-read").unwrap().left.into_inner(), 1);
    }

    #[test]
    fn what_is_no_place_is_not_taken_for_one() {
        for wanted in [
            "",
            "nowhere",
            "notice-read:0",
            "notice-read:x",
            "notice-read:",
        ] {
            assert!(parse(wanted).is_none(), "{wanted}");
        }
    }

    #[test]
    fn no_two_places_have_one_name() {
        let mut names: Vec<&str> = FailPoint::ALL.iter().map(|point| point.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FailPoint::ALL.len());
    }
}
