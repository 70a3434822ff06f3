//! The contract of filters that are plugins.
//!
//! A filter says which hosts may take a request at all. It reads the same request and the same
//! columns as a [`Weigher`](crate::Weigher) and answers for each host: it passes, or it is refused
//! for a reason.
//!
//! # What a filter may rely on
//! - Columns are those of the state on which the request is filtered: the normal state h_n, in
//!   which preemptible instances have left, for a request that may have victims; else the full
//!   state h_f.
//! - The columns of victims ([`Column::PreemptionNeeded`], [`Column::EvictionCost`],
//!   [`Column::EvictionVictims`]) are not there: victims are selected behind the filters.
//! - A batch has at least one host, and hosts keep their index during one call.
//!
//! # What a filter must not do
//! Keep state between calls, read a clock, do I/O, use random numbers: same input, same answer. A
//! call that fails is handled by the operator's policy: every host passes, or none does.

use crate::{Column, Fact, HostBatch, RequestView, WeigherError};
use thiserror::Error;

/// Which hosts pass, and why the others do not.
///
/// Invariant: each code is 0 or the number of a reason, counted from 1.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FilterVerdicts {
    codes: Vec<u32>,
    reasons: Vec<String>,
}

impl FilterVerdicts {
    /// Every one of so many hosts passes.
    #[must_use]
    pub fn pass(hosts: usize) -> Self {
        Self {
            codes: vec![0; hosts],
            reasons: Vec::new(),
        }
    }

    /// An answer as carriers transport it: for each host 0 if it passes, else the number of its
    /// reason, counted from 1.
    ///
    /// # Errors
    /// [`FilterError::WrongNumber`], [`FilterError::UnknownReason`].
    pub fn from_codes(
        codes: Vec<u32>,
        reasons: Vec<String>,
        hosts: usize,
    ) -> Result<Self, FilterError> {
        let verdicts = Self { codes, reasons };
        verdicts.check(hosts)?;
        let known = |code: u32| code as usize <= verdicts.reasons.len();
        match verdicts.codes.iter().position(|code| !known(*code)) {
            None => Ok(verdicts),
            Some(index) => Err(FilterError::UnknownReason {
                index,
                code: verdicts.codes[index],
                reasons: verdicts.reasons.len(),
            }),
        }
    }

    /// Refuses a host. A host that does not exist is left alone.
    pub fn refuse(&mut self, host: usize, reason: &str) {
        let known = self.reasons.iter().position(|known| known == reason);
        let place = known.unwrap_or_else(|| {
            self.reasons.push(reason.to_owned());
            self.reasons.len() - 1
        });
        if let Some(code) = self.codes.get_mut(host) {
            *code = u32::try_from(place + 1).unwrap_or(u32::MAX);
        }
    }

    /// True if a host passes.
    #[must_use]
    pub fn passes(&self, host: usize) -> bool {
        self.codes.get(host) == Some(&0)
    }

    /// Why a host is refused; `None` if it passes.
    #[must_use]
    pub fn reason(&self, host: usize) -> Option<&str> {
        let place = usize::try_from(*self.codes.get(host)?)
            .ok()?
            .checked_sub(1)?;
        self.reasons.get(place).map(String::as_str)
    }

    /// How many hosts are refused.
    #[must_use]
    pub fn refused(&self) -> usize {
        self.codes.iter().filter(|code| **code != 0).count()
    }

    /// The code of each host and the reasons, as [`Self::from_codes`] takes them.
    #[must_use]
    pub fn codes(&self) -> (&[u32], &[String]) {
        (&self.codes, &self.reasons)
    }

    /// Checks that there is an answer for each of so many hosts.
    ///
    /// # Errors
    /// [`FilterError::WrongNumber`].
    pub fn check(&self, hosts: usize) -> Result<(), FilterError> {
        match self.codes.len() == hosts {
            true => Ok(()),
            false => Err(FilterError::WrongNumber {
                answers: self.codes.len(),
                hosts,
            }),
        }
    }
}

/// Why a filter gives no answer.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum FilterError {
    /// It reads something that it has not declared.
    #[error(transparent)]
    Batch(#[from] WeigherError),
    /// Its answer is for another number of hosts.
    #[error("gave {answers} answers for {hosts} hosts")]
    WrongNumber {
        /// How many answers it gave.
        answers: usize,
        /// How many hosts it was asked about.
        hosts: usize,
    },
    /// It refuses a host for a reason that it does not give.
    #[error("refuses host number {index} for reason {code}, and gave {reasons} reasons")]
    UnknownReason {
        /// Which host of the batch.
        index: usize,
        /// The code of its answer.
        code: u32,
        /// How many reasons it gave.
        reasons: usize,
    },
    /// Anything else, in its own words.
    #[error("{0}")]
    Other(String),
}

/// What follows when a filter fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterFailure {
    /// Every host passes.
    Pass,
    /// No host passes.
    Refuse,
}

impl FilterFailure {
    /// The failure in words, with its stable code.
    #[must_use]
    pub fn text(self, filter: &str, problem: &str) -> String {
        let what = match self {
            Self::Pass => "was ignored, every host passes",
            Self::Refuse => "refuses every host",
        };
        format!("EB-ENGINE-008: filter {filter} {what}: it failed: {problem}")
    }
}

/// A filter. See the module's text for the contract.
pub trait HostFilter: Send + Sync {
    /// Its name in configuration and explanations, for example `licences`.
    fn name(&self) -> &str;

    /// Which columns it reads.
    fn needs(&self) -> &[Column];

    /// Which facts it reads.
    fn facts(&self) -> &[Fact] {
        &[]
    }

    /// True if it reads the preemptible instances one by one.
    fn needs_preemptibles(&self) -> bool {
        false
    }

    /// Says which hosts pass.
    ///
    /// # Errors
    /// Whatever keeps it from answering.
    fn filter(
        &self,
        request: &RequestView<'_>,
        hosts: &HostBatch<'_>,
    ) -> Result<FilterVerdicts, FilterError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_for_half_of_the_hosts_or_without_its_reason_is_none() {
        let reasons = || vec!["too loud".to_owned()];
        let half = FilterVerdicts::from_codes(vec![0, 1], reasons(), 4).unwrap_err();
        assert_eq!(half.to_string(), "gave 2 answers for 4 hosts");
        let unknown = FilterVerdicts::from_codes(vec![0, 2], reasons(), 2).unwrap_err();
        assert_eq!(
            unknown.to_string(),
            "refuses host number 1 for reason 2, and gave 1 reasons"
        );
        let good = FilterVerdicts::from_codes(vec![0, 1], reasons(), 2).unwrap();
        assert_eq!((good.passes(0), good.reason(0)), (true, None));
        assert_eq!((good.passes(1), good.reason(1)), (false, Some("too loud")));
        assert_eq!(good.refused(), 1);
    }

    #[test]
    fn hosts_that_are_refused_for_the_same_reason_share_its_text() {
        let mut verdicts = FilterVerdicts::pass(3);
        verdicts.refuse(0, "full");
        verdicts.refuse(2, "full");
        verdicts.refuse(7, "nowhere");
        assert_eq!(verdicts.codes().0, [1, 0, 1]);
        assert_eq!(verdicts.reason(2), Some("full"));
        assert!(!verdicts.passes(7));
    }
}
