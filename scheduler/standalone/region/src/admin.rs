//! What operators manage: hosts, flavors, aggregates, server groups, disruption budgets.

use crate::transition::Transition;
use crate::{Region, RegionError};
use ebbtide_model::flavor::{GRACE_SECONDS, MAX_LIFETIME_SECONDS};
use ebbtide_model::record::Change;
use ebbtide_model::{
    Aggregate, AggregateId, BudgetScope, CloudEvent, DisruptionBudget, Flavor, FlavorId, GroupId,
    ModelError, Seconds, ServerGroup, names,
};
use std::str::FromStr;

/// Most flavors, groups, aggregates or budgets of a region, as a limit for runaway scripts.
const MAX_OBJECTS: usize = 100_000;

impl Region {
    pub(crate) fn set_disabled(
        &mut self,
        transition: &mut Transition<'_>,
        name: &str,
        reason: Option<String>,
    ) -> Result<(), RegionError> {
        if let Some(reason) = &reason {
            names::check_name("reason", reason)?;
        }
        if self.disable_reclaimed(transition, name, reason.as_ref())? {
            return Ok(());
        }
        let down_after = self.config.host_down_seconds.as_millis();
        let set = self
            .hosts
            .set_disabled(name, reason, transition.now, down_after);
        let Some((host, health)) = set else {
            return Err(RegionError::unknown_host(name));
        };
        let host = host.clone();
        self.table.set_health(name, health);
        self.improvements += 1;
        transition.change(name);
        transition
            .effects
            .changes
            .push(Change::PutHost(Box::new(host.clone())));
        transition
            .effects
            .events
            .push(CloudEvent::Host(Box::new(host), health));
        Ok(())
    }

    /// A flavor by id or name.
    ///
    /// # Errors
    /// [`RegionError::NotFound`].
    pub fn find_flavor(&self, name: &str) -> Result<&Flavor, RegionError> {
        let by_id = FlavorId::from_str(name)
            .ok()
            .and_then(|id| self.flavors.get(&id));
        by_id
            .or_else(|| self.flavors.values().find(|f| f.name == name))
            .ok_or_else(|| RegionError::NotFound {
                what: "flavor",
                name: names::shorten(name),
                next: "`ebbtide flavor list` shows what there is",
            })
    }

    /// A server group by id or name.
    ///
    /// # Errors
    /// [`RegionError::NotFound`], or [`RegionError::Ambiguous`] if several have the name.
    pub fn find_group(&self, name: &str) -> Result<&ServerGroup, RegionError> {
        if let Some(group) = GroupId::from_str(name)
            .ok()
            .and_then(|id| self.groups.get(&id))
        {
            return Ok(group);
        }
        let named: Vec<_> = self.groups.values().filter(|g| g.name == name).collect();
        match named.as_slice() {
            [group] => Ok(group),
            [] => Err(RegionError::NotFound {
                what: "server group",
                name: names::shorten(name),
                next: "`ebbtide server group list` shows what there is",
            }),
            several => Err(RegionError::Ambiguous {
                what: "server groups",
                name: names::shorten(name),
                count: several.len(),
            }),
        }
    }

    pub(crate) fn create_flavor(
        &mut self,
        transition: &mut Transition<'_>,
        flavor: Flavor,
    ) -> Result<Flavor, RegionError> {
        self.check_lifetime(&flavor)?;
        let known = self
            .flavors
            .get(&flavor.id)
            .or_else(|| self.flavors.values().find(|f| f.name == flavor.name));
        if let Some(known) = known {
            let same = Flavor {
                id: known.id,
                ..flavor.clone()
            } == *known;
            return if same {
                Ok(known.clone())
            } else {
                Err(RegionError::Exists {
                    what: "flavor",
                    name: known.name.clone(),
                    next: "flavors never change: delete it and create it anew, or take another name",
                })
            };
        }
        room_for_more("flavors", self.flavors.len())?;
        transition
            .effects
            .changes
            .push(Change::PutFlavor(flavor.clone()));
        self.flavors.insert(flavor.id, flavor.clone());
        Ok(flavor)
    }

    /// A flavor without a grace period uses the region's. The maximum lifetime must be longer than
    /// the grace period; otherwise servers would get their notice at launch.
    fn check_lifetime(&self, flavor: &Flavor) -> Result<(), RegionError> {
        let properties = flavor.properties()?;
        let Some(Seconds(lifetime)) = properties.max_lifetime else {
            return Ok(());
        };
        let Seconds(grace) = properties
            .grace
            .unwrap_or(self.config.default_grace_seconds);
        if lifetime > grace {
            return Ok(());
        }
        Err(RegionError::Invalid(ModelError::ExtraSpec {
            key: MAX_LIFETIME_SECONDS.to_owned(),
            value: lifetime.to_string(),
            problem: format!(
                "the grace period, {grace} s in this region unless the flavor says otherwise ({GRACE_SECONDS}), is not shorter"
            ),
        }))
    }

    pub(crate) fn delete_flavor(
        &mut self,
        transition: &mut Transition<'_>,
        name: &str,
    ) -> Result<(), RegionError> {
        let id = self.find_flavor(name)?.id;
        self.flavors.remove(&id);
        transition.effects.changes.push(Change::DeleteFlavor(id));
        Ok(())
    }

    pub(crate) fn put_aggregate(
        &mut self,
        transition: &mut Transition<'_>,
        mut aggregate: Aggregate,
    ) -> Result<Aggregate, RegionError> {
        aggregate.check()?;
        if let Some(known) = self.aggregates.values().find(|a| a.name == aggregate.name) {
            aggregate.id = known.id;
        } else if let Some(other) = self.aggregates.get(&aggregate.id) {
            return Err(RegionError::Exists {
                what: "aggregate",
                name: other.id.to_string(),
                next: "it has another name; aggregates are replaced by name",
            });
        } else {
            room_for_more("aggregates", self.aggregates.len())?;
        }
        if let Some(zone) = aggregate.availability_zone() {
            names::check_name("availability zone", zone)?;
            // As in Nova: a host is in one zone only.
            let other = self.aggregates.values().find(|a| {
                a.id != aggregate.id
                    && a.availability_zone().is_some_and(|z| z != zone)
                    && !a.hosts.is_disjoint(&aggregate.hosts)
            });
            if let Some(other) = other {
                return Err(RegionError::Conflict(format!(
                    "aggregate {:?} would put hosts of aggregate {:?} into a second availability zone; remove them there first",
                    aggregate.name, other.name
                )));
            }
        }
        transition
            .effects
            .changes
            .push(Change::PutAggregate(aggregate.clone()));
        self.aggregates.insert(aggregate.id, aggregate.clone());
        self.catalog += 1;
        self.refresh_aggregates();
        Ok(aggregate)
    }

    /// Updates the aggregates in the host table.
    pub(crate) fn refresh_aggregates(&mut self) {
        let all: Vec<Aggregate> = self.aggregates.values().cloned().collect();
        self.table.set_aggregates(&all);
    }

    pub(crate) fn delete_aggregate(
        &mut self,
        transition: &mut Transition<'_>,
        name: &str,
    ) -> Result<(), RegionError> {
        let by_id = AggregateId::from_str(name)
            .ok()
            .filter(|id| self.aggregates.contains_key(id));
        let id = by_id
            .or_else(|| {
                self.aggregates
                    .values()
                    .find(|a| a.name == name)
                    .map(|a| a.id)
            })
            .ok_or_else(|| RegionError::NotFound {
                what: "aggregate",
                name: names::shorten(name),
                next: "`ebbtide aggregate list` shows what there is",
            })?;
        self.aggregates.remove(&id);
        self.catalog += 1;
        self.refresh_aggregates();
        transition.effects.changes.push(Change::DeleteAggregate(id));
        Ok(())
    }

    pub(crate) fn create_group(
        &mut self,
        transition: &mut Transition<'_>,
        group: ServerGroup,
        most: Option<u32>,
    ) -> Result<ServerGroup, RegionError> {
        group.check()?;
        if let Some(known) = self.groups.get(&group.id) {
            return if *known == group {
                Ok(group)
            } else {
                Err(RegionError::Exists {
                    what: "server group",
                    name: group.id.to_string(),
                    next: "server groups never change: take another id",
                })
            };
        }
        room_for_more("server groups", self.groups.len())?;
        let own = |g: &&ServerGroup| g.project_id == group.project_id;
        let used = self.groups.values().filter(own).count();
        within_quota("server groups", &group.project_id, used, 1, most)?;
        transition
            .effects
            .changes
            .push(Change::PutGroup(group.clone()));
        self.table.put_group(&group);
        self.groups.insert(group.id, group.clone());
        self.catalog += 1;
        Ok(group)
    }

    pub(crate) fn delete_group(
        &mut self,
        transition: &mut Transition<'_>,
        name: &str,
    ) -> Result<(), RegionError> {
        let id = self.find_group(name)?.id;
        self.groups.remove(&id);
        self.catalog += 1;
        self.budgets.remove(&BudgetScope::Group(id));
        self.table.remove_group(id);
        transition
            .effects
            .changes
            .push(Change::DeleteBudget(BudgetScope::Group(id)));
        transition.effects.changes.push(Change::DeleteGroup(id));
        Ok(())
    }

    pub(crate) fn put_budget(
        &mut self,
        transition: &mut Transition<'_>,
        budget: DisruptionBudget,
    ) -> Result<DisruptionBudget, RegionError> {
        match &budget.scope {
            BudgetScope::Project(project) => names::check_name("project", project)?,
            BudgetScope::Group(id) => drop(self.find_group(&id.to_string())?),
        }
        let longest = self.config.longest_budget_window_seconds;
        if budget.window > longest {
            return Err(RegionError::Invalid(ModelError::Range {
                what: "window of a disruption budget".to_owned(),
                value: budget.window.to_string(),
                allowed: format!("at most {longest} (region.longest_budget_window_seconds)"),
            }));
        }
        if !self.budgets.contains_key(&budget.scope) {
            room_for_more("disruption budgets", self.budgets.len())?;
        }
        transition
            .effects
            .changes
            .push(Change::PutBudget(budget.clone()));
        self.budgets.insert(budget.scope.clone(), budget.clone());
        self.catalog += 1;
        Ok(budget)
    }

    pub(crate) fn delete_budget(
        &mut self,
        transition: &mut Transition<'_>,
        scope: &BudgetScope,
    ) -> Result<(), RegionError> {
        if self.budgets.remove(scope).is_none() {
            return Err(RegionError::NotFound {
                what: "disruption budget",
                name: scope.to_string(),
                next: "`ebbtide budget list` shows what there is",
            });
        }
        transition
            .effects
            .changes
            .push(Change::DeleteBudget(scope.clone()));
        Ok(())
    }
}

/// Refuses a request that exceeds a project's quota.
pub(crate) fn within_quota(
    what: &'static str,
    project: &str,
    used: usize,
    requested: usize,
    most: Option<u32>,
) -> Result<(), RegionError> {
    match most {
        Some(most) if used.saturating_add(requested) > most as usize => Err(RegionError::Quota {
            what,
            project: names::shorten(project),
            used,
            requested,
            most,
        }),
        _ => Ok(()),
    }
}

fn room_for_more(what: &str, count: usize) -> Result<(), RegionError> {
    if count < MAX_OBJECTS {
        Ok(())
    } else {
        Err(RegionError::Conflict(format!(
            "there are {count} {what} already, the most there can be; delete some"
        )))
    }
}
