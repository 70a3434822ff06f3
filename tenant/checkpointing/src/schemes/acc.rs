//! ACC: the ACC paper's own scheme. It bids so much (S_bid) that the provider never ends its
//! instance, and gives the instance back by itself where the next hour would cost more than A_bid:
//! at t_cd, a checkpoint before the end of each hour, it saves if the price is above A_bid
//! (E_ckpt); at t_td, just before the hour ends, it terminates if the price is still above
//! (E_terminate); it launches again when the price is not above any more (E_launch). What happens
//! within an hour does not matter, for the hour is paid. What is decided at the two points is in
//! [`crate::decide`], for the live services as well.

use crate::bill::HOUR_SECONDS;
use crate::event::EventKind;
use crate::paid_hours::{DecisionPoint, decide};
use crate::scheme::{Scheme, SchemeAction, SchemeKind, SchemeView};
use crate::terms::CheckpointTerms;
use ebbtide_model::Money;

/// The scheme ACC.
#[derive(Debug, Clone, Copy)]
pub struct Acc;

impl Scheme for Acc {
    fn kind(&self) -> SchemeKind {
        SchemeKind::Acc
    }

    fn ceiling(&self, _bid: Money, terms: &CheckpointTerms) -> Option<Money> {
        terms.ceiling
    }

    fn next(&self, seen: &SchemeView<'_>) -> Option<SchemeAction> {
        let decided = |point, at: i64, safe| {
            let price = seen.history.price_at(at);
            let event =
                (at >= seen.now).then(|| decide(point, price, seen.bid, safe, seen.terms.reading));
            event.flatten()
        };
        let mut hour = ((seen.now - seen.launch) / HOUR_SECONDS).max(1);
        loop {
            let (checkpoint, terminate) = seen.terms.decision_points(seen.launch, hour);
            if checkpoint > seen.done() || checkpoint > seen.history.end() {
                return None;
            }
            let saved = seen.checkpoint == Some(checkpoint);
            let safe = saved || seen.unsaved_at(checkpoint) == 0;
            if let Some(EventKind::Checkpoint) =
                decided(DecisionPoint::Checkpoint, checkpoint, safe)
            {
                return Some(SchemeAction::Checkpoint(checkpoint));
            }
            let safe = saved || seen.unsaved_at(terminate) == 0;
            if let Some(EventKind::Terminate) = decided(DecisionPoint::Terminate, terminate, safe) {
                return Some(SchemeAction::Terminate(terminate));
            }
            hour += 1;
        }
    }
}
