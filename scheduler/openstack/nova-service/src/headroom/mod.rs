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
mod rule;

pub(crate) use self::rule::HeadroomRule;

use self::forecast::{Demand, HISTORY, MOST_REQUESTS};

use crate::Tasks;
use crate::decisions::Decisions;
use crate::error::NovaServiceError;
use crate::evacuate::{AheadResult, Evacuations};
use crate::metrics::Metrics;
use crate::select::Selector;
use crate::what_if::{WhatIf, WhatIfError, offered_flavor};
use ebbtide_model::{Aggregate, Seconds, ServerId, Timestamp};
use ebbtide_nova::model::{Destination, Flavor, RequestSpec};
use ebbtide_nova_cloud::Cloud;
use ebbtide_runtime::task::pause;
use ebbtide_runtime::{clock, ids};
use ebbtide_store::DecisionFilter;
use ebbtide_store::ledger::LedgerError;
use std::collections::HashMap;
use std::time::Duration;
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

/// What the operator wants free.
#[derive(Debug, Clone)]
pub(crate) struct HeadroomOptions {
    pub(crate) rules: Vec<HeadroomRule>,
    /// Interval of the looks.
    pub(crate) every: Duration,
    /// How long it takes until room is made: what comes meanwhile has to find it.
    pub(crate) lead: Seconds,
}

/// Most decisions that are read at once.
const PAGE: u32 = 200;
/// Most hosts without an agent around which one look plans.
const MOST_WITHOUT_AGENTS: usize = 8;
/// How much further than the last look a look goes back: decisions are recorded after
/// their answers.
const OVERLAP: Seconds = Seconds(60);

/// Keeps the rules.
pub(crate) struct HeadroomKeeper {
    selector: Selector,
    options: HeadroomOptions,
    /// Where the requests of the past are.
    decisions: Decisions,
    demand: Demand,
    /// Until when decisions were read.
    learnt_until: Option<Timestamp>,
    metrics: Metrics,
    /// Servers were leaving at the last look. What they left may not be known yet.
    waiting: bool,
    /// The last state of each rule, to log changes only.
    states: HashMap<HeadroomRule, HeadroomState>,
}

/// Looks at the rules regularly, if there are any.
pub(crate) fn start(
    selector: &Selector,
    options: HeadroomOptions,
    metrics: &Metrics,
    tasks: &Tasks,
) {
    if options.rules.is_empty() {
        return;
    }
    let (stop, every) = (tasks.stop().clone(), options.every);
    let mut keeper = HeadroomKeeper::new(selector, options, metrics);
    tasks.spawn("headroom", async move {
        while pause(&stop, every).await {
            keeper.look().await;
        }
    });
}

impl HeadroomKeeper {
    pub(crate) fn new(selector: &Selector, options: HeadroomOptions, metrics: &Metrics) -> Self {
        Self {
            selector: selector.for_what_ifs(),
            options,
            decisions: selector.decisions.clone(),
            demand: Demand::default(),
            learnt_until: None,
            metrics: metrics.clone(),
            waiting: false,
            states: HashMap::new(),
        }
    }

    /// Looks at every rule once.
    pub(crate) async fn look(&mut self) {
        // Without its ledger the scheduler evicts nothing.
        let Some(evacuations) = self.selector.preempting.get().cloned() else {
            return;
        };
        if let Err(error) = self.learn().await {
            let code = error.code();
            tracing::warn!(code, "headroom: the demand is as it was last read: {error}");
        }
        for rule in self.options.rules.clone() {
            match self.keep(&rule, &evacuations).await {
                Ok(Some(state)) => self.note(rule, state),
                // The room that is being made for one rule may do for the others.
                Ok(None) => return,
                Err(error) => {
                    tracing::warn!(code = error.code(), %rule, "headroom: {error}");
                }
            }
        }
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
        let flavor = self.flavor(rule).await?;
        let aggregate = self.aggregate(rule)?;
        let wanted = self.wanted(rule, &flavor.name, aggregate.as_ref());
        if wanted == 0 {
            return Ok(Some(HeadroomState::Free));
        }
        let mut without_agents = Vec::new();
        loop {
            let ignored = without_agents.clone();
            let request = self.request(flavor.clone(), wanted, aggregate.as_ref(), ignored);
            let (spec, servers) = request.await?;
            let victims = match self.selector.victims_for(spec, servers).await {
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

    /// The flavor of a rule, which must be a normal one.
    async fn flavor(&self, rule: &HeadroomRule) -> Result<Flavor, WhatIfError> {
        let nova = self.selector.facts.database.nova();
        let flavor = offered_flavor(nova, &rule.flavor, |_| true).await?;
        if flavor.is_preemptible() {
            let why = "the flavor is preemptible, and no server leaves for it".to_owned();
            return Err(WhatIfError::Unknown(why));
        }
        Ok(flavor)
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

    /// The aggregate of a rule; `None`: any host.
    fn aggregate(&self, rule: &HeadroomRule) -> Result<Option<Aggregate>, WhatIfError> {
        let Some(called) = &rule.aggregate else {
            return Ok(None);
        };
        let facts = &self.selector.facts;
        let mut all = facts.read(Cloud::aggregate_views).into_iter();
        let found = all.find(|known| known.name == *called || known.id.to_string() == *called);
        let missing = || WhatIfError::Unknown(format!("there is no aggregate {called:?}"));
        found.map(Some).ok_or_else(missing)
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

    /// The request for so many servers, and their ids, which no server has.
    async fn request(
        &self,
        flavor: Flavor,
        wanted: u32,
        aggregate: Option<&Aggregate>,
        ignore_hosts: Vec<String>,
    ) -> Result<(RequestSpec, Vec<Uuid>), WhatIfError> {
        let question = WhatIf {
            servers: (0..wanted).map(|_| ServerId(ids::new())).collect(),
            ignore_hosts,
            ..WhatIf::default()
        };
        let nova = self.selector.facts.database.nova();
        let mut spec = question.request_of(flavor, nova).await?;
        spec.requested_destination = aggregate.map(|aggregate| Destination {
            aggregates: Some(Some(vec![aggregate.id.to_string()])),
            ..Destination::default()
        });
        Ok((spec, question.instances()))
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
