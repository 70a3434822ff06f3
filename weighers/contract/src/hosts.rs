//! What a weigher reads of each host: names, and how it is handed over.

use crate::DescriptionError;
use ebbtide_weigher_api::{Column, Fact, FactColumn, HostBatch, WeigherError};
use std::fmt;

/// The name of the ages of each host's preemptible instances.
const PREEMPTIBLE_AGES: &str = "preemptible_age_seconds";

/// Something that a weigher reads of each host.
#[derive(Debug, Clone, PartialEq)]
pub enum HostNeed {
    /// A number that every scheduler has.
    Column(Column),
    /// What operators say of their hosts.
    Fact(Fact),
    /// The age of each preemptible instance.
    PreemptibleAges,
}

/// A column on its way to a plugin.
#[derive(Debug, Clone, Copy)]
pub enum PluginColumn<'a> {
    /// One number a row.
    Numbers(&'a [f64]),
    /// One text a row, each different one once.
    Texts {
        /// Which text each row has.
        codes: &'a [u32],
        /// The texts.
        texts: &'a [&'a str],
    },
    /// Any number of numbers a row: those of row i are at `offsets[i]..offsets[i + 1]`.
    Groups {
        /// One more than there are rows.
        offsets: &'a [u32],
        /// The numbers of all rows.
        numbers: &'a [f64],
    },
}

impl fmt::Display for HostNeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Column(column) => f.write_str(column.name()),
            Self::Fact(fact) => fact.fmt(f),
            Self::PreemptibleAges => f.write_str(PREEMPTIBLE_AGES),
        }
    }
}

impl HostNeed {
    /// Reads a name.
    ///
    /// # Errors
    /// What names there are.
    pub fn read(name: &str) -> Result<Self, DescriptionError> {
        if let Some(column) = Column::by_name(name) {
            return Ok(Self::Column(column));
        }
        if name == PREEMPTIBLE_AGES {
            return Ok(Self::PreemptibleAges);
        }
        name.parse().map(Self::Fact).map_err(|_| {
            let known: Vec<&str> = Column::ALL.iter().map(|column| column.name()).collect();
            DescriptionError(format!(
                "it needs {name:?}, which this Ebbtide does not know; there are {}, {PREEMPTIBLE_AGES}, host_name, availability_zone, \
                 aggregates, and trait:NAME, number:KEY, has:KEY, text:KEY, total:CLASS, used:CLASS, allocation_ratio:CLASS",
                known.join(", ")
            ))
        })
    }

    /// Reads all names; none may come twice.
    ///
    /// # Errors
    /// The first that is unknown or comes twice.
    pub fn read_all(names: &[String]) -> Result<Vec<Self>, DescriptionError> {
        let mut needs = Vec::with_capacity(names.len());
        for name in names {
            let need = Self::read(name)?;
            if needs.contains(&need) {
                let problem = format!("it needs {name:?} twice");
                return Err(DescriptionError(problem));
            }
            needs.push(need);
        }
        Ok(needs)
    }
}

/// The texts of the facts that a weigher reads, borrowed once for the time of a call.
pub type BorrowedTexts<'a> = Vec<Vec<&'a str>>;

/// Borrows the texts of a batch.
///
/// # Errors
/// [`WeigherError::MissingFact`] if the batch was made for another weigher.
pub fn texts<'a>(
    needs: &[HostNeed],
    hosts: &HostBatch<'a>,
) -> Result<BorrowedTexts<'a>, WeigherError> {
    needs
        .iter()
        .map(|need| match need {
            HostNeed::Fact(fact) => Ok(match hosts.fact(fact)? {
                FactColumn::Texts(texts) => texts.texts.iter().map(String::as_str).collect(),
                FactColumn::Numbers(_) => Vec::new(),
            }),
            HostNeed::Column(_) | HostNeed::PreemptibleAges => Ok(Vec::new()),
        })
        .collect()
}

/// What a weigher reads of a batch, in the order in which it asked.
///
/// # Errors
/// What is missing if the batch was made for another weigher.
pub fn plugin_columns<'a>(
    needs: &[HostNeed],
    hosts: &HostBatch<'a>,
    texts: &'a BorrowedTexts<'a>,
) -> Result<Vec<PluginColumn<'a>>, WeigherError> {
    let each = needs.iter().zip(texts);
    each.map(|(need, texts)| {
        Ok(match need {
            HostNeed::Column(column) => PluginColumn::Numbers(hosts.column(*column)?),
            HostNeed::Fact(fact) => match hosts.fact(fact)? {
                FactColumn::Numbers(numbers) => PluginColumn::Numbers(numbers),
                FactColumn::Texts(column) => PluginColumn::Texts {
                    codes: &column.codes,
                    texts,
                },
            },
            HostNeed::PreemptibleAges => {
                let rows = hosts
                    .preemptibles
                    .ok_or(WeigherError::MissingPreemptibles)?;
                PluginColumn::Groups {
                    offsets: rows.offsets,
                    numbers: rows.age_seconds,
                }
            }
        })
    })
    .collect()
}
