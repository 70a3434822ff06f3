//! ACC: the ACC paper's own scheme. It bids so much (S_bid) that the provider never ends its
//! instance, and gives the instance back by itself where the next hour would cost more than A_bid:
//! at t_cd, a checkpoint before the end of each hour, it saves if the price is above A_bid
//! (E_ckpt); at t_td, just before the hour ends, it terminates if the price is still above
//! (E_terminate); it launches again when the price is not above any more (E_launch). What happens
//! within an hour does not matter, for the hour is paid.

use crate::bill::HOUR_SECONDS;
use crate::scheme::{Act, Scheme, SchemeKind, SchemeView};
use crate::terms::{AccReading, CheckpointTerms};
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

    fn next(&self, seen: &SchemeView<'_>) -> Option<Act> {
        let above = |time: i64| seen.history.price_at(time) > seen.bid;
        let mut hour = ((seen.now - seen.launch) / HOUR_SECONDS).max(1);
        loop {
            let (checkpoint, terminate) = seen.terms.decision_points(seen.launch, hour);
            if checkpoint > seen.done() || checkpoint > seen.history.end() {
                return None;
            }
            if checkpoint >= seen.now
                && seen.checkpoint != Some(checkpoint)
                && seen.unsaved_at(checkpoint) > 0
                && above(checkpoint)
            {
                return Some(Act::Checkpoint(checkpoint));
            }
            let saved = seen.checkpoint == Some(checkpoint) || seen.unsaved_at(terminate) == 0;
            if terminate >= seen.now
                && (saved || seen.terms.reading == AccReading::Naive)
                && above(terminate)
            {
                return Some(Act::Terminate(terminate));
            }
            hour += 1;
        }
    }
}
