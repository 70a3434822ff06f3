//! ADAPT: at regular times it asks the failure density whether a checkpoint pays.
//!
//! From the description of Yi et al. (2010): compare the expected time to recover with and without
//! a checkpoint now. Over the time d until the next decision, with p seconds of unsaved work, K the
//! time until failure, r the restart:
//!
//! - without: E[(p + K + r) | K <= d];
//! - with: t_c + E[(p + K + r) | K < t_c] + E[(K - t_c + r) | t_c <= K <= d], since a failure
//!   during the checkpoint loses the work all the same.
//!
//! The difference is t_c - (p + t_c) P(t_c <= K <= d): a checkpoint pays where the chance to need
//! it, times what it saves, is more than what it costs. K is conditional on the time for which the
//! price has not been above the bid already.
//!
//! A scheme that has not seen a failure yet expects none and takes no checkpoint; it learns from
//! each failure.

use crate::scheme::{Scheme, SchemeAction, SchemeKind, SchemeView};

/// The scheme ADAPT.
#[derive(Debug, Clone, Copy)]
pub struct Adaptive;

impl Adaptive {
    /// True if a checkpoint at `time` pays.
    fn pays(seen: &SchemeView<'_>, time: i64) -> bool {
        let terms = seen.terms;
        let age = time - seen.period.from;
        let until = terms.adapt.every_seconds.max(terms.checkpoint_seconds);
        let needed = seen
            .lives
            .chance_within(age, terms.checkpoint_seconds, until);
        let saves = (seen.unsaved_at(time) + terms.checkpoint_seconds) as f64;
        needed * saves > terms.checkpoint_seconds as f64
    }
}

impl Scheme for Adaptive {
    fn kind(&self) -> SchemeKind {
        SchemeKind::Adapt
    }

    fn learns(&self) -> bool {
        true
    }

    fn next(&self, seen: &SchemeView<'_>) -> Option<SchemeAction> {
        let every = seen.terms.adapt.every_seconds;
        let first = (seen.now - seen.launch) / every + 1;
        (first..)
            .map(|n| seen.launch + n * every)
            .take_while(|time| *time < seen.done() && *time <= seen.history.end())
            .find(|time| Self::pays(seen, *time))
            .map(SchemeAction::Checkpoint)
    }
}
