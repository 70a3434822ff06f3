//! Disruption budgets, which both clouds keep themselves: OpenStack has nothing of the kind.

use super::openstack::unread;
use super::{Answer, OpenStackView, RegionView};
use crate::error::ServiceError;
use ebbtide_model::{BudgetScope, DisruptionBudget, ModelError, names};
use ebbtide_region::{DeleteBudget, PutBudget, Region, RegionError};

pub(crate) trait CloudBudgets: Send + Sync {
    fn budgets(&self) -> Answer<'_, Vec<DisruptionBudget>>;
    /// Creates or replaces the budget of a scope.
    fn put(&self, budget: DisruptionBudget) -> Answer<'_, DisruptionBudget>;
    fn delete(&self, scope: BudgetScope) -> Answer<'_, ()>;
}

impl CloudBudgets for RegionView {
    fn budgets(&self) -> Answer<'_, Vec<DisruptionBudget>> {
        Box::pin(async move { self.region_actor.read(Region::budgets).await })
    }

    fn put(&self, budget: DisruptionBudget) -> Answer<'_, DisruptionBudget> {
        Box::pin(async move { self.region_actor.handle(PutBudget(budget)).await })
    }

    fn delete(&self, scope: BudgetScope) -> Answer<'_, ()> {
        Box::pin(async move { self.region_actor.handle(DeleteBudget(scope)).await })
    }
}

impl CloudBudgets for OpenStackView {
    fn budgets(&self) -> Answer<'_, Vec<DisruptionBudget>> {
        Box::pin(async move { self.reader().budgets().await.map_err(|e| unread(&e)) })
    }

    fn put(&self, budget: DisruptionBudget) -> Answer<'_, DisruptionBudget> {
        Box::pin(async move {
            if let BudgetScope::Project(project) = &budget.scope {
                let wrong = |error: ModelError| ServiceError::Region(RegionError::Invalid(error));
                names::check_name("project", project).map_err(wrong)?;
            }
            let known = self.reader().put_budget(&budget).await;
            match (known.map_err(|e| unread(&e))?, &budget.scope) {
                (false, BudgetScope::Group(group)) => Err(ServiceError::NotFound {
                    what: "server group",
                    name: group.to_string(),
                    next: "`openstack server group list --all-projects` shows those that there are",
                }),
                _ => Ok(budget),
            }
        })
    }

    fn delete(&self, scope: BudgetScope) -> Answer<'_, ()> {
        Box::pin(async move {
            match self.reader().delete_budget(&scope).await {
                Ok(true) => Ok(()),
                Ok(false) => Err(ServiceError::Region(RegionError::NotFound {
                    what: "disruption budget",
                    name: names::shorten(&scope.to_string()),
                    next: "`ebbtide budget list` shows those that there are",
                })),
                Err(error) => Err(unread(&error)),
            }
        })
    }
}
