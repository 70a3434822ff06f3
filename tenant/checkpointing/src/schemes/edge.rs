//! EDGE: a checkpoint whenever the price rises (and stays within the bid): the next rise may be the
//! one above it. A rise while nothing is unsaved, in a restart or during another checkpoint, is let
//! pass.

use crate::scheme::{Scheme, SchemeAction, SchemeKind, SchemeView};

/// The scheme EDGE.
#[derive(Debug, Clone, Copy)]
pub struct Edge;

impl Scheme for Edge {
    fn kind(&self) -> SchemeKind {
        SchemeKind::Edge
    }

    fn next(&self, seen: &SchemeView<'_>) -> Option<SchemeAction> {
        // After `now`: at `now` there is nothing new since the last checkpoint.
        let rise = seen.history.next_rise(seen.now, seen.bid)?;
        Some(SchemeAction::Checkpoint(rise))
    }
}
