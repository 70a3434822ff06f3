//! What the rules keep free, for those who take room away without a request.

use super::question::RuleQuestions;
use crate::error::NovaServiceError;
use crate::settings::HeadroomRule;
use crate::what_if::WhatIfError;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// What the rules keep free. Cheap to clone. Without rules it is nothing.
#[derive(Clone, Default)]
pub(crate) struct ReservedHeadroom {
    questions: Option<Arc<RuleQuestions>>,
    rules: Arc<[HeadroomRule]>,
    /// How many servers of a rule are to find room, as of the last look.
    wanted: Arc<Mutex<HashMap<HeadroomRule, u32>>>,
}

impl ReservedHeadroom {
    pub(super) fn new(questions: &Arc<RuleQuestions>, rules: &[HeadroomRule]) -> Self {
        Self {
            questions: Some(Arc::clone(questions)),
            rules: rules.into(),
            wanted: Arc::default(),
        }
    }

    pub(super) fn set(&self, rule: &HeadroomRule, wanted: u32) {
        let mut known = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(rule.clone(), wanted);
    }

    /// Whether anything is kept free.
    pub(crate) fn has_rules(&self) -> bool {
        self.questions.is_some()
    }

    /// How many servers of a rule are to find room; `None`: the rule was not looked at yet.
    pub(super) fn wanted(&self, rule: &HeadroomRule) -> Option<u32> {
        let known = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(rule).copied()
    }

    /// Whether the servers of every rule would find room at once on other hosts than this one. Then
    /// what takes room there does not shrink the headroom.
    ///
    /// # Errors
    /// Those of Nova's databases.
    pub(crate) async fn is_left_without(&self, host: &str) -> Result<bool, NovaServiceError> {
        let Some(questions) = &self.questions else {
            return Ok(true);
        };
        for rule in self.rules.iter() {
            match self.has_room_without(questions, rule, host).await {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(WhatIfError::Cloud(error)) => return Err(error),
                // The look at the rule says so in the log.
                Err(_) => return Ok(false),
            }
        }
        Ok(true)
    }

    async fn has_room_without(
        &self,
        questions: &RuleQuestions,
        rule: &HeadroomRule,
        host: &str,
    ) -> Result<bool, WhatIfError> {
        let Some(wanted) = self.wanted(rule) else {
            return Ok(false);
        };
        let aggregate = questions.aggregate(rule)?;
        let elsewhere = aggregate
            .as_ref()
            .is_some_and(|aggregate| !aggregate.hosts.contains(host));
        if wanted == 0 || elsewhere {
            return Ok(true);
        }
        let flavor = questions.flavor(rule).await?;
        let ignored = vec![host.to_owned()];
        let victims = questions.victims(flavor, wanted, aggregate.as_ref(), ignored);
        Ok(victims.await?.is_ok_and(|victims| victims.is_empty()))
    }
}
