//! The model under the client of `ebbtide-openstack`, with everything that can happen to a request
//! on its way.

use crate::allocations::Flight;
use crate::model::{Model, ModelRequest, ModelResponse, Version};
use ebbtide_openstack::RequestEffect;
use ebbtide_openstack::transport::{
    ExchangeFuture, NoResponse, Transport, TransportRequest, TransportResponse,
};
use serde_json::Value;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What goes wrong with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransportFault {
    /// Placement does what it is asked for, and its answer does not arrive.
    AnswerLost,
    /// There is no connection: Placement has not seen the request.
    NotHeard,
    /// Nothing arrives, neither the request nor an answer, and the client cannot know which.
    Silence,
    /// Refused with this status before anything is done.
    Refused(u16),
    /// Placement has begun with a write of allocations when the client gives up, and is done with
    /// it at [`InProcess::land_late`].
    Late,
}

type Change = Box<dyn FnMut(&mut Model) + Send>;

/// What happens when a request comes.
pub enum ScriptedStep {
    /// It goes wrong.
    Fault(TransportFault),
    /// Another writer is faster: this happens before Placement looks at the request.
    Before(Change),
    /// Another writer is in between: this happens after Placement has begun with the request and
    /// before it is done.
    During(Change),
    /// This happens after Placement has done it and before anybody hears of it.
    After(Change),
}

impl fmt::Debug for ScriptedStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fault(fault) => f.debug_tuple("Fault").field(fault).finish(),
            Self::Before(_) => f.write_str("Before"),
            Self::During(_) => f.write_str("During"),
            Self::After(_) => f.write_str("After"),
        }
    }
}

/// A request that Placement has got.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedRequest {
    /// Method and path, as in `PUT /allocations/…`.
    pub what: String,
    /// Its body; `Null` for none.
    pub body: Value,
    /// The answer's status; `None` if it was not done.
    pub status: Option<u16>,
}

#[derive(Debug)]
struct PlannedFault {
    /// How what is asked begins.
    what: String,
    /// So many more such requests go through before it happens.
    skip: u32,
    /// It happens so often.
    times: u32,
    step: ScriptedStep,
}

#[derive(Debug, Default)]
struct State {
    model: Model,
    planned: Vec<PlannedFault>,
    seen: Vec<RecordedRequest>,
    /// Writes whose clients have given up.
    late: Vec<Flight>,
}

/// A Placement in the process. Cheap to clone; all clones are the same one.
#[derive(Debug, Clone, Default)]
pub struct InProcess {
    state: Arc<Mutex<State>>,
}

impl InProcess {
    /// Serves a model.
    #[must_use]
    pub fn new(model: Model) -> Self {
        let state = State {
            model,
            ..State::default()
        };
        Self {
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// A client of it. Requests that met another writer are tried again at once.
    ///
    /// # Panics
    /// Never: the options are right.
    #[must_use]
    pub fn client(&self) -> ebbtide_openstack::Placement {
        let session = ebbtide_openstack::Session::in_process(Arc::new(self.clone()));
        let options = ebbtide_openstack::AdapterOptions::placement();
        match ebbtide_openstack::Placement::new(session, options) {
            Ok(client) => client.with_retry_wait(std::time::Duration::ZERO),
            Err(error) => unreachable!("{error}"),
        }
    }

    /// Looks at the model, or changes it as another process would.
    pub fn model<T>(&self, with: impl FnOnce(&mut Model) -> T) -> T {
        with(&mut self.state().model)
    }

    /// The next request that begins so (`PUT /allocations/`) meets this.
    pub fn once(&self, what: &str, step: ScriptedStep) {
        self.plan(what, 0, 1, step);
    }

    /// All further ones do.
    pub fn always(&self, what: &str, step: ScriptedStep) {
        self.plan(what, 0, u32::MAX, step);
    }

    /// After `skip` such requests, the next `times` do.
    pub fn plan(&self, what: &str, skip: u32, times: u32, step: ScriptedStep) {
        let what = what.to_owned();
        self.state().planned.push(PlannedFault {
            what,
            skip,
            times,
            step,
        });
    }

    /// Nothing goes wrong any more.
    pub fn mend(&self) {
        self.state().planned.clear();
    }

    /// Placement is done with the writes whose clients have given up; the statuses of its answers.
    pub fn land_late(&self) -> Vec<u16> {
        let mut state = self.state();
        let late = std::mem::take(&mut state.late);
        let landed = late.iter().map(|flight| state.model.land(flight).status);
        landed.collect()
    }

    /// What has come so far.
    #[must_use]
    pub fn seen(&self) -> Vec<RecordedRequest> {
        self.state().seen.clone()
    }

    /// What has come so far that begins so.
    #[must_use]
    pub fn asked(&self, what: &str) -> usize {
        let state = self.state();
        state
            .seen
            .iter()
            .filter(|seen| seen.what.starts_with(what))
            .count()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, sent: &TransportRequest<'_>) -> Result<TransportResponse, NoResponse> {
        let mut state = self.state();
        let request = ModelRequest {
            method: sent.method,
            path: sent.path,
            version: version(sent.microversion),
            body: sent.body,
        };
        let what = format!("{} {}", sent.method, sent.path);
        let mut step = state.next_step(&what);
        let mut seen = RecordedRequest {
            what,
            body: sent.body.cloned().unwrap_or(Value::Null),
            status: None,
        };
        let silence = |effect| NoResponse {
            problem: "no answer".to_owned(),
            effect,
        };
        let before = match &step {
            Some(ScriptedStep::Fault(TransportFault::Late)) => {
                match state.model.take_off(request) {
                    Ok(flight) => {
                        state.late.push(flight);
                        Some(Err(silence(RequestEffect::Unknown)))
                    }
                    Err(answer) => Some(Ok(answer)),
                }
            }
            Some(ScriptedStep::Fault(TransportFault::NotHeard)) => {
                Some(Err(silence(RequestEffect::None)))
            }
            Some(ScriptedStep::Fault(TransportFault::Silence)) => {
                Some(Err(silence(RequestEffect::Unknown)))
            }
            Some(ScriptedStep::Fault(TransportFault::Refused(status))) => Some(Ok(ModelResponse {
                status: *status,
                body: Value::Null,
            })),
            _ => None,
        };
        let answer = match before {
            Some(Err(silence)) => {
                state.seen.push(seen);
                return Err(silence);
            }
            Some(Ok(answer)) => answer,
            None => state.serve(request, &mut step),
        };
        seen.status = Some(answer.status);
        state.seen.push(seen);
        if matches!(step, Some(ScriptedStep::Fault(TransportFault::AnswerLost))) {
            return Err(silence(RequestEffect::Unknown));
        }
        Ok(TransportResponse {
            status: answer.status,
            headers: Vec::new(),
            body: answer.body,
        })
    }
}

impl State {
    /// The step that is due for a request; one that is due again stays planned.
    fn next_step(&mut self, what: &str) -> Option<ScriptedStep> {
        let mut due = None;
        for (place, planned) in self.planned.iter_mut().enumerate() {
            if !what.starts_with(&planned.what) {
                continue;
            }
            if planned.skip > 0 {
                planned.skip -= 1;
            } else if due.is_none() {
                due = Some(place);
            }
        }
        let place = due?;
        let planned = &mut self.planned[place];
        planned.times -= u32::from(planned.times != u32::MAX);
        if planned.times == 0 {
            return Some(self.planned.remove(place).step);
        }
        match &planned.step {
            ScriptedStep::Fault(fault) => Some(ScriptedStep::Fault(fault.clone())),
            // What changes the model happens once.
            _ => Some(self.planned.remove(place).step),
        }
    }

    fn serve(
        &mut self,
        request: ModelRequest<'_>,
        step: &mut Option<ScriptedStep>,
    ) -> ModelResponse {
        if let Some(ScriptedStep::Before(change)) = step {
            change(&mut self.model);
        }
        let answer = match self.model.take_off(request) {
            Ok(flight) => {
                if let Some(ScriptedStep::During(change)) = step {
                    change(&mut self.model);
                }
                self.model.land(&flight)
            }
            Err(answer) => answer,
        };
        if let Some(ScriptedStep::After(change)) = step {
            change(&mut self.model);
        }
        answer
    }
}

impl Transport for InProcess {
    fn exchange<'a>(&'a self, request: TransportRequest<'a>) -> ExchangeFuture<'a> {
        Box::pin(async move { self.answer(&request) })
    }
}

fn version(text: Option<&str>) -> Version {
    let parts = text.and_then(|text| text.split_once('.'));
    let read = parts.and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    read.unwrap_or((1, 0))
}
