//! OPT: a checkpoint that ends exactly when the instance does, so that only the checkpoint's own
//! time is lost. The scheme needs to know the future: it is the bound for all schemes whose
//! instances end with the price.

use crate::scheme::{Scheme, SchemeAction, SchemeKind, SchemeView};

/// The scheme OPT.
#[derive(Debug, Clone, Copy)]
pub struct Optimal;

impl Scheme for Optimal {
    fn kind(&self) -> SchemeKind {
        SchemeKind::Opt
    }

    fn next(&self, seen: &SchemeView<'_>) -> Option<SchemeAction> {
        let end = seen.period.until?;
        // A job that ends before the instance does needs no checkpoint.
        if seen.done() <= end {
            return None;
        }
        let at = end - seen.terms.checkpoint_seconds;
        (at >= seen.now && seen.unsaved_at(at) > 0).then_some(SchemeAction::Checkpoint(at))
    }
}
