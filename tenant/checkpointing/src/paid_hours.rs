//! The decision points of the ACC paper, and what ACC decides there. The simulator and the live
//! services decide by this file.

use crate::event::EventKind;
use crate::terms::AccReading;
use ebbtide_model::Money;

/// The hours of an instance and the two decision points of each. Any unit of time will do, as long
/// as all of it is in that unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PaidHours {
    /// What is paid at once: an hour.
    pub length: i64,
    /// t_c, how long a checkpoint takes.
    pub checkpoint: i64,
    /// t_w, how long before the end of the hour the last decision falls.
    pub terminate: i64,
}

/// One of the two points of an hour at which ACC looks at the price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DecisionPoint {
    /// t_cd: whether to save.
    Checkpoint,
    /// t_td: whether to end the instance.
    Terminate,
}

impl PaidHours {
    /// t_cd = t_h - t_c - t_w and t_td = t_h - t_w (equations 3 and 4) of an instance's hour; the
    /// first is hour 1.
    #[must_use]
    pub fn points(self, launch: i64, hour: i64) -> (i64, i64) {
        let terminate = launch + hour * self.length - self.terminate;
        (terminate - self.checkpoint, terminate)
    }

    /// The decision point that was passed last in the hour of `now`, and when it was; `None` before
    /// the first, and before the launch.
    #[must_use]
    pub fn passed(self, launch: i64, now: i64) -> Option<(DecisionPoint, i64)> {
        if now < launch {
            return None;
        }
        let hour = (now - launch) / self.length.max(1) + 1;
        let (checkpoint, terminate) = self.points(launch, hour);
        if now >= terminate {
            return Some((DecisionPoint::Terminate, terminate));
        }
        (now >= checkpoint).then_some((DecisionPoint::Checkpoint, checkpoint))
    }
}

/// What ACC does at a decision point: E_ckpt, E_terminate, or nothing. `safe` says that ending the
/// instance would lose no work: nothing is unsaved, or a checkpoint was taken at t_cd of this hour.
/// A price equal to the bid is within it.
#[must_use]
pub fn decide(
    point: DecisionPoint,
    price: Money,
    bid: Money,
    safe: bool,
    reading: AccReading,
) -> Option<EventKind> {
    if price <= bid {
        return None;
    }
    match point {
        DecisionPoint::Checkpoint => (!safe).then_some(EventKind::Checkpoint),
        DecisionPoint::Terminate => {
            (safe || reading == AccReading::Naive).then_some(EventKind::Terminate)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOURS: PaidHours = PaidHours {
        length: 3_600,
        checkpoint: 300,
        terminate: 60,
    };

    #[test]
    fn the_points_of_an_hour_are_passed_in_order() {
        assert_eq!(HOURS.points(100, 2), (6_940, 7_240));
        let passed = |now: i64| HOURS.passed(100, now);
        assert_eq!(passed(99), None);
        assert_eq!(passed(3_339), None);
        assert_eq!(passed(3_340), Some((DecisionPoint::Checkpoint, 3_340)));
        assert_eq!(passed(3_639), Some((DecisionPoint::Checkpoint, 3_340)));
        assert_eq!(passed(3_640), Some((DecisionPoint::Terminate, 3_640)));
        assert_eq!(passed(3_699), Some((DecisionPoint::Terminate, 3_640)));
        assert_eq!(passed(3_700), None);
        assert_eq!(passed(7_000), Some((DecisionPoint::Checkpoint, 6_940)));
    }

    #[test]
    fn an_instance_ends_only_above_the_bid_and_strictly_only_if_nothing_is_lost() {
        let money = Money::from_micros;
        let at =
            |point, price, safe, reading| decide(point, money(price), money(100), safe, reading);
        let (save, end) = (DecisionPoint::Checkpoint, DecisionPoint::Terminate);
        let strict = AccReading::Strict;
        assert_eq!(at(save, 101, false, strict), Some(EventKind::Checkpoint));
        assert_eq!(at(save, 101, true, strict), None);
        assert_eq!(at(save, 100, false, strict), None);
        assert_eq!(at(end, 101, true, strict), Some(EventKind::Terminate));
        assert_eq!(at(end, 101, false, strict), None);
        assert_eq!(
            at(end, 101, false, AccReading::Naive),
            Some(EventKind::Terminate)
        );
        assert_eq!(at(end, 100, true, AccReading::Naive), None);
    }
}
