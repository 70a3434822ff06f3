//! The calls of tenants, and their answers out of the book.

use crate::service::fault::ServiceError;
use crate::service::shell::Service;
use ebbtide_batch::view::{PlanView, ServerView, ServiceStatus, WorkDetails, WorkSummary};
use ebbtide_batch::{
    BatchError, BookEntry, CheckedWork, ReplayRules, ServerType, ServersCost, Work, WorkBook,
    WorkId, WorkState, report, servers_cost,
};
use ebbtide_batch_service::faults::log;
use ebbtide_burst::Status;
use ebbtide_model::Money;
use ebbtide_runtime::clock::unix_millis;
use ebbtide_shell::errors::CliError;
use serde_json::{Value, json};
use tokio::sync::oneshot;

/// What a tenant asks.
#[derive(Debug)]
pub(crate) enum BatchRequest {
    Submit(Value),
    Plan(Value),
    List,
    Show(WorkId),
    Cancel(WorkId),
    SetBudget(WorkId, Option<Money>),
    Report(WorkId),
    ElasticReport,
    Status,
}

/// A call that waits for its answer.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) ask: BatchRequest,
    pub(crate) answer: oneshot::Sender<Result<Value, CliError>>,
}

impl Service<'_> {
    pub(crate) fn answer(&mut self, call: Call) {
        let answer = self.reply(call.ask);
        // A caller that has gone away needs no answer.
        let _ = call.answer.send(answer);
    }

    fn reply(&mut self, ask: BatchRequest) -> Result<Value, CliError> {
        let now = unix_millis();
        match ask {
            BatchRequest::Submit(document) => {
                let checked = self.checked(document, now)?;
                if !self.settings.rehearse {
                    make_directories(&checked.book.work)?;
                }
                let taken = self.controller()?.accept(checked);
                let entry = taken.map_err(ServiceError::from)?;
                self.keep(&entry)?;
                log(&format!("work {}: handed in", entry.work));
                self.summary(entry.work, now)
            }
            BatchRequest::Plan(document) => {
                let checked = self.checked(document, now)?;
                let Some(bag) = checked.book.bag else {
                    let problem = "only a bag with rules has a plan to show".to_owned();
                    let key = "rules".to_owned();
                    return Err(ServiceError::from(BatchError::Work { key, problem }).into());
                };
                value(&PlanView::of(&bag))
            }
            BatchRequest::List => {
                let controller = self.controller()?;
                let all = controller.book().works.iter().map(|(id, book)| {
                    let state = controller.state(now, *id);
                    let state = state.unwrap_or_else(|| book.state(now));
                    WorkSummary::of(*id, book, state, now)
                });
                value(&all.collect::<Vec<_>>())
            }
            BatchRequest::Show(id) => {
                let (book, state) = self.work(id, now)?;
                let (book, controller) = (book.clone(), self.controller()?);
                let run = controller.bag_run(id);
                value(&WorkDetails::of(id, &book, state, now, run))
            }
            BatchRequest::Cancel(id) => {
                let entry = self
                    .controller()?
                    .cancel(now, id)
                    .map_err(ServiceError::from)?;
                self.keep(&entry)?;
                log(&format!("work {id}: cancelled"));
                self.summary(id, now)
            }
            BatchRequest::SetBudget(id, budget) => {
                let budget = budget.map(Money::micros);
                let changed = self.controller()?.set_budget(now, id, budget);
                let entry = changed.map_err(ServiceError::from)?;
                self.keep(&entry)?;
                self.summary(id, now)
            }
            BatchRequest::Report(id) => {
                let unknown = (self.settings.policy.length_seconds * 1_000.0) as i64;
                let spare = (self.settings.policy.spare_seconds * 1_000.0) as i64;
                let boot = (self.settings.policy.boot_seconds * 1_000.0) as i64;
                let types: Vec<ServerType> = self.controller()?.types().cloned().collect();
                let paid = self.servers_cost(id, now)?;
                let (book, _) = self.work(id, now)?;
                let rules = replay_rules(book, &types, boot, spare);
                value(&report(book, now, paid, rules.as_ref(), unknown))
            }
            BatchRequest::ElasticReport => {
                let elastic = self.elastic.as_ref().ok_or(BatchError::NoElastic);
                let elastic = elastic.map_err(ServiceError::from)?;
                let record = &self.record_file.record;
                let counts = |node: &str| elastic.counts(node);
                value(&ebbtide_burst::report::report(record, counts))
            }
            BatchRequest::Status => self.status(now),
        }
    }

    /// Checks a work by the prices and servers of the last look.
    fn checked(&mut self, document: Value, now: i64) -> Result<CheckedWork, CliError> {
        let (prices, servers) = (self.prices.clone(), self.servers.clone());
        let controller = self.controller()?;
        let checked = controller.check(now, document, &prices, &servers);
        Ok(checked.map_err(ServiceError::from)?)
    }

    /// Writes a change down before it is answered.
    fn keep(&mut self, entry: &BookEntry) -> Result<(), CliError> {
        self.write(std::slice::from_ref(entry))?;
        Ok(self.book.sync()?)
    }

    fn work(&mut self, id: WorkId, now: i64) -> Result<(&WorkBook, WorkState), CliError> {
        let unknown = || BatchError::Unknown { id: id.to_string() };
        let controller = self.controller()?;
        let found = controller.book().works.get(&id);
        let found = found.zip(controller.state(now, id));
        Ok(found.ok_or_else(unknown).map_err(ServiceError::from)?)
    }

    /// What whole servers cost for a work until now.
    fn servers_cost(&mut self, id: WorkId, now: i64) -> Result<ServersCost, CliError> {
        let mut lives = self.record_file.record.lives.clone();
        if let Some(elastic) = &self.elastic {
            lives.retain(|_, life| !elastic.has(&life.node));
        }
        let works = &self.controller()?.book().works;
        let costs = servers_cost(works, lives.values(), now);
        Ok(costs.get(&id).copied().unwrap_or_default())
    }

    fn summary(&mut self, id: WorkId, now: i64) -> Result<Value, CliError> {
        let (book, state) = self.work(id, now)?;
        value(&WorkSummary::of(id, book, state, now))
    }

    fn status(&mut self, now: i64) -> Result<Value, CliError> {
        let from = now - (self.settings.policy.budget_hours * 3_600_000.0) as i64;
        let spent = self.record_file.record.spent(from, now);
        let (servers, faults, looked_ms) =
            (self.servers.clone(), self.faults.now().clone(), self.looked);
        let elastic = self.elastic.as_ref().and_then(|elastic| elastic.view);
        let controller = self.controller()?;
        let views = servers.iter().map(|one| {
            let works = controller.book().works.values();
            let members = works.flat_map(|book| {
                let here = book
                    .running()
                    .filter(|(_, attempt)| attempt.node == one.node);
                here.map(|(member, _)| {
                    format!("{} {}", book.work.name, book.work.member_name(member))
                })
            });
            let state = match one.status {
                Status::Coming => "coming",
                Status::Active => "up",
                Status::Leaving => "leaving",
                Status::Kept => "hibernated",
                Status::Going | Status::Failed | Status::Gone => "going",
            };
            ServerView {
                node: one.node.clone(),
                server_type: controller
                    .type_of(&one.node)
                    .map_or_else(|| "elastic".to_owned(), |ty| ty.name.clone()),
                server: one.id.clone(),
                state: state.to_owned(),
                launched_ms: one.launched_ms,
                until_ms: one.deadline_ms,
                members: members.collect(),
            }
        });
        value(&ServiceStatus {
            faults,
            looked_ms,
            servers: views.collect(),
            elastic,
            spent: Money::from_micros(spent),
        })
    }
}

/// Makes the directories of a work. A work that has none would wait for ever.
fn make_directories(work: &Work) -> Result<(), CliError> {
    for dir in ebbtide_batch::script::directories(work) {
        std::fs::create_dir_all(&dir).map_err(|error| {
            ServiceError::from(BatchError::Work {
                key: "dir".to_owned(),
                problem: format!("{dir}: {error}"),
            })
        })?;
    }
    Ok(())
}

/// The on-demand type that a work would have run on: the cheapest that has room for each member.
fn replay_rules(
    book: &WorkBook,
    types: &[ServerType],
    boot: i64,
    spare: i64,
) -> Option<ReplayRules> {
    let stages = &book.work.stages;
    let fits = |ty: &&ServerType| {
        let each = stages.iter();
        !ty.preemptible
            && each.clone().all(|stage| ty.vcpus >= stage.cpus)
            && each.clone().all(|stage| ty.memory_mb >= stage.memory_mb)
    };
    let own = |ty: &&ServerType| ty.maps == book.bag.is_some();
    let types = types.iter().filter(own);
    let ty = types.clone().filter(fits).min_by_key(|ty| ty.price)?;
    // As many servers at a time as the pool may have.
    let most = types.map(|ty| ty.nodes.len()).sum();
    Some(ReplayRules {
        vcpus: ty.vcpus,
        memory_mb: ty.memory_mb,
        hourly: ty.price,
        most,
        boot,
        spare,
    })
}

fn value(body: &impl serde::Serialize) -> Result<Value, CliError> {
    serde_json::to_value(body).map_err(|error| CliError::Write(std::io::Error::other(error)))
}

/// The body of an answer that has nothing to say.
pub(crate) fn well() -> Value {
    json!({"status": "ok"})
}
