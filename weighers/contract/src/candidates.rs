//! What a cost module reads of each candidate.

use crate::{DescriptionError, PluginColumn};
use ebbtide_cost_api::{CostError, VictimBatch};
use ebbtide_model::facts::{Fact, FactColumn, FactError};

/// Something that a cost module reads of each candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CandidateNeed {
    /// How long it has been running, in seconds.
    AgeSeconds,
    /// Its CPUs.
    Vcpus,
    /// Its memory in MiB.
    MemoryMb,
    /// The price of an hour of it, in the operator's currency unit.
    PricePerHour,
    /// The most that its owner pays for an hour, in the same unit.
    MaxPrice,
    /// Its flavor's priority; 0 goes first.
    Priority,
    /// A number that is the same for all candidates of one project, in this call.
    Project,
    /// `host:FACT`: a fact about its host.
    Host(Fact),
}

/// What stands before the name of a fact about a candidate's host.
const HOST: &str = "host:";

impl CandidateNeed {
    /// Those that are known of the candidate itself, with their names.
    pub const OWN: [(&'static str, Self); 7] = [
        ("age_seconds", Self::AgeSeconds),
        ("vcpus", Self::Vcpus),
        ("memory_mb", Self::MemoryMb),
        ("price_per_hour", Self::PricePerHour),
        ("max_price", Self::MaxPrice),
        ("priority", Self::Priority),
        ("project", Self::Project),
    ];

    /// Its name.
    #[must_use]
    pub fn name(&self) -> String {
        if let Self::Host(fact) = self {
            return format!("{HOST}{fact}");
        }
        let own = Self::OWN.iter().find(|(_, need)| need == self);
        own.map_or_else(String::new, |(name, _)| (*name).to_owned())
    }

    /// Reads a name.
    ///
    /// # Errors
    /// What names there are.
    pub fn read(name: &str) -> Result<Self, DescriptionError> {
        if let Some(fact) = name.strip_prefix(HOST) {
            let fact: Result<Fact, FactError> = fact.parse();
            return fact
                .map(Self::Host)
                .map_err(|error| DescriptionError(format!("it needs {name:?}: {error}")));
        }
        let found = Self::OWN.into_iter().find(|(known, _)| *known == name);
        found.map(|(_, need)| need).ok_or_else(|| {
            let known = Self::OWN.map(|(name, _)| name).join(", ");
            DescriptionError(format!(
                "it needs {name:?}, which this Ebbtide does not know; there are {known}, and {HOST} before what weighers read by name, \
                 for example {HOST}number:power_price"
            ))
        })
    }
}

/// The columns of a batch, in the form in which plugins get them.
#[derive(Debug, Clone)]
pub struct CandidateColumns<'a> {
    victims: &'a VictimBatch<'a>,
    priority: Vec<f64>,
    project: Vec<f64>,
    /// The texts of each fact, borrowed for the time of a call.
    texts: Vec<Vec<&'a str>>,
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
            texts: victims
                .facts
                .iter()
                .map(|(_, column)| texts(column))
                .collect(),
        }
    }

    /// One column.
    ///
    /// # Errors
    /// [`CostError::MissingFact`] if the batch was made for another module.
    pub fn of(&self, need: &CandidateNeed) -> Result<PluginColumn<'_>, CostError> {
        Ok(PluginColumn::Numbers(match need {
            CandidateNeed::AgeSeconds => self.victims.age_seconds,
            CandidateNeed::Vcpus => self.victims.vcpus,
            CandidateNeed::MemoryMb => self.victims.memory_mb,
            CandidateNeed::PricePerHour => self.victims.price_per_hour,
            CandidateNeed::MaxPrice => self.victims.max_price,
            CandidateNeed::Priority => &self.priority,
            CandidateNeed::Project => &self.project,
            CandidateNeed::Host(fact) => {
                let mut known = self.victims.facts.iter().zip(&self.texts);
                let found = known.find(|((known, _), _)| known == fact);
                let ((_, column), texts) =
                    found.ok_or_else(|| CostError::MissingFact(fact.clone()))?;
                match column {
                    FactColumn::Numbers(numbers) => numbers,
                    FactColumn::Texts(column) => {
                        return Ok(PluginColumn::Texts {
                            codes: &column.codes,
                            texts,
                        });
                    }
                }
            }
        }))
    }
}

fn texts(column: &FactColumn) -> Vec<&str> {
    match column {
        FactColumn::Texts(texts) => texts.texts.iter().map(String::as_str).collect(),
        FactColumn::Numbers(_) => Vec::new(),
    }
}
