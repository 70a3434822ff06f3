//! Lives of servers, as input of the advice.

use ebbtide_lifetime::Observation;
use ebbtide_model::{LifeEnd, PastLife, Seconds, Timestamp};

const HOUR_MS: f64 = 3_600_000.0;

/// A life that has ended, or one that continues.
#[derive(Debug, Clone, PartialEq)]
pub struct LifeRecord {
    pub project: String,
    /// When it began.
    pub launched: Timestamp,
    /// When and how it ended; `None` while it continues.
    pub ended: Option<(Timestamp, LifeEnd)>,
    /// Maximum lifetime of its flavor, hours; infinite for no limit.
    pub limit: f64,
}

/// Converts a flavor's maximum lifetime to hours; infinite for none.
#[must_use]
pub fn hours_of(limit: Option<Seconds>) -> f64 {
    limit.map_or(f64::INFINITY, |limit| f64::from(limit.0) / 3600.0)
}

impl From<&PastLife> for LifeRecord {
    fn from(life: &PastLife) -> Self {
        Self {
            project: life.project_id.clone(),
            launched: life.launched_at,
            ended: Some((life.ended_at, life.end)),
            limit: hours_of(life.max_lifetime),
        }
    }
}

/// The known part of a life at some moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ObservedLife {
    /// When it began.
    pub launched: Timestamp,
    /// How long it has lived, and whether the provider has ended it.
    pub seen: Observation,
}

impl LifeRecord {
    /// The state of this life at `now`, for a flavor whose maximum lifetime is `maximum` hours.
    /// `None` if it had not begun.
    ///
    /// A server that was ended because of this limit received its notice one grace period earlier,
    /// so it counts as having lived for the whole maximum. An end because of another limit is
    /// censored: it only says that the server lived this long.
    #[must_use]
    pub fn at(&self, now: Timestamp, maximum: f64) -> Option<ObservedLife> {
        if self.launched > now {
            return None;
        }
        let over = self.ended.filter(|(at, _)| *at <= now);
        let until = over.map_or(now, |(at, _)| at);
        let hours = until.millis_since(self.launched) as f64 / HOUR_MS;
        // Equal limits may differ in the last bits after a division.
        let same_limit = (self.limit - maximum).abs() < 1e-9;
        let seen = match over {
            _ if hours >= maximum => Observation {
                hours: maximum,
                ended: true,
            },
            Some((_, LifeEnd::MaxLifetime)) if same_limit => Observation {
                hours: maximum,
                ended: true,
            },
            Some((_, LifeEnd::Preempted)) => Observation { hours, ended: true },
            // A tenant who pays any price would have kept the server, so an end out of bid is
            // censored like an end by the owner.
            Some((
                _,
                LifeEnd::MaxLifetime
                | LifeEnd::OutOfBid
                | LifeEnd::Deleted
                | LifeEnd::Stopped
                | LifeEnd::Lost,
            ))
            | None => Observation {
                hours,
                ended: false,
            },
        };
        Some(ObservedLife {
            launched: self.launched,
            seen,
        })
    }
}

impl ObservedLife {
    /// The part that was known at an earlier moment; `None` if the life had not begun.
    #[must_use]
    pub fn before(&self, then: Timestamp) -> Option<Observation> {
        if self.launched >= then {
            return None;
        }
        let age = then.millis_since(self.launched) as f64 / HOUR_MS;
        Some(if self.seen.hours <= age {
            self.seen
        } else {
            Observation {
                hours: age,
                ended: false,
            }
        })
    }
}
