//! The names of what plugins read, and how that is handed over.

use crate::WasmError;
use ebbtide_weigher_api::{Column, Fact, FactColumn, HostBatch, WeigherError};
use std::fmt;

/// The name of the ages of each host's preemptible instances.
const PREEMPTIBLE_AGES: &str = "preemptible_age_seconds";

/// Something that a weigher reads of each host.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Need {
    Column(Column),
    Fact(Fact),
    PreemptibleAges,
}

/// A column on its way to a plugin.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Handed<'a> {
    Numbers(&'a [f64]),
    Texts {
        codes: &'a [u32],
        texts: &'a [&'a str],
    },
    Groups {
        offsets: &'a [u32],
        numbers: &'a [f64],
    },
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Column(column) => f.write_str(column.name()),
            Self::Fact(fact) => fact.fmt(f),
            Self::PreemptibleAges => f.write_str(PREEMPTIBLE_AGES),
        }
    }
}

impl Need {
    /// Reads a name.
    pub(crate) fn read(name: &str) -> Result<Self, WasmError> {
        if let Some(column) = Column::by_name(name) {
            return Ok(Self::Column(column));
        }
        if name == PREEMPTIBLE_AGES {
            return Ok(Self::PreemptibleAges);
        }
        name.parse().map(Self::Fact).map_err(|_| {
            let known: Vec<&str> = Column::ALL.iter().map(|column| column.name()).collect();
            WasmError::Description(format!(
                "it needs {name:?}, which this Ebbtide does not know; there are {}, {PREEMPTIBLE_AGES}, host_name, availability_zone, and \
                 trait:NAME, number:KEY, has:KEY, text:KEY",
                known.join(", ")
            ))
        })
    }

    /// Reads all names; none may come twice.
    pub(crate) fn read_all(names: &[String]) -> Result<Vec<Self>, WasmError> {
        let mut needs = Vec::with_capacity(names.len());
        for name in names {
            let need = Self::read(name)?;
            if needs.contains(&need) {
                let problem = format!("it needs {name:?} twice");
                return Err(WasmError::Description(problem));
            }
            needs.push(need);
        }
        Ok(needs)
    }
}

/// The texts of the facts that a weigher reads, borrowed once for the time of a call.
pub(crate) type Borrowed<'a> = Vec<Vec<&'a str>>;

/// Borrows the texts of a batch.
pub(crate) fn texts<'a>(
    needs: &[Need],
    hosts: &HostBatch<'a>,
) -> Result<Borrowed<'a>, WeigherError> {
    needs
        .iter()
        .map(|need| match need {
            Need::Fact(fact) => Ok(match hosts.fact(fact)? {
                FactColumn::Texts(texts) => texts.texts.iter().map(String::as_str).collect(),
                FactColumn::Numbers(_) => Vec::new(),
            }),
            Need::Column(_) | Need::PreemptibleAges => Ok(Vec::new()),
        })
        .collect()
}

/// What a weigher reads of a batch, in the order in which it asked.
pub(crate) fn hand_over<'a>(
    needs: &[Need],
    hosts: &HostBatch<'a>,
    texts: &'a Borrowed<'a>,
) -> Result<Vec<Handed<'a>>, WeigherError> {
    let each = needs.iter().zip(texts);
    each.map(|(need, texts)| {
        Ok(match need {
            Need::Column(column) => Handed::Numbers(hosts.column(*column)?),
            Need::Fact(fact) => match hosts.fact(fact)? {
                FactColumn::Numbers(numbers) => Handed::Numbers(numbers),
                FactColumn::Texts(column) => Handed::Texts {
                    codes: &column.codes,
                    texts,
                },
            },
            Need::PreemptibleAges => {
                let rows = hosts
                    .preemptibles
                    .ok_or(WeigherError::MissingPreemptibles)?;
                Handed::Groups {
                    offsets: rows.offsets,
                    numbers: rows.age_seconds,
                }
            }
        })
    })
    .collect()
}
