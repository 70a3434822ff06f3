//! One setting varied, the others as they are.

use super::{ElasticArgs, Terms, number};
use ebbtide_elastic::{Elastic, ElasticPolicy, Recovery};
use ebbtide_lifetime::Lifetime;
use ebbtide_lifetime::distributions::Bathtub;
use ebbtide_shell::errors::CliError;
use std::str::FromStr;
use std::sync::Arc;

/// Which setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Knob {
    /// The long-load ratio above which servers are added.
    Threshold,
    /// p.
    Share,
    /// r.
    Ratio,
    /// Seconds from the request until a server takes tasks.
    Provisioning,
    /// Seconds in which at most one server is released.
    Release,
    /// How many times as often servers are interrupted as the model says.
    Interruptions,
    /// How many times a day all servers are taken at once.
    Outages,
}

impl Knob {
    const ALL: [Self; 7] = [
        Self::Threshold,
        Self::Share,
        Self::Ratio,
        Self::Provisioning,
        Self::Release,
        Self::Interruptions,
        Self::Outages,
    ];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Threshold => "threshold",
            Self::Share => "share",
            Self::Ratio => "ratio",
            Self::Provisioning => "provisioning",
            Self::Release => "release",
            Self::Interruptions => "interruptions",
            Self::Outages => "outages",
        }
    }

    /// For the axis of a chart.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Threshold => "threshold of the long-load ratio",
            Self::Share => "share p of the servers given up",
            Self::Ratio => "price ratio r",
            Self::Provisioning => "provisioning delay [s]",
            Self::Release => "at most one release in [s]",
            Self::Interruptions => "interruptions, times those of the model",
            Self::Outages => "all servers taken at once, times a day",
        }
    }

    /// Values that show where it pays and where it does not.
    fn usual(self) -> &'static [f64] {
        match self {
            Self::Threshold => &[0.7, 0.8, 0.9, 0.93, 0.95, 0.96, 0.97, 0.98, 0.99, 1.0],
            Self::Share => &[0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0],
            Self::Ratio => &[1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0],
            Self::Provisioning => &[1.0, 30.0, 120.0, 300.0, 600.0, 1_800.0, 3_600.0, 7_200.0],
            Self::Release => &[0.0, 10.0, 60.0, 120.0, 600.0],
            Self::Interruptions => &[0.0, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1_000.0],
            Self::Outages => &[0.0, 1.0, 6.0, 24.0, 96.0, 288.0],
        }
    }
}

/// What `--sweep` asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Sweep {
    knobs: Vec<Knob>,
    values: Vec<f64>,
}

impl FromStr for Sweep {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, values) = text
            .split_once('=')
            .map_or((text, None), |(n, v)| (n, Some(v)));
        if name == "all" {
            return match values {
                Some(_) => Err("all has the values of its own of every setting".to_owned()),
                None => Ok(Self {
                    knobs: Knob::ALL.to_vec(),
                    values: Vec::new(),
                }),
            };
        }
        let known = Knob::ALL.into_iter().find(|knob| knob.as_str() == name);
        let Some(knob) = known else {
            let names: Vec<&str> = Knob::ALL.into_iter().map(Knob::as_str).collect();
            return Err(format!("{name:?} is none of {} and all", names.join(", ")));
        };
        let values = values.map_or(Ok(Vec::new()), |values| {
            values.split(',').map(number).collect()
        })?;
        if values.iter().any(|value| *value < 0.0) {
            return Err(format!("{name} is not below zero"));
        }
        Ok(Self {
            knobs: vec![knob],
            values,
        })
    }
}

/// One elastic partition to play.
#[derive(Debug, Clone)]
pub(super) struct SweepPoint {
    /// Which setting has which value; none for the partition that was asked for.
    pub(super) swept: Option<(Knob, f64)>,
    pub(super) elastic: Elastic,
    /// What becomes of tasks whose server is taken.
    pub(super) recovery: Recovery,
}

/// Everything that is to be played: each r, then the sweeps, with each recovery.
pub(super) fn plan(args: &ElasticArgs, terms: &Terms) -> Result<Vec<SweepPoint>, CliError> {
    let each = |swept: Option<(Knob, f64)>, elastic: &Elastic| -> Vec<SweepPoint> {
        let recoveries = terms.recoveries.iter();
        let point = recoveries.map(|recovery| SweepPoint {
            swept,
            elastic: elastic.clone(),
            recovery: *recovery,
        });
        point.collect()
    };
    let asked = terms.partitions.iter();
    let mut points: Vec<SweepPoint> = asked.flat_map(|elastic| each(None, elastic)).collect();
    let Some(base) = terms.partitions.last() else {
        return Ok(points);
    };
    for sweep in &args.sweep {
        for knob in &sweep.knobs {
            let values = if sweep.values.is_empty() {
                knob.usual()
            } else {
                &sweep.values
            };
            for value in values {
                points.extend(each(Some((*knob, *value)), &varied(base, *knob, *value)?));
            }
        }
    }
    Ok(points)
}

fn varied(base: &Elastic, knob: Knob, value: f64) -> Result<Elastic, CliError> {
    let mut elastic = base.clone();
    let policy = &base.policy;
    // What is too long is refused by name.
    let seconds = (value * 1e6).round() as u64;
    let with = |ratio: f64, share: f64| -> Result<ElasticPolicy, CliError> {
        Ok(ElasticPolicy::new(policy.short_only(), ratio, share)?
            .threshold(policy.threshold_ratio())?
            .release_interval(policy.release_interval_us())?)
    };
    match knob {
        Knob::Threshold => elastic.policy = policy.threshold(value)?,
        Knob::Share => elastic.policy = with(policy.ratio(), value)?,
        Knob::Ratio => elastic.policy = with(value, policy.share())?,
        Knob::Provisioning => elastic.provisioning_us = seconds,
        Knob::Release => elastic.policy = policy.release_interval(seconds)?,
        Knob::Outages if value == 0.0 => elastic.outage_us = 0,
        Knob::Outages => elastic.outage_us = (86_400e6 / value).round() as u64,
        Knob::Interruptions if value == 0.0 => elastic.lifetime = None,
        Knob::Interruptions => {
            elastic.life_scale = 1.0 / value;
            if elastic.lifetime.is_none() {
                elastic.lifetime = Some(bathtub()?);
            }
        }
    }
    Ok(elastic)
}

/// The bathtub model fitted to the 717 preemptions of its paper (docs/tenants/lifetimes.md), where
/// no other is given.
fn bathtub() -> Result<Arc<dyn Lifetime>, CliError> {
    Ok(Arc::new(Bathtub::new(0.414, 0.94, 0.77, 24.45, 24.0)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_is_a_name_and_perhaps_values() {
        let sweep: Sweep = "share=0.25,0.5".parse().unwrap();
        assert_eq!(
            (sweep.knobs, sweep.values),
            (vec![Knob::Share], vec![0.25, 0.5])
        );
        let all: Sweep = "all".parse().unwrap();
        assert_eq!(all.knobs.len(), 7);
        for wrong in [
            "",
            "speed",
            "all=1",
            "share=",
            "share=x",
            "share=NaN",
            "ratio=-1",
        ] {
            assert!(wrong.parse::<Sweep>().is_err(), "{wrong}");
        }
    }
}
