//! What checkpoints cost, and how the papers are read where they leave something open.

use crate::bill::HOUR_SECONDS;
use crate::error::CheckpointingError;
use crate::paid_hours::PaidHours;
use ebbtide_model::Money;

/// How ACC is read where the price rises between its two decision points, so that no checkpoint was
/// taken at the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AccReading {
    /// An instance is ended only if nothing of its work is lost by it: the paper says "if the price
    /// is *still* above". The default.
    #[default]
    Strict,
    /// It is ended whenever the price is above at the second point; the work since the last
    /// checkpoint is lost.
    Naive,
}

/// Which prices ADAPT has learned its failure density from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AdaptKnowledge {
    /// Those before the launch of each instance: what a tenant really knows. The default.
    #[default]
    Past,
    /// Those of the whole history, the future among them, as studies on recorded prices do.
    Whole,
}

/// How ADAPT decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Adapt {
    /// Seconds between two decisions, at least 60. The ACC paper does not say; 3600 by default,
    /// which does best on the public archive.
    pub every_seconds: i64,
    /// What it knows.
    pub knowledge: AdaptKnowledge,
}

impl Default for Adapt {
    fn default() -> Self {
        Self {
            every_seconds: 3600,
            knowledge: AdaptKnowledge::Past,
        }
    }
}

/// What checkpoints cost and how schemes are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointTerms {
    /// t_c, seconds that a checkpoint takes; the job stands still meanwhile. Not in the paper; 300
    /// reproduces its figures.
    pub checkpoint_seconds: i64,
    /// Seconds from the launch of an instance until a job goes on that has run before. The first
    /// launch has none.
    pub restart_seconds: i64,
    /// t_w, seconds: ACC decides so much before the hour ends. In the paper it is the time to get
    /// the current price; whatever else passes from the decision to the instance's end counts too.
    pub terminate_seconds: i64,
    /// S_bid, what ACC bids; the provider ends its instance above that. `None`: so much that it
    /// never happens, as the paper assumes. Where it is below A_bid, that is bid.
    pub ceiling: Option<Money>,
    pub reading: AccReading,
    /// How ADAPT decides.
    pub adapt: Adapt,
}

impl Default for CheckpointTerms {
    fn default() -> Self {
        Self {
            checkpoint_seconds: 300,
            restart_seconds: 300,
            terminate_seconds: 0,
            ceiling: None,
            reading: AccReading::Strict,
            adapt: Adapt::default(),
        }
    }
}

impl CheckpointTerms {
    /// The same terms if they can be kept.
    ///
    /// # Errors
    /// [`CheckpointingError::Question`] for spans below zero, and for checkpoints for which an
    /// instance-hour has no room.
    pub fn checked(self) -> Result<Self, CheckpointingError> {
        let spans = [
            ("the checkpoint time", self.checkpoint_seconds),
            ("the restart time", self.restart_seconds),
            ("the time to terminate", self.terminate_seconds),
        ];
        for (what, seconds) in spans {
            if !(0..=30 * 86_400).contains(&seconds) {
                return Err(question(what, seconds, "from 0 s to 30 days"));
            }
        }
        if self.checkpoint_seconds + self.terminate_seconds >= HOUR_SECONDS {
            let sum = self.checkpoint_seconds + self.terminate_seconds;
            let allowed = "below an hour, since schemes decide before the end of each hour";
            return Err(question("checkpoint and terminate time", sum, allowed));
        }
        if !(60..=30 * 86_400).contains(&self.adapt.every_seconds) {
            let every = self.adapt.every_seconds;
            return Err(question(
                "the time between ADAPT's decisions",
                every,
                "from a minute to 30 days",
            ));
        }
        Ok(self)
    }

    /// t_cd and t_td of an instance's hour (the first is hour 1): when ACC decides on a checkpoint,
    /// and when on the instance's end.
    #[must_use]
    pub fn decision_points(&self, launch: i64, hour: i64) -> (i64, i64) {
        let hours = PaidHours {
            length: HOUR_SECONDS,
            checkpoint: self.checkpoint_seconds,
            terminate: self.terminate_seconds,
        };
        hours.points(launch, hour)
    }
}

/// Refuses a job of no length, or of one that no history covers.
pub(crate) fn checked_work(work_seconds: i64) -> Result<(), CheckpointingError> {
    if (1..=10 * 366 * 86_400).contains(&work_seconds) {
        return Ok(());
    }
    Err(question("the job", work_seconds, "from 1 s to ten years"))
}

pub(crate) fn question(what: &'static str, seconds: i64, allowed: &str) -> CheckpointingError {
    CheckpointingError::Question {
        what,
        value: format!("{seconds} s"),
        allowed: allowed.to_owned(),
    }
}
