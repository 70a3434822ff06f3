//! What the service says of its own health: signs of life of its loop, and what is wrong. The pages
//! `/metrics`, `/healthz` and `/readyz` and the watchdog of systemd read it.

use crate::service::fault::ServiceError;
use crate::service::metrics::{Metrics, WorkCounts};
use crate::service::shell::Service;
use ebbtide_batch::view::ElasticView;
use ebbtide_batch::{BatchError, BatchSettings};
use ebbtide_listen::pages::{HealthSource, Pages};
use ebbtide_runtime::clock;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// A look may take this long beside Slurm's programs: several calls of the cloud, of which each has
/// 20 seconds.
const LOOK: Duration = Duration::from_secs(120);
/// Slurm's programs that one look runs at most, apart from starts of members.
const PROGRAMS: f64 = 4.0;
/// Interval of counts of works: a book may have thousands.
const COUNT_EVERY: Duration = Duration::from_secs(5);
/// Faults for which the service cannot do its work. With others (no capacity, a used-up budget) it
/// does what is configured.
const NEEDED: [&str; 2] = ["look", "marks"];

/// The health of the service. Cheap to clone; all clones are one.
#[derive(Debug, Clone)]
pub(crate) struct Health(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// The loop is stuck after a silence of this length.
    patience: Duration,
    state: Mutex<HealthState>,
    metrics: Metrics,
}

#[derive(Debug)]
struct HealthState {
    /// The last turn of the loop.
    beat: Instant,
    /// Slurm and the cloud were seen since the start.
    looked: bool,
    /// When works were last counted.
    counted: Option<Instant>,
    /// What is wrong: codes by place.
    faults: BTreeMap<String, String>,
}

impl Health {
    pub(crate) fn new(settings: &BatchSettings) -> Self {
        let programs = settings.slurm.timeout_seconds * PROGRAMS;
        let patience = Duration::from_secs_f64(settings.poll_seconds + programs) + LOOK;
        Self(Arc::new(Shared {
            patience,
            state: Mutex::new(HealthState {
                beat: clock::timer(),
                looked: false,
                counted: None,
                faults: BTreeMap::new(),
            }),
            metrics: Metrics::new(settings.elastic.is_some()),
        }))
    }

    /// Serves the pages, if the settings say where.
    ///
    /// # Errors
    /// The address cannot be used.
    pub(crate) async fn serve(
        &self,
        listen: Option<SocketAddr>,
    ) -> Result<Option<Pages>, ServiceError> {
        let Some(listen) = listen else {
            return Ok(None);
        };
        let serving = Pages::serve(self.clone(), listen).await;
        let taken = |error: std::io::Error| BatchError::Setting {
            key: "http.listen".to_owned(),
            problem: error.to_string(),
        };
        Ok(Some(serving.map_err(taken)?))
    }

    /// A turn of the loop begins.
    pub(crate) fn beat(&self) {
        self.state().beat = clock::timer();
    }

    /// False if the loop is stuck: systemd restarts the service then.
    pub(crate) fn is_alive(&self) -> bool {
        clock::timer().saturating_duration_since(self.state().beat) <= self.0.patience
    }

    /// Takes over what a look has brought.
    pub(crate) fn looked(&self, service: &mut Service<'_>) {
        let faults = service.faults.now().clone();
        let good = !faults.contains_key("look");
        let metrics = &self.0.metrics;
        metrics.looked(good, service.looked);
        metrics.faults(&faults);
        let view = service.elastic.as_ref().and_then(|elastic| elastic.view);
        metrics.servers(service.servers_there());
        metrics.elastic(view.as_ref());
        let now = clock::timer();
        let due = {
            let mut state = self.state();
            state.looked |= good;
            state.faults = faults;
            let since = state.counted.map(|at| now.saturating_duration_since(at));
            let due = since.is_none_or(|since| since >= COUNT_EVERY);
            if due {
                state.counted = Some(now);
            }
            due
        };
        if due && let Some(works) = service.count_works() {
            metrics.works(&works);
        }
    }

    fn reasons(&self) -> Vec<String> {
        let state = self.state();
        if state.faults.is_empty() && !state.looked {
            return vec!["Slurm and the cloud were not looked at yet".to_owned()];
        }
        let needed = state.faults.iter();
        let needed = needed.filter(|(place, _)| NEEDED.contains(&place.as_str()));
        needed
            .map(|(place, code)| format!("{place}: {code}; the log has the words"))
            .collect()
    }

    fn state(&self) -> MutexGuard<'_, HealthState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HealthSource for Health {
    fn metrics(&self) -> (&'static str, String) {
        let ready = self.is_alive() && self.reasons().is_empty();
        (ebbtide_metrics::CONTENT_TYPE, self.0.metrics.text(ready))
    }

    fn stuck(&self) -> Vec<String> {
        match self.is_alive() {
            true => Vec::new(),
            false => vec!["the loop that looks at Slurm and the cloud".to_owned()],
        }
    }

    fn not_ready(&self) -> Vec<String> {
        let mut reasons = self.stuck();
        reasons.extend(self.reasons());
        reasons
    }
}

impl Service<'_> {
    /// Servers that are there or come: of types, and of the elastic partition.
    fn servers_there(&self) -> (usize, usize) {
        let elastic = self.elastic.as_ref();
        let of_elastic = |node: &str| elastic.is_some_and(|elastic| elastic.has(node));
        let there = self.servers.iter().filter(|one| one.status.is_there());
        there.fold((0, 0), |(types, elastic), one| {
            match of_elastic(&one.node) {
                true => (types, elastic + 1),
                false => (types + 1, elastic),
            }
        })
    }

    /// Works by state. `None` if the book cannot be read; then a fault says so.
    fn count_works(&mut self) -> Option<WorkCounts> {
        let now = clock::unix_millis();
        let controller = self.controller().ok()?;
        let mut counts = WorkCounts::new();
        for (id, book) in &controller.book().works {
            let state = controller.state(now, *id);
            let state = state.unwrap_or_else(|| book.state(now));
            *counts.entry(state.as_str()).or_default() += 1;
        }
        Some(counts)
    }
}

/// The long-load ratio for a gauge: 0 without on-demand nodes.
pub(crate) fn ratio(view: Option<&ElasticView>) -> f64 {
    view.and_then(|view| view.long_load_ratio).unwrap_or(0.0)
}
