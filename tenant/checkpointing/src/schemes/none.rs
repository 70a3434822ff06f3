//! NONE: no checkpoints. A failure begins the job anew.

use crate::scheme::{Scheme, SchemeAction, SchemeKind, SchemeView};

/// The scheme NONE.
#[derive(Debug, Clone, Copy)]
pub struct NoCheckpoints;

impl Scheme for NoCheckpoints {
    fn kind(&self) -> SchemeKind {
        SchemeKind::None
    }

    fn next(&self, _seen: &SchemeView<'_>) -> Option<SchemeAction> {
        None
    }
}
