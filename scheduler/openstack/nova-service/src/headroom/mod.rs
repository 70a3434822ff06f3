//! Keeps capacity free for normal servers before they are requested ([ADR 51]), so that their
//! requests do not wait out a grace period.
//!
//! A rule is looked at as a what-if for its servers: if that finds room, nothing is done; if
//! servers would have to leave for it, they get their notice now. So filters, aggregates, cost
//! module, guaranteed times and disruption budgets mean what they mean for a request.
//!
//! Every scheduler looks. While servers of an earlier look are leaving, no scheduler plans with the
//! room that they leave, so nothing is done until they are gone. Of two schedulers that look at the
//! same moment one begins, because both name the same turn in the ledger.
//!
//! [ADR 51]: ../../../../../docs/development/adr/0051-headroom-is-a-what-if-whose-victims-leave.md

mod forecast;
mod question;
mod reserved;
mod warning;

pub(crate) use self::reserved::ReservedHeadroom;

use self::forecast::{Demand, HISTORY, MOST_REQUESTS};
use self::question::RuleQuestions;
use self::warning::EarlyWarnings;
#[cfg(test)]
pub(crate) use self::warning::REBALANCE;

use crate::Tasks;
use crate::decisions::Decisions;
use crate::error::NovaServiceError;
use crate::evacuate::{AheadResult, Evacuations};
use crate::metrics::Metrics;
use crate::nova_api::ServerActions;
use crate::select::Selector;
use crate::settings::{HeadroomOptions, HeadroomRule};
use crate::what_if::WhatIfError;
use ebbtide_model::{Aggregate, Seconds, Timestamp};
use ebbtide_runtime::clock;
use ebbtide_runtime::task::pause;
use ebbtide_store::DecisionFilter;
use ebbtide_store::ledger::LedgerError;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use uuid::Uuid;

/// How a look at a rule ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HeadroomState {
    /// The servers would find room at once.
    Free,
    /// So many servers have got their notice.
    MakingRoom(usize),
    /// Nothing can be done now, in words.
    Lacking(String),
}

/// Most decisions that are read at once.
const PAGE: u32 = 200;
/// Most hosts without an agent around which one look plans.
const MOST_WITHOUT_AGENTS: usize = 8;
/// How much further than the last look a look goes back: decisions are recorded after
/// their answers.
const OVERLAP: Seconds = Seconds(60);

/// Keeps the rules.
pub(crate) struct HeadroomController {
    questions: Arc<RuleQuestions>,
    /// How many servers of each rule are to find room, for those who take room away.
    kept: ReservedHeadroom,
    options: HeadroomOptions,
    /// Where the requests of the past are.
    decisions: Decisions,
    demand: Demand,
    /// Until when decisions were read.
    learnt_until: Option<Timestamp>,
    metrics: Metrics,
    /// What warns servers that would be next; `None`: nothing does.
    warnings: Option<EarlyWarnings>,
    /// Servers were leaving at the last look. What they left may not be known yet.
    waiting: bool,
    /// The last state of each rule, to log changes only.
    states: HashMap<HeadroomRule, HeadroomState>,
}

/// Looks at the rules regularly, if there are any. Returns what they keep free.
pub(crate) fn start(
    selector: &Selector,
    options: HeadroomOptions,
    actions: Option<Arc<dyn ServerActions>>,
    metrics: &Metrics,
    tasks: &Tasks,
) -> ReservedHeadroom {
    if options.rules.is_empty() {
        return ReservedHeadroom::default();
    }
    let (stop, every) = (tasks.stop().clone(), options.every);
    let mut keeper = HeadroomController::new(selector, options, metrics);
    if let Some(actions) = actions {
        keeper.warns_by(actions);
    }
    let kept = keeper.reserved_headroom();
    tasks.spawn("headroom", async move {
        while pause(&stop, every).await {
            keeper.look().await;
        }
    });
    kept
}

impl HeadroomController {
    pub(crate) fn new(selector: &Selector, options: HeadroomOptions, metrics: &Metrics) -> Self {
        let questions = Arc::new(RuleQuestions {
            selector: selector.for_what_ifs(),
        });
        Self {
            kept: ReservedHeadroom::new(&questions, &options.rules),
            questions,
            options,
            decisions: selector.decisions.clone(),
            demand: Demand::default(),
            learnt_until: None,
            metrics: metrics.clone(),
            warnings: None,
            waiting: false,
            states: HashMap::new(),
        }
    }

    /// Servers that would be next are warned.
    pub(crate) fn warns_by(&mut self, actions: Arc<dyn ServerActions>) {
        self.warnings = Some(EarlyWarnings::new(actions));
    }

    /// What is kept free, for those who take room away.
    pub(crate) fn reserved_headroom(&self) -> ReservedHeadroom {
        self.kept.clone()
    }

    /// Looks at every rule once.
    pub(crate) async fn look(&mut self) {
        // Without its ledger the scheduler evicts nothing.
        let Some(evacuations) = self.questions.selector.preempting.get().cloned() else {
            return;
        };
        if let Err(error) = self.learn().await {
            let code = error.code();
            tracing::warn!(code, "headroom: the demand is as it was last read: {error}");
        }
        let mut next = BTreeSet::new();
        for rule in self.options.rules.clone() {
            match self.keep(&rule, &evacuations).await {
                Ok(Some(state)) => {
                    let is_free = state == HeadroomState::Free;
                    self.note(rule.clone(), state);
                    if is_free {
                        next.extend(self.next_victims(&rule).await);
                    }
                }
                // The room that is being made for one rule may do for the others.
                Ok(None) => return,
                Err(error) => {
                    tracing::warn!(code = error.code(), %rule, "headroom: {error}");
                }
            }
        }
        let Some(warnings) = &mut self.warnings else {
            return;
        };
        let nova = self.questions.selector.facts.database.nova();
        if let Err(error) = warnings.tell(nova, &next, clock::now()).await {
            let code = error.code();
            tracing::warn!(code, "headroom: no server is warned early: {error}");
        }
    }

    /// The servers that would have to leave if one more server of a rule were requested.
    async fn next_victims(&self, rule: &HeadroomRule) -> Vec<Uuid> {
        let Some(wanted) = self.kept.wanted(rule).filter(|_| self.warnings.is_some()) else {
            return Vec::new();
        };
        let victims = async {
            let flavor = self.questions.flavor(rule).await?;
            let aggregate = self.questions.aggregate(rule)?;
            let more = wanted.saturating_add(1);
            let victims = self
                .questions
                .victims(flavor, more, aggregate.as_ref(), Vec::new());
            victims.await
        };
        // Why there are none, the look at the rule says.
        let victims: Result<_, WhatIfError> = victims.await;
        let victims = victims.ok().and_then(Result::ok).unwrap_or_default();
        victims.into_iter().map(|victim| victim.uuid).collect()
    }

    /// `None`: servers of an earlier look are leaving, or the cloud has changed under the plan.
    pub(crate) async fn keep(
        &mut self,
        rule: &HeadroomRule,
        evacuations: &Evacuations,
    ) -> Result<Option<HeadroomState>, NovaServiceError> {
        let Some(turn) = evacuations.headroom_turn().await? else {
            self.waiting = true;
            return Ok(None);
        };
        if std::mem::take(&mut self.waiting) {
            return Ok(None);
        }
        let planned = self.make_room(rule, evacuations, turn).await;
        match planned {
            Err(WhatIfError::Cloud(error)) => Err(error),
            Err(error) => Ok(Some(HeadroomState::Lacking(error.to_string()))),
            Ok(state) => Ok(state),
        }
    }

    /// `None`: the cloud has changed meanwhile.
    async fn make_room(
        &self,
        rule: &HeadroomRule,
        evacuations: &Evacuations,
        turn: u64,
    ) -> Result<Option<HeadroomState>, WhatIfError> {
        let flavor = self.questions.flavor(rule).await?;
        let aggregate = self.questions.aggregate(rule)?;
        let wanted = self.wanted(rule, &flavor.name, aggregate.as_ref());
        self.kept.set(rule, wanted);
        if wanted == 0 {
            return Ok(Some(HeadroomState::Free));
        }
        let mut without_agents = Vec::new();
        loop {
            let ignored = without_agents.clone();
            let victims =
                self.questions
                    .victims(flavor.clone(), wanted, aggregate.as_ref(), ignored);
            let victims = match victims.await? {
                Ok(victims) if victims.is_empty() => return Ok(Some(HeadroomState::Free)),
                Ok(victims) => victims,
                Err(why) if without_agents.is_empty() => {
                    return Ok(Some(HeadroomState::Lacking(why)));
                }
                Err(why) => {
                    let hosts = without_agents.join(", ");
                    let why = format!("no agent reads from the queues of {hosts}; else: {why}");
                    return Ok(Some(HeadroomState::Lacking(why)));
                }
            };
            match evacuations.evict_ahead(&victims, turn).await? {
                AheadResult::Begun(count) => return Ok(Some(HeadroomState::MakingRoom(count))),
                AheadResult::Overtaken => return Ok(None),
                AheadResult::NoAgent(host) if without_agents.len() < MOST_WITHOUT_AGENTS => {
                    without_agents.push(host);
                }
                AheadResult::NoAgent(host) => {
                    let why = format!("no agent reads from the queue of {host} and others");
                    return Ok(Some(HeadroomState::Lacking(why)));
                }
            }
        }
    }

    /// Reads the requests that were recorded since the last look, of all schedulers.
    async fn learn(&mut self) -> Result<(), LedgerError> {
        let mut rules = self.options.rules.iter();
        let (true, Some(store)) = (rules.any(HeadroomRule::is_forecast), self.decisions.store())
        else {
            return Ok(());
        };
        let now = clock::now();
        let known = self.learnt_until.map(|until| until.minus(OVERLAP));
        let mut filter = DecisionFilter {
            from: Some(known.unwrap_or_else(|| now.minus(HISTORY))),
            limit: PAGE,
            ..DecisionFilter::default()
        };
        // The newest first, so that a long history is cut at its far end.
        let mut read = 0;
        loop {
            let page = store.decisions(&filter).await;
            let page = page.map_err(LedgerError::Store)?;
            page.iter().for_each(|decision| self.demand.put(decision));
            read += page.len();
            filter.marker = page.last().map(|decision| decision.id);
            if page.len() < PAGE as usize || read >= MOST_REQUESTS {
                break;
            }
        }
        // After an error the next look begins as far back as this one.
        self.learnt_until = Some(now);
        self.demand.forget_old(now);
        Ok(())
    }

    /// How many servers of a rule are to find room now.
    fn wanted(&self, rule: &HeadroomRule, flavor: &str, aggregate: Option<&Aggregate>) -> u32 {
        if !rule.is_forecast() {
            return rule.most;
        }
        let hosts = aggregate.map(|aggregate| aggregate.hosts.iter().cloned().collect());
        let lead = self.options.lead;
        let forecast = self.demand.forecast(flavor, hosts.as_ref(), lead);
        forecast.clamp(rule.least, rule.most)
    }

    fn note(&mut self, rule: HeadroomRule, state: HeadroomState) {
        self.metrics.headroom(&rule, state == HeadroomState::Free);
        if self.states.get(&rule) == Some(&state) {
            return;
        }
        match &state {
            HeadroomState::Free => tracing::info!(%rule, "headroom: the room is free"),
            HeadroomState::MakingRoom(victims) => {
                tracing::info!(%rule, victims, "headroom: servers leave for it");
            }
            HeadroomState::Lacking(why) => {
                tracing::warn!(code = "EB-DOOR-065", %rule, "headroom: there is no room: {why}");
            }
        }
        self.states.insert(rule, state);
    }
}
