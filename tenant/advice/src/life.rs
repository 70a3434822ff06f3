//! Lives, as advice regards them.

use ebbtide_lifetime::Observation;
use ebbtide_model::{LifeEnd, PastLife, Seconds, Timestamp};

const HOUR_MS: f64 = 3_600_000.0;

/// A life that is over, or one that goes on.
#[derive(Debug, Clone, PartialEq)]
pub struct Life {
    /// Whose.
    pub project: String,
    /// When it began.
    pub launched: Timestamp,
    /// When it ended; `None` while it goes on.
    pub ended: Option<(Timestamp, LifeEnd)>,
    /// How long its flavor let it live, hours; infinite for no limit.
    pub limit: f64,
}

/// Seconds of a flavor's maximum lifetime as hours; infinite for none.
#[must_use]
pub fn hours_of(limit: Option<Seconds>) -> f64 {
    limit.map_or(f64::INFINITY, |limit| f64::from(limit.0) / 3600.0)
}

impl From<&PastLife> for Life {
    fn from(life: &PastLife) -> Self {
        Self {
            project: life.project_id.clone(),
            launched: life.launched_at,
            ended: Some((life.ended_at, life.end)),
            limit: hours_of(life.max_lifetime),
        }
    }
}

/// What is known of one life at some moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Followed {
    /// When it began.
    pub launched: Timestamp,
    /// How long it has lived, and whether the provider has ended it.
    pub seen: Observation,
}

impl Life {
    /// What is known of it at `now` for a flavor whose servers live `maximum` hours at most; `None` if it had not begun.
    ///
    /// Whoever was ended because of that limit had its notice a grace period before: it lived as long as it could. An end by another limit
    /// says only that it lived so long.
    #[must_use]
    pub fn at(&self, now: Timestamp, maximum: f64) -> Option<Followed> {
        if self.launched > now {
            return None;
        }
        let over = self.ended.filter(|(at, _)| *at <= now);
        let until = over.map_or(now, |(at, _)| at);
        let hours = until.millis_since(self.launched) as f64 / HOUR_MS;
        // The same limit, but for the last bits of a division.
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
            // Who pays any price would have stayed: an end out of bid says as much as one by the owner.
            Some((
                _,
                LifeEnd::MaxLifetime | LifeEnd::OutOfBid | LifeEnd::Deleted | LifeEnd::Lost,
            ))
            | None => Observation {
                hours,
                ended: false,
            },
        };
        Some(Followed {
            launched: self.launched,
            seen,
        })
    }
}

impl Followed {
    /// What of this was known at an earlier moment; `None` if it had not begun.
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
