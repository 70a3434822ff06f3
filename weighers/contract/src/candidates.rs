//! What a cost module reads of each candidate.

use crate::DescriptionError;
use ebbtide_cost_api::VictimBatch;

/// Something that a cost module reads of each candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CandidateNeed {
    /// How long it has been running, in seconds.
    AgeSeconds,
    /// Its CPUs.
    Vcpus,
    /// Its memory in MiB.
    MemoryMb,
    /// The price of an hour of it, in the operator's currency unit.
    PricePerHour,
    /// Its flavor's priority; 0 goes first.
    Priority,
    /// A number that is the same for all candidates of one project, in this call.
    Project,
}

impl CandidateNeed {
    /// All of them, with their names.
    pub const ALL: [(&'static str, Self); 6] = [
        ("age_seconds", Self::AgeSeconds),
        ("vcpus", Self::Vcpus),
        ("memory_mb", Self::MemoryMb),
        ("price_per_hour", Self::PricePerHour),
        ("priority", Self::Priority),
        ("project", Self::Project),
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL
            .into_iter()
            .find(|(_, need)| *need == self)
            .map_or("", |(name, _)| name)
    }

    /// Reads a name.
    ///
    /// # Errors
    /// What names there are.
    pub fn read(name: &str) -> Result<Self, DescriptionError> {
        let found = Self::ALL.into_iter().find(|(known, _)| *known == name);
        found.map(|(_, need)| need).ok_or_else(|| {
            let known = Self::ALL.map(|(name, _)| name).join(", ");
            DescriptionError(format!(
                "it needs {name:?}, which this Ebbtide does not know; there are {known}"
            ))
        })
    }
}

/// The columns of a batch as numbers.
#[derive(Debug, Clone)]
pub struct CandidateColumns<'a> {
    victims: &'a VictimBatch<'a>,
    priority: Vec<f64>,
    project: Vec<f64>,
}

impl<'a> CandidateColumns<'a> {
    /// The columns of a batch.
    #[must_use]
    pub fn new(victims: &'a VictimBatch<'a>) -> Self {
        let priority = victims.priority.iter().map(|class| f64::from(*class));
        let project = victims.project.iter().map(|number| f64::from(*number));
        Self {
            victims,
            priority: priority.collect(),
            project: project.collect(),
        }
    }

    /// One column.
    #[must_use]
    pub fn of(&self, need: CandidateNeed) -> &[f64] {
        match need {
            CandidateNeed::AgeSeconds => self.victims.age_seconds,
            CandidateNeed::Vcpus => self.victims.vcpus,
            CandidateNeed::MemoryMb => self.victims.memory_mb,
            CandidateNeed::PricePerHour => self.victims.price_per_hour,
            CandidateNeed::Priority => &self.priority,
            CandidateNeed::Project => &self.project,
        }
    }
}
