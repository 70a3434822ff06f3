//! Chooses the hosts of a request. The scheduler decides in memory, and the claims verify that. It
//! asks Placement if memory cannot tell, and before it answers that there is no capacity.

use super::claim::{Claimer, HostProof, RetryBudget};
use super::{SelectRequest, Selector};
use ebbtide_nova::fault::NovaException;
use ebbtide_nova_cloud::{
    CandidateHosts, Claim, ClaimResult, Cloud, PlacementQuery, Scheduling, SchedulingAction,
    SelectedHost,
};
use ebbtide_openstack::{OpenStackError, Placement};
use ebbtide_runtime::clock::Stopwatch;
use serde_json::Value;
use uuid::Uuid;

/// Maximum number of decisions for a request because a host differed from its known state; then
/// Placement is asked.
const TRIES: u32 = 4;
/// Maximum number of restarts because hosts were added or removed between query and answer.
const ROUNDS: u32 = 8;

/// The outcome of one run over the candidates.
enum RunEnd {
    Selected(Vec<Vec<SelectedHost>>),
    Fault(NovaException),
    /// Nothing is claimed, and a host differed from its known state: decide again.
    Again,
    /// A fault that may be caused by outdated data.
    Doubtful(NovaException),
}

impl Selector {
    /// Decides and claims.
    ///
    /// # Errors
    /// The exceptions that Nova raises. NoValidHost only if Placement itself offers no host, or the
    /// filters reject all that it offers.
    pub(super) async fn decide(
        &self,
        request: &SelectRequest,
    ) -> Result<Vec<Vec<SelectedHost>>, NovaException> {
        let decided = self.decide_and_claim(request).await;
        if decided.is_err() {
            self.claimer(request).give_back_doubtful().await;
        }
        decided
    }

    fn claimer<'a>(&'a self, request: &'a SelectRequest) -> Claimer<'a> {
        Claimer {
            facts: &self.facts,
            preempting: &self.preempting,
            metrics: &self.metrics,
            placement: self.facts.providers.placement(&request.id),
            request,
            patience: self.settings.placement_patience,
        }
    }

    async fn decide_and_claim(
        &self,
        request: &SelectRequest,
    ) -> Result<Vec<Vec<SelectedHost>>, NovaException> {
        for _ in 0..ROUNDS {
            let ended = match &request.asked {
                Some(asked) => self.decide_asked(request, asked).await?,
                None => {
                    let all = self.facts.read(|cloud| cloud.all_hosts());
                    self.run(request, &all, false, None).await?
                }
            };
            match ended {
                RunEnd::Selected(selected) => return Ok(selected),
                RunEnd::Fault(fault) | RunEnd::Doubtful(fault) => return Err(fault),
                RunEnd::Again => {}
            }
        }
        request.note_silence();
        tracing::warn!(code = "EB-DOOR-033", request = %request.id, "hosts came or went during {ROUNDS} decisions in a row");
        Err(NovaException::new(
            "NoValidHost",
            "There are not enough hosts available.",
        ))
    }

    async fn decide_asked(
        &self,
        request: &SelectRequest,
        asked: &PlacementQuery,
    ) -> Result<RunEnd, NovaException> {
        let mut failed: Option<(CandidateHosts, NovaException)> = None;
        for _ in 0..TRIES {
            let first = self.first_decision(request, asked);
            let (known, begun) = match first {
                Some((known, scheduling)) => (known, Some(scheduling)),
                None => match self.facts.read(|cloud| cloud.candidates(asked)) {
                    Ok(known) if !known.is_empty() => (known, None),
                    Ok(_) => break,
                    Err(why) => {
                        tracing::debug!(request = %request.id, ?why, "a question for Placement");
                        break;
                    }
                },
            };
            match self.run(request, &known, true, begun).await? {
                selected @ RunEnd::Selected(_) => return Ok(selected),
                // A host that only Placement knows could be missing.
                RunEnd::Fault(fault) if fault.class == "NoValidHost" => {
                    failed = Some((known, fault));
                    break;
                }
                RunEnd::Doubtful(_) => break,
                fault @ RunEnd::Fault(_) => {
                    request.say_start(&self.notices);
                    return Ok(fault);
                }
                RunEnd::Again => {}
            }
        }
        let watch = Stopwatch::start();
        let offered = self.ask_placement(request, asked).await?;
        request.trace().took("placement", watch.elapsed());
        if offered.is_empty() {
            request.trace().nothing_offered(offered);
            tracing::info!(request = %request.id, "Placement has no candidate");
            return Err(NovaException::new("NoValidHost", ""));
        }
        request.say_start(&self.notices);
        // Placement offers no further host, so another run would have the same result.
        if let Some((known, fault)) = failed
            && offered.are_among(&known)
        {
            return Err(fault);
        }
        self.run(request, &offered, false, None).await
    }

    /// The decision that was made when the request arrived, if nothing has changed since.
    fn first_decision(
        &self,
        request: &SelectRequest,
        asked: &PlacementQuery,
    ) -> Option<(CandidateHosts, Scheduling)> {
        let changes = self.facts.changes();
        request.ahead().current_decision(asked, changes)
    }

    /// Placement's own answer to Nova's query. Waits for an unavailable Placement for a limited
    /// time.
    async fn ask_placement(
        &self,
        request: &SelectRequest,
        asked: &PlacementQuery,
    ) -> Result<CandidateHosts, NovaException> {
        self.metrics.question();
        let foreseen = request.ahead().answer.take();
        let answer = match foreseen.filter(|(question, _)| question == asked) {
            Some((_, answer)) => Some(answer),
            None => {
                let mut patience =
                    RetryBudget::new(self.settings.placement_patience, &request.stop);
                let placement = self.facts.providers.placement(&request.id);
                loop {
                    match put_question(&placement, asked).await {
                        Ok(answer) => break Some(answer),
                        Err(error) => {
                            if !patience.wait(&error).await {
                                tracing::warn!(code = error.code(), "{error}");
                                break None;
                            }
                        }
                    }
                }
            }
        };
        let Some(answer) = answer else {
            // As in Nova, no answer means no candidate.
            request.note_silence();
            return Ok(CandidateHosts::default());
        };
        // An empty answer changes nothing, and a plan that was made on this state stays current.
        let put = match is_empty(&answer) {
            true => Ok(0),
            false => self.facts.write(|cloud| cloud.put_summaries(&answer)),
        };
        put.and_then(|_| {
            self.facts
                .read(|cloud| cloud.candidates_from_answer(&answer))
        })
        .map_err(|error| {
            tracing::error!(code = error.code(), "{error}");
            NovaException::new("NoValidHost", "")
        })
    }

    /// Decides on these candidates and claims, step by step. `known`: they come from memory, so a
    /// refusal means that memory is outdated. `begun`: the decision, if it was made already.
    async fn run(
        &self,
        request: &SelectRequest,
        candidates: &CandidateHosts,
        known: bool,
        begun: Option<Scheduling>,
    ) -> Result<RunEnd, NovaException> {
        if !known {
            request.say_start(&self.notices);
        }
        if request.schedule.spec.instance_group.is_some() {
            self.confirm_instances(candidates).await;
        }
        let expected = request.group().expected.clone();
        let watch = Stopwatch::start();
        let begin = |cloud: &Cloud| {
            cloud.decide_expecting(
                request.schedule.spec.clone(),
                request.call.clone(),
                candidates,
                ebbtide_runtime::clock::unix_micros(),
                Some(request.seed),
                &expected,
            )
        };
        let mut scheduling = match begun {
            Some(scheduling) => scheduling,
            None => match self.facts.read(begin) {
                Ok(scheduling) => scheduling,
                Err(_) => return Ok(RunEnd::Again),
            },
        };
        request.trace().took("hosts", watch.elapsed());
        let ended = self.claim_all(request, &mut scheduling, known).await;
        request.trace().decided(scheduling.into_record());
        Ok(ended)
    }

    /// Claims what is decided, step by step.
    async fn claim_all(
        &self,
        request: &SelectRequest,
        scheduling: &mut Scheduling,
        known: bool,
    ) -> RunEnd {
        let claimer = self.claimer(request);
        let mut taken = 0_usize;
        let mut doubtful = false;
        loop {
            match scheduling.next() {
                SchedulingAction::Claim(claim) => {
                    // The first claim alone can be given back without a trace in the request.
                    let proof = match known && taken == 0 {
                        true => self.proof(request, &claim),
                        false => HostProof::Before,
                    };
                    if known
                        && proof == HostProof::Before
                        && !self.is_as_known(request, claim.host.uuid).await
                    {
                        self.metrics.claim("stale");
                        request.trace().refused(
                            &claim.instance_uuid,
                            &claim.host.host,
                            "not tried: the host has changed since it was read",
                        );
                        self.refresh(claim.host.uuid).await;
                        if taken == 0 {
                            return RunEnd::Again;
                        }
                        // Earlier instances of the request already have their claims, so this host
                        // is skipped.
                        doubtful = true;
                        scheduling.claimed(ClaimResult::Refused);
                        continue;
                    }
                    // Nova sends this once Placement has offered a host, and this host is current.
                    request.say_start(&self.notices);
                    let watch = Stopwatch::start();
                    let outcome = Box::pin(claimer.claim(&claim, proof)).await;
                    request.trace().took("claim", watch.elapsed());
                    self.metrics.claim(match outcome {
                        ClaimResult::Taken => "taken",
                        ClaimResult::Refused => "refused",
                        ClaimResult::Fault(_) => "failed",
                    });
                    match outcome {
                        ClaimResult::Taken => taken += 1,
                        ClaimResult::Refused if known => {
                            self.refresh(claim.host.uuid).await;
                            if taken == 0 {
                                return RunEnd::Again;
                            }
                        }
                        _ => {}
                    }
                    scheduling.claimed(outcome);
                }
                SchedulingAction::Done(selected) => {
                    tracing::info!(
                        request = %request.id,
                        hosts = ?selected.iter().filter_map(|hosts| hosts.first()).map(|s| &s.host.host).collect::<Vec<_>>(),
                        passing = scheduling.passing(),
                        "selected"
                    );
                    return RunEnd::Selected(selected);
                }
                SchedulingAction::Failed { fault, release } => {
                    for instance in &release {
                        claimer.release(instance).await;
                    }
                    log_filters(request, scheduling);
                    return if doubtful {
                        RunEnd::Doubtful(fault)
                    } else {
                        RunEnd::Fault(fault)
                    };
                }
            }
        }
    }

    /// When a claim's host is to be looked at. A claim that may replace another one raises the
    /// generation by an unknown number.
    fn proof(&self, request: &SelectRequest, claim: &Claim) -> HostProof {
        let consumer = Uuid::parse_str(&claim.instance_uuid);
        let replaces = request.redelivered || consumer.is_ok_and(|uuid| request.is_doubtful(uuid));
        // A trial makes no claim that could be looked at.
        let replaces = replaces || request.trial.is_some();
        if replaces || !self.facts.providers.look_after_suffices(claim.host.uuid) {
            HostProof::Before
        } else if self.facts.others.may_claim() {
            HostProof::After
        } else {
            HostProof::Beside
        }
    }

    /// Whether a host's provider is unchanged since it was read, by its generation: claims verify
    /// amounts, but not traits and aggregates.
    async fn is_as_known(&self, request: &SelectRequest, host: Uuid) -> bool {
        let looked = request.ahead().host.take();
        if let Some((_, as_known)) = looked.filter(|(provider, _)| *provider == host) {
            return as_known;
        }
        // This scheduler's claims increment the generation, too. While this task holds the lock no
        // claim is under way, and all finished claims are counted.
        let _turn = self.facts.providers.lock_for_look(host).await;
        let before = self.facts.providers.known_generation(host);
        match self.generation(request, host).await {
            Ok(generation) => self.is_known(host, before, generation),
            // The claim waits for an unavailable Placement.
            Err(error) => error.is_passing(),
        }
    }

    /// The same, prefetched and without the lock. `None`: a claim of this scheduler was under way
    /// meanwhile, so a new generation proves nothing.
    pub(super) async fn looks_as_known(&self, request: &SelectRequest, host: Uuid) -> Option<bool> {
        let before = self.facts.providers.writes_at_rest(host)?;
        let known = self.facts.providers.known_generation(host);
        let generation = self.generation(request, host).await.ok()?;
        let after = self.facts.providers.writes_at_rest(host)?;
        (before == after).then(|| self.is_known(host, known, generation))
    }

    /// Whether a generation is known. The host may have been read since the query was sent, when
    /// `before` was known, but a provider with an older generation than that is another one: it was
    /// deleted and made again.
    fn is_known(&self, host: Uuid, before: Option<i64>, generation: i64) -> bool {
        let known = self.facts.providers.known_generation(host);
        let is_known = before <= Some(generation) && known >= Some(generation);
        if !is_known {
            self.facts.providers.note_other_writer();
        }
        is_known
    }

    pub(super) async fn generation(
        &self,
        request: &SelectRequest,
        host: Uuid,
    ) -> Result<i64, OpenStackError> {
        let placement = self.facts.providers.placement(&request.id);
        let provider = placement.provider(host).await?;
        Ok(i64::try_from(provider.generation.0).unwrap_or(i64::MAX))
    }

    /// Reads a host again that differed from its known state.
    async fn refresh(&self, host: Uuid) {
        if let Err(error) = self.facts.providers.refresh(host).await {
            tracing::warn!(code = error.code(), "{error}");
        }
    }

    /// Reads the instances of hosts that no compute has confirmed from the cells, as Nova does for
    /// every request: group filters need them.
    async fn confirm_instances(&self, candidates: &CandidateHosts) {
        let unconfirmed = self.facts.read(|cloud| cloud.unconfirmed(candidates));
        self.facts.database.confirm(unconfirmed).await;
    }
}

/// Sends Nova's query to Placement once, with the second query if there is one.
pub(super) async fn put_question(
    placement: &Placement,
    asked: &PlacementQuery,
) -> Result<Value, OpenStackError> {
    let first = placement
        .allocation_candidates_json(&asked.query.text)
        .await?;
    Ok(match &asked.fallback {
        Some(second) => joined(
            first,
            placement.allocation_candidates_json(&second.text).await?,
        ),
        None => first,
    })
}

/// Whether Placement offers no host.
pub(super) fn is_empty(answer: &Value) -> bool {
    let summaries = answer.get("provider_summaries").and_then(Value::as_object);
    summaries.is_some_and(serde_json::Map::is_empty)
}

/// Joins two answers: the requests one after the other, the summaries of both
/// (`get_allocation_candidates` with the fallback for PCPU).
fn joined(mut first: Value, second: Value) -> Value {
    let Value::Object(second) = second else {
        return first;
    };
    for (key, more) in second {
        match (first.get_mut(&key), more) {
            (Some(Value::Array(all)), Value::Array(more)) => all.extend(more),
            (Some(Value::Object(all)), Value::Object(more)) => all.extend(more),
            _ => {}
        }
    }
    first
}

fn log_filters(request: &SelectRequest, scheduling: &Scheduling) {
    let passed = scheduling
        .filtered()
        .into_iter()
        .map(|(name, start, end)| format!("{name}: (start: {start}, end: {end})"))
        .collect::<Vec<_>>()
        .join(", ");
    tracing::info!(request = %request.id, "Filtering removed all hosts for the request. Filter results: [{passed}]");
}
