//! Disruption budgets, which both clouds keep themselves: OpenStack has nothing of the kind.

use super::openstack::unread;
use super::{OpenStackView, RegionView};
use crate::error::ServiceError;
use async_trait::async_trait;
use ebbtide_model::{BudgetScope, DisruptionBudget, ModelError, names};
use ebbtide_region::{DeleteBudget, PutBudget, Region, RegionError};

/// The budgets of a cloud.
#[async_trait]
pub(crate) trait CloudBudgets: Send + Sync {
    async fn budgets(&self) -> Result<Vec<DisruptionBudget>, ServiceError>;
    /// Creates or replaces the budget of a scope.
    async fn put(&self, budget: DisruptionBudget) -> Result<DisruptionBudget, ServiceError>;
    async fn delete(&self, scope: BudgetScope) -> Result<(), ServiceError>;
}

#[async_trait]
impl CloudBudgets for RegionView {
    async fn budgets(&self) -> Result<Vec<DisruptionBudget>, ServiceError> {
        self.region_actor.read(Region::budgets).await
    }

    async fn put(&self, budget: DisruptionBudget) -> Result<DisruptionBudget, ServiceError> {
        self.region_actor.handle(PutBudget(budget)).await
    }

    async fn delete(&self, scope: BudgetScope) -> Result<(), ServiceError> {
        self.region_actor.handle(DeleteBudget(scope)).await
    }
}

#[async_trait]
impl CloudBudgets for OpenStackView {
    async fn budgets(&self) -> Result<Vec<DisruptionBudget>, ServiceError> {
        self.reader().budgets().await.map_err(|e| unread(&e))
    }

    async fn put(&self, budget: DisruptionBudget) -> Result<DisruptionBudget, ServiceError> {
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
    }

    async fn delete(&self, scope: BudgetScope) -> Result<(), ServiceError> {
        match self.reader().delete_budget(&scope).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(ServiceError::Region(RegionError::NotFound {
                what: "disruption budget",
                name: names::shorten(&scope.to_string()),
                next: "`ebbtide budget list` shows those that there are",
            })),
            Err(error) => Err(unread(&error)),
        }
    }
}
