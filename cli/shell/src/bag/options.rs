//! Options that `plan bag` and `simulate bag` share, and the plan that they make.

use super::files;
use crate::errors::CliError;
use clap::{Args, ValueEnum};
use ebbtide_bag::read::{FileOverrides, duration};
use ebbtide_bag::{Bag, BestShare, Effort, Plan, Rules, best_share, plan, plan_on};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// How the maps are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PlanMethod {
    /// The paper's Algorithms 1 and 2 as printed
    Paper,
    /// Algorithm 1 with another choice of the instance: where the price grows least. Cheaper than
    /// "paper" on the paper's jobs
    Greedy,
    /// Packings and a local search; all plans for up to eight tasks. Never dearer than greedy
    Search,
}

/// Which bag, and how it is planned.
#[derive(Debug, Clone, Args)]
pub struct BagOptions {
    /// The bag: TOML, or JSON if the name ends with .json
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Another deadline than the file's: 17h, 90m, or "smallest" for the smallest that can be met
    #[arg(long, value_name = "TIME")]
    pub deadline: Option<String>,
    /// Up to which share of the deadline preemptible instances are given tasks; "best" tries many
    #[arg(long, value_name = "SHARE")]
    pub share: Option<String>,
    /// How the maps are made
    #[arg(long, value_enum, default_value_t = PlanMethod::Search)]
    pub method: PlanMethod,
    /// Rounds of the search
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub rounds: u32,
    /// What chance begins with
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Just these preemptible instances: c3.4xlarge=5,c4.8xlarge=3
    #[arg(long, value_name = "TYPE=N", value_delimiter = ',', conflicts_with_all = ["method", "rounds", "seed"])]
    pub fleet: Vec<String>,
}

/// A bag with its plan.
#[derive(Debug)]
pub struct BagPlan {
    /// The bag.
    pub bag: Bag,
    /// Its plan.
    pub plan: Plan,
    /// The shares that were tried, if the best was asked for.
    pub tried: Vec<(f64, u64, u64)>,
    /// Instances of `--fleet` that get no task: type and how many.
    pub unused: Vec<(String, usize)>,
}

impl BagPlan {
    /// What a person should know of the plan before its figures.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        let types: Vec<String> = self
            .unused
            .iter()
            .map(|(name, count)| format!("{count} × {name}"))
            .collect();
        (!types.is_empty()).then(|| {
            format!(
                "note: of the fleet {} get no task and are not bought",
                types.join(", ")
            )
        })
    }
}

impl BagOptions {
    /// How much is done to find a plan.
    pub fn effort(&self) -> Effort {
        match self.method {
            PlanMethod::Paper => Effort::Literal,
            PlanMethod::Greedy => Effort::Greedy,
            PlanMethod::Search => Effort::Search {
                rounds: self.rounds,
                seed: self.seed,
            },
        }
    }

    /// Reads the bag and plans it.
    ///
    /// # Errors
    /// [`CliError::BagFile`], [`CliError::Bag`]; [`CliError::Usage`] for options that make no
    /// sense.
    pub fn planned(&self) -> Result<BagPlan, CliError> {
        let best = self.share.as_deref() == Some("best");
        let share = match self.share.as_deref() {
            None | Some("best") => None,
            Some(text) => Some(text.parse().map_err(|_| {
                CliError::Usage(format!(
                    "--share {text}: it is a number above 0 and at most 1, or \"best\""
                ))
            })?),
        };
        let smallest = self.deadline.as_deref() == Some("smallest");
        let deadline = match self.deadline.as_deref() {
            None | Some("smallest") => None,
            Some(text) => Some(
                duration(text)
                    .map_err(|problem| CliError::Usage(format!("--deadline: {problem}")))?,
            ),
        };
        let instead = FileOverrides {
            deadline,
            smallest,
            share,
        };
        let bag = files::bag(&self.file, instead)?;
        if !self.fleet.is_empty() {
            let fleet = self.fleet(&bag)?;
            let plan = plan_on(&bag, &fleet)?;
            return Ok(BagPlan {
                unused: unused(&bag, &plan, &fleet),
                bag,
                plan,
                tried: Vec::new(),
            });
        }
        if best {
            let BestShare { share, plan, tried } = best_share(&bag, self.effort())?;
            let rules = Rules {
                share,
                ..*bag.rules()
            };
            return Ok(BagPlan {
                bag: bag.with_rules(rules)?,
                plan,
                tried,
                unused: Vec::new(),
            });
        }
        Ok(BagPlan {
            plan: plan(&bag, self.effort()),
            bag,
            tried: Vec::new(),
            unused: Vec::new(),
        })
    }

    fn fleet(&self, bag: &Bag) -> Result<Vec<(usize, usize)>, CliError> {
        let wrong = |part: &str| {
            CliError::Usage(format!(
                "--fleet {part}: write a type of the bag and how many, as in c3.4xlarge=5"
            ))
        };
        let parts = self.fleet.iter().map(|part| {
            let (name, count) = part.split_once('=').ok_or_else(|| wrong(part))?;
            let ty = bag.types().iter().position(|ty| ty.name == name);
            let count: usize = count.parse().map_err(|_| wrong(part))?;
            Ok((ty.ok_or_else(|| wrong(part))?, count))
        });
        parts.collect()
    }
}

/// Instances of a fleet that a plan does not use.
fn unused(bag: &Bag, plan: &Plan, fleet: &[(usize, usize)]) -> Vec<(String, usize)> {
    let types: BTreeSet<usize> = fleet.iter().map(|(ty, _)| *ty).collect();
    let left = types.into_iter().filter_map(|ty| {
        let of_type = fleet.iter().filter(|(one, _)| *one == ty);
        let asked: usize = of_type.map(|(_, count)| count).sum();
        let used = plan.vms.iter().filter(|one| one.vm.ty == ty).count();
        let name = bag.types().get(ty)?.name.clone();
        (asked > used).then(|| (name, asked - used))
    });
    left.collect()
}
