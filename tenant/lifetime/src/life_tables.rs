//! Models as the tables that a scheduler looks up when it decides.
//!
//! The scheduler's engine knows no formulas: [`ebbtide_model::LifeTable`] is the small piece
//! between it and the models. Here the times become seconds.

use crate::Lifetime;
use crate::description::entries;
use crate::error::LifetimeError;
use ebbtide_model::{LifeGroup, LifeTable, LifeTables};

/// Lines of a table. The ages stand closer the younger they are (by the cube of the line's number),
/// since a share that falls by a power of the age does so at its beginning.
const LINES: u32 = 512;
/// A model without a maximum is tabulated up to the age that one of a million outlives; beyond, the
/// hazard stays.
const OUTLIVED: f64 = 1e-6;
/// More groups than this are a mistake in `--by`, and would take more than 12 MiB.
const MOST_GROUPS: usize = 1000;

const SECONDS: f64 = 3600.0;
const FLAVOR: &str = "flavor";
const ZONE: &str = "zone";

fn refuse<T>(problem: String) -> Result<T, LifetimeError> {
    Err(LifetimeError::Description { problem })
}

/// One model as a table.
///
/// # Errors
/// [`LifetimeError::Description`] if no instance outlives age 0, or if the expected remaining life
/// is infinite.
pub fn table(model: &dyn Lifetime) -> Result<LifeTable, LifetimeError> {
    let maximum = model.maximum();
    let end = match maximum.is_finite() {
        true => maximum,
        false => model.quantile(1.0 - OUTLIVED),
    };
    let tail = match maximum.is_finite() {
        true => 0.0,
        false => model.mean_residual(end) * SECONDS,
    };
    let mut points: Vec<(f64, f64)> = Vec::with_capacity(LINES as usize + 1);
    let mut alive = 1.0_f64;
    for line in 0..=LINES {
        let share = f64::from(line) / f64::from(LINES);
        let age = match line == LINES {
            true => end,
            false => end * share * share * share,
        };
        // Who lives until the maximum is alive shortly before it: the atom is not in this share.
        alive = alive.min(1.0 - model.continuous_cdf(age)).max(0.0);
        points.push((age * SECONDS, alive));
    }
    match LifeTable::new(&points, tail) {
        Some(table) => Ok(table),
        None => refuse(format!(
            "by the {} model every life is zero, or some are infinite; a scheduler can use neither",
            model.name()
        )),
    }
}

/// All models of a file as `ebbtide-lab model fit -o json` writes it: that of everybody, and those
/// of flavors, zones, or flavors in zones. Groups that could not be fitted go by the model of
/// everybody.
///
/// # Errors
/// [`LifetimeError::Description`] if the file is none of ours, if it has no model for everybody, or
/// if its groups are by something else than flavor and zone; and what a model's own constructor
/// refuses.
pub fn tables(json: &str) -> Result<LifeTables, LifetimeError> {
    let mut all = None;
    let mut groups: Vec<(LifeGroup, LifeTable)> = Vec::new();
    for entry in entries(json)? {
        let model = entry.description.model()?;
        let table = table(model.as_ref())?;
        let mut labels = entry.labels;
        let group = LifeGroup {
            flavor: labels.remove(FLAVOR),
            zone: labels.remove(ZONE),
        };
        if let Some(other) = labels.keys().next() {
            return refuse(format!(
                "the group {} is by {other}; what a scheduler knows of an instance is its flavor and its zone: fit with --by flavor, --by zone or --by flavor,zone",
                entry.group
            ));
        }
        let is_all = group == LifeGroup::default();
        let twice = (is_all && all.is_some()) || groups.iter().any(|(known, _)| *known == group);
        if twice {
            return refuse(format!("the group {} is there twice", entry.group));
        }
        match is_all {
            true => all = Some(table),
            false => groups.push((group, table)),
        }
        if groups.len() > MOST_GROUPS {
            return refuse(format!("there are more than {MOST_GROUPS} groups"));
        }
    }
    match all {
        Some(all) => Ok(LifeTables::new(all, groups)),
        None => refuse(
            "there is no model for everybody (the group all), which is for instances of flavors and zones that have none"
                .to_owned(),
        ),
    }
}
