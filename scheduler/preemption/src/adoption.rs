//! A record that comes from another scheduler, or from another life of this one.

use super::{Preemption, State};

/// How long a scheduler may be silent before its rows are adopted. A request's caller waits for
/// 60 s (`rpc_response_timeout`) without a heartbeat; most of that must be left for whoever goes on.
pub const SILENCE_MILLIS: i64 = 10_000;

/// Whose a row of the ledger is, for a scheduler that looks after rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Its own, in this life.
    Mine {
        /// A task of it has begun with the row.
        begun: bool,
    },
    /// That of another scheduler, or of another life of one.
    Of {
        /// The ledger knows that scheduler in this life, and in no later one.
        lives: bool,
        /// How long ago it said so last.
        silent_millis: i64,
    },
}

impl Standing {
    /// Whether nobody goes on with the row.
    #[must_use]
    pub fn is_orphan(self) -> bool {
        match self {
            // Its write was taken, and the answer never came.
            Self::Mine { begun } => !begun,
            Self::Of {
                lives,
                silent_millis,
            } => !lives || silent_millis > SILENCE_MILLIS,
        }
    }
}

/// What is to be done for a request whose record is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComesAgain {
    /// Its answer was decided, and goes out again: whether it reached the caller nobody knows.
    Answer,
    /// It came to nothing: as if there were no record.
    Nothing,
    /// Another scheduler has the message, too, and answers.
    LeaveIt,
    /// The record has to be driven where the message is.
    GoOn,
}

impl Preemption {
    /// What to do for the request that comes again to a scheduler of this name. `from_another`:
    /// whether the record is taken from a scheduler that has the message, too, because that one got
    /// it earlier.
    #[must_use]
    pub fn comes_again(&self, name: &str, from_another: bool) -> ComesAgain {
        match self.state {
            State::Refused | State::Withdrawn if self.answered => ComesAgain::Nothing,
            _ if self.answered => ComesAgain::Answer,
            _ if self.answerer.as_deref() == Some(name) || from_another => ComesAgain::GoOn,
            _ => ComesAgain::LeaveIt,
        }
    }

    /// It is driven by another scheduler from now on; with the name of the one that answers its
    /// caller, if that changes.
    pub fn adopted(&mut self, answerer: Option<&str>) {
        if self.state == State::Planned {
            // Whether its swap was sent nobody knows.
            self.in_doubt = true;
        }
        if let Some(answerer) = answerer {
            self.answerer = Some(answerer.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_row_of_one_that_lives_and_says_so_is_left_to_it() {
        let of = |lives, silent_millis| Standing::Of {
            lives,
            silent_millis,
        };
        assert!(!of(true, SILENCE_MILLIS).is_orphan());
        assert!(of(true, SILENCE_MILLIS + 1).is_orphan());
        assert!(of(false, 0).is_orphan(), "another life has begun");
        assert!(!Standing::Mine { begun: true }.is_orphan());
        assert!(Standing::Mine { begun: false }.is_orphan());
    }
}
