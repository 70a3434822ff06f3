//! HOUR: a checkpoint that ends with each instance-hour, since that is what has been paid for.

use crate::bill::HOUR_SECONDS;
use crate::scheme::{Scheme, SchemeAction, SchemeKind, SchemeView};

/// The scheme HOUR.
#[derive(Debug, Clone, Copy)]
pub struct Hour;

impl Scheme for Hour {
    fn kind(&self) -> SchemeKind {
        SchemeKind::Hour
    }

    fn next(&self, seen: &SchemeView<'_>) -> Option<SchemeAction> {
        let span = seen.now + seen.terms.checkpoint_seconds - seen.launch;
        // The first hour whose checkpoint has not begun yet; at `now` itself there may be nothing
        // to save.
        let mut hour = (span + HOUR_SECONDS - 1) / HOUR_SECONDS;
        let begin = |hour: i64| seen.launch + hour * HOUR_SECONDS - seen.terms.checkpoint_seconds;
        if seen.unsaved_at(begin(hour)) == 0 {
            hour += 1;
        }
        Some(SchemeAction::Checkpoint(begin(hour)))
    }
}
