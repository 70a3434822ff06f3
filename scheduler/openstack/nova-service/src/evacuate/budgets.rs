//! Disruption budgets: what every preemption has to keep to, counted from the rows of all
//! schedulers.
//!
//! Turns are read before the rows are counted, so that a row that was written in between moves a
//! turn on, and [`Ledger::insert_within`](ebbtide_store::ledger::Ledger::insert_within) refuses
//! what was planned without it.

use super::{Evacuations, read};
use crate::error::NovaServiceError;
use crate::preemption::Preemption;
use ebbtide_engine::Budgets;
use ebbtide_evacuation::{Disruption, DisruptionStage, disrupted, remaining, scopes};
use ebbtide_model::{BudgetScope, DisruptionBudget, GroupId, Seconds, ServerId, Timestamp};
use ebbtide_runtime::clock::{self, Stopwatch};
use ebbtide_store::ledger::{BudgetTurn, LedgerBudget, LedgerError, NewRow};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use uuid::Uuid;

/// How much further than the last look a look goes back: rows get the time of their statement, and
/// appear when it is committed.
const OVERLAP_MILLIS: i64 = 60_000;
/// How often a preemption is counted again because others were written within the same budget.
/// Each time another one was, so this is the number of schedulers that preempt at one moment.
const COUNTS: u32 = 16;

/// The budgets with what counts against them. Without budgets it is empty and limits nothing.
#[derive(Debug, Clone, Default)]
pub(crate) struct CountedBudgets {
    all: BTreeMap<BudgetScope, CountedBudget>,
    /// The members of groups that have a budget.
    groups: HashMap<Uuid, GroupId>,
}

#[derive(Debug, Clone)]
struct CountedBudget {
    budget: DisruptionBudget,
    /// Its turn before the count.
    turn: i64,
    /// The servers that it counts.
    used: BTreeSet<ServerId>,
}

impl CountedBudgets {
    fn new(
        known: Vec<LedgerBudget>,
        groups: HashMap<Uuid, GroupId>,
        disruptions: &DisruptionLog,
        now: Timestamp,
    ) -> Self {
        let mut of_scope: BTreeMap<BudgetScope, Vec<Disruption<'_>>> = known
            .iter()
            .map(|known| (known.budget.scope.clone(), Vec::new()))
            .collect();
        for mut disruption in disruptions.all().cloned() {
            disruption.group_id = groups.get(&disruption.victim.0).copied();
            for scope in disruption.scopes() {
                if let Some(list) = of_scope.get_mut(&scope) {
                    list.push(disruption.clone());
                }
            }
        }
        let counted = known.into_iter().map(|LedgerBudget { budget, turn }| {
            let own = of_scope.remove(&budget.scope).unwrap_or_default();
            let used = disrupted(&budget, own, now);
            (budget.scope.clone(), CountedBudget { budget, turn, used })
        });
        Self {
            all: counted.collect(),
            groups,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    fn scopes(&self, server: ServerId, project: &str) -> impl Iterator<Item = BudgetScope> + use<> {
        scopes(project, self.groups.get(&server.0).copied())
    }

    /// What is left beside the victims that other plans have reserved, each with its project. One
    /// whose plan is in the ledger by now counts once.
    pub(crate) fn left<'a>(&self, reserved: impl Iterator<Item = (ServerId, &'a str)>) -> Budgets {
        let mut left = Budgets::unlimited();
        if self.is_empty() {
            return left;
        }
        let mut used: BTreeMap<BudgetScope, BTreeSet<ServerId>> = BTreeMap::new();
        for (server, project) in reserved {
            for scope in self.scopes(server, project) {
                used.entry(scope).or_default().insert(server);
            }
        }
        for (scope, counted) in &self.all {
            let reserved = used.remove(scope).unwrap_or_default();
            let used = counted.used.union(&reserved).count();
            left.limit(scope, remaining(&counted.budget, used));
        }
        left
    }

    /// How many victims of a record each budget limits.
    fn victims(&self, record: &Preemption) -> BTreeMap<BudgetScope, usize> {
        let mut victims = BTreeMap::new();
        for victim in &record.victims {
            for scope in self.scopes(victim.server, &victim.had.project_id) {
                if self.all.contains_key(&scope) {
                    *victims.entry(scope).or_default() += 1;
                }
            }
        }
        victims
    }

    /// Whether a record keeps to all budgets.
    pub(super) fn allow(&self, record: &Preemption) -> bool {
        self.victims(record).into_iter().all(|(scope, victims)| {
            let counted = &self.all[&scope];
            let left = remaining(&counted.budget, counted.used.len());
            usize::try_from(left).unwrap_or(usize::MAX) >= victims
        })
    }

    /// The turns of the budgets that limit a record.
    fn turns(&self, record: &Preemption) -> Vec<BudgetTurn> {
        let limited = self.victims(record).into_keys();
        limited
            .map(|scope| BudgetTurn {
                turn: self.all[&scope].turn,
                scope,
            })
            .collect()
    }
}

/// What budgets may count, as last read. Finished rows do not change, so a look reads the open ones
/// and those that have ended since the look before.
#[derive(Default)]
pub(super) struct DisruptionLog {
    /// The last look, and how far the first one went back.
    read: Option<(Stopwatch, Seconds)>,
    rows: HashMap<Uuid, Vec<Disruption<'static>>>,
}

impl DisruptionLog {
    fn all(&self) -> impl Iterator<Item = &Disruption<'static>> {
        self.rows.values().flatten()
    }

    /// How many milliseconds the next look goes back to know the last `window`.
    fn look_back(&self, window: Seconds) -> i64 {
        let millis = match &self.read {
            Some((last, reach)) if *reach >= window => {
                i64::try_from(last.elapsed().as_millis()).unwrap_or(i64::MAX)
            }
            _ => i64::from(window.0) * 1000,
        };
        millis.saturating_add(OVERLAP_MILLIS)
    }

    /// Takes over what a look that began then has found.
    fn put(&mut self, began: Stopwatch, window: Seconds, records: &[Preemption], now: Timestamp) {
        // Every look finds all rows that are open.
        let found: BTreeSet<Uuid> = records.iter().map(|record| record.id).collect();
        let leaving = |d: &Disruption<'_>| d.stage == DisruptionStage::UnderWay;
        self.rows
            .retain(|id, all| found.contains(id) || !all.iter().any(leaving));
        for record in records {
            let may_count =
                |d: &Disruption<'_>| d.cause.is_disruption() && d.stage != DisruptionStage::Over;
            let all = record.disruptions(|_| None).filter(may_count);
            let all: Vec<_> = all.map(Disruption::into_owned).collect();
            self.rows.insert(record.id, all);
        }
        let reach = self
            .read
            .take()
            .map_or(window, |(_, reach)| reach.max(window));
        self.read = Some((began, reach));
        let oldest = now.minus(reach);
        self.rows.retain(|_, all| {
            let mut all = all.iter();
            all.any(|d| leaving(d) || d.claimed_at > oldest)
        });
    }
}

impl Evacuations {
    /// Whether there were disruption budgets when the ledger was last read.
    pub(crate) fn has_budgets(&self) -> bool {
        self.shared.open.has_budgets()
    }

    /// The budgets, with what counts against them now. Without budgets it reads nothing: the last
    /// [`freshen`](Self::freshen) says whether there are any.
    ///
    /// # Errors
    /// Those of the ledger and of Nova's API database: then no server must be preempted.
    pub(crate) async fn budgets(&self) -> Result<CountedBudgets, NovaServiceError> {
        if !self.has_budgets() {
            return Ok(CountedBudgets::default());
        }
        let ledger = &self.shared.ledger;
        let mut log = self.shared.disruptions.lock().await;
        let known = ledger.budgets().await?;
        let longest = known.iter().map(|known| known.budget.window).max();
        let window = longest.unwrap_or_default();
        let began = Stopwatch::start();
        let rows = ledger.rows_of_late(log.look_back(window)).await?;
        let records: Vec<Preemption> = rows.iter().filter_map(read).collect();
        let groups = self.members_of_groups(&known).await?;
        let now = clock::now();
        log.put(began, window, &records, now);
        Ok(CountedBudgets::new(known, groups, &log, now))
    }

    /// Reads who is in the groups that have a budget, and lets the cloud in memory know.
    async fn members_of_groups(
        &self,
        known: &[LedgerBudget],
    ) -> Result<HashMap<Uuid, GroupId>, NovaServiceError> {
        let groups = known.iter().filter_map(|known| match &known.budget.scope {
            BudgetScope::Group(group) => Some(group.to_string()),
            BudgetScope::Project(_) => None,
        });
        let groups: Vec<String> = groups.collect();
        let facts = &self.shared.facts;
        let mut members = HashMap::new();
        if !groups.is_empty() {
            let found = facts.database.nova().members_of_groups(&groups).await?;
            let parsed = found.iter().filter_map(|(member, group)| {
                Some((member.parse().ok()?, GroupId(group.parse().ok()?)))
            });
            members.extend(parsed);
        }
        // A change makes decisions outdated that were made before it.
        if !facts.read(|cloud| cloud.group_members_are(&members)) {
            facts.write(|cloud| cloud.set_group_members(members.clone()));
        }
        Ok(members)
    }

    /// Writes a new row that keeps to its budgets. If others were written within one of them since
    /// it was counted, the plan is still the best one as long as it keeps to what is left now.
    ///
    /// # Errors
    /// [`LedgerError::BudgetMoved`]: too little is left. Those of the ledger.
    pub(super) async fn write_within(
        &self,
        row: &NewRow,
        record: &Preemption,
        budgets: &CountedBudgets,
    ) -> Result<(), LedgerError> {
        let mut turns = budgets.turns(record);
        let mut left = COUNTS;
        loop {
            let moved = match self.write_down(row, &turns).await {
                Err(moved @ LedgerError::BudgetMoved { .. }) if left > 0 => moved,
                done => return done,
            };
            left -= 1;
            match self.budgets().await {
                Ok(again) if again.allow(record) => turns = again.turns(record),
                Ok(_) => return Err(moved),
                Err(error) => {
                    tracing::warn!(code = error.code(), "disruption budgets: {error}");
                    return Err(moved);
                }
            }
        }
    }
}
