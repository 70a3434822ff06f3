//! Observations with what is known of the instance, and groups of them.

use crate::error::LifetimeError;
use crate::observation::{Observation, problem_of};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use time::OffsetDateTime;

/// The label that is the hour of the launch, 00 to 23, where observations have no column of that
/// name.
const HOUR: &str = "hour";

/// The group of all observations.
pub const ALL: &str = "all";

/// One instance that is gone, and what is known of it.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelledLife {
    /// How long it lived, and who ended it.
    pub observation: Observation,
    /// Launch time, in the time zone of its source.
    pub launched: Option<OffsetDateTime>,
    /// What else is known: `flavor`, `zone`, …
    pub labels: BTreeMap<String, String>,
    /// Line in its file, counted from 1, for messages.
    pub line: u64,
}

impl LabelledLife {
    /// The value of a label. `hour` is the hour of the launch where there is no label of that name.
    #[must_use]
    pub fn label(&self, name: &str) -> Option<String> {
        match (self.labels.get(name), self.launched) {
            (Some(value), _) => Some(value.clone()),
            (None, Some(at)) if name == HOUR => Some(format!("{:02}", at.hour())),
            _ => None,
        }
    }
}

/// Observations that agree in some labels.
#[derive(Debug, Clone, PartialEq)]
pub struct Group<'a> {
    /// `flavor=m1.small,zone=nova`, or [`ALL`].
    pub name: String,
    /// The labels that make it, in the order asked for.
    pub labels: Vec<(String, String)>,
    /// Its members, in their order.
    pub members: Vec<&'a LabelledLife>,
}

/// All observations as one group, then a group for each combination of the labels `by`, names with
/// numbers in the order of the numbers.
///
/// # Errors
/// [`LifetimeError::Columns`] for a label that some observation lacks; the message names those that
/// all have.
pub fn groups<'a>(
    rows: &'a [LabelledLife],
    by: &[String],
) -> Result<Vec<Group<'a>>, LifetimeError> {
    let mut found = vec![Group {
        name: ALL.to_owned(),
        labels: Vec::new(),
        members: rows.iter().collect(),
    }];
    if by.is_empty() {
        return Ok(found);
    }
    let mut parts: BTreeMap<Vec<String>, Vec<&LabelledLife>> = BTreeMap::new();
    for row in rows {
        let mut key = Vec::with_capacity(by.len());
        for name in by {
            key.push(row.label(name).ok_or_else(|| missing(rows, row, name))?);
        }
        parts.entry(key).or_default().push(row);
    }
    let mut parts: Vec<_> = parts.into_iter().collect();
    parts.sort_by(|a, b| {
        let each = a.0.iter().zip(&b.0);
        each.map(|(a, b)| natural(a, b))
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    });
    found.extend(parts.into_iter().map(|(key, members)| {
        let labels: Vec<(String, String)> = by.iter().cloned().zip(key).collect();
        Group {
            name: name_of(&labels),
            labels,
            members,
        }
    }));
    Ok(found)
}

/// The name of the group with these labels.
#[must_use]
pub fn name_of(labels: &[(String, String)]) -> String {
    if labels.is_empty() {
        return ALL.to_owned();
    }
    let parts: Vec<String> = labels.iter().map(|(k, v)| format!("{k}={v}")).collect();
    parts.join(",")
}

/// Refuses lifetimes that cannot be; `maximum` in hours, infinite for none.
///
/// # Errors
/// [`LifetimeError::Observation`] with the line.
pub fn check(rows: &[LabelledLife], maximum: f64) -> Result<(), LifetimeError> {
    for (number, row) in rows.iter().enumerate() {
        if let Some(problem) = problem_of(row.observation, maximum) {
            return Err(LifetimeError::Observation {
                number: number + 1,
                hours: row.observation.hours,
                problem: format!("{problem} (line {})", row.line),
            });
        }
    }
    Ok(())
}

fn missing(rows: &[LabelledLife], row: &LabelledLife, name: &str) -> LifetimeError {
    let mut all: Vec<&str> = row
        .labels
        .keys()
        .map(String::as_str)
        .filter(|key| rows.iter().all(|row| row.labels.contains_key(*key)))
        .collect();
    if rows.iter().all(|row| row.launched.is_some()) && !all.contains(&HOUR) {
        all.push(HOUR);
    }
    LifetimeError::Columns {
        problem: if all.is_empty() {
            format!(
                "line {} has no {name}, nor anything else to group by",
                row.line
            )
        } else {
            format!(
                "line {} has no {name}; there are {}",
                row.line,
                all.join(", ")
            )
        },
    }
}

/// `n1-highcpu-2` before `n1-highcpu-16`: runs of digits are compared as numbers.
fn natural(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a, b);
    loop {
        let (x, y) = (number(a), number(b));
        if !x.is_empty() && !y.is_empty() {
            let (short, long) = (x.trim_start_matches('0'), y.trim_start_matches('0'));
            let order = short.len().cmp(&long.len()).then_with(|| short.cmp(long));
            if order.is_ne() {
                return order;
            }
            (a, b) = (&a[x.len()..], &b[y.len()..]);
            continue;
        }
        match (a.chars().next(), b.chars().next()) {
            (None, None) => return Ordering::Equal,
            (None, _) => return Ordering::Less,
            (_, None) => return Ordering::Greater,
            (Some(x), Some(y)) if x == y => (a, b) = (&a[x.len_utf8()..], &b[y.len_utf8()..]),
            (Some(x), Some(y)) => return x.cmp(&y),
        }
    }
}

fn number(text: &str) -> &str {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    &text[..end]
}
