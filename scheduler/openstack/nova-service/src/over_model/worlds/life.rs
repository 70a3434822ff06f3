//! A scheduler that can be killed: it has a runtime of its own, as a process has.

use super::super::full_host::FullHost;
use crate::Tasks;
use crate::evacuate::Evacuations;
use crate::preemption::PreemptionPolicy;
use ebbtide_bus::{Bus, InProcessBus};
use ebbtide_evacuation::EvacuationPolicy;
use ebbtide_model::Seconds;
use std::future::Future;
use std::sync::Arc;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Short times, so that every limit is met within a world.
fn policy() -> PreemptionPolicy {
    PreemptionPolicy {
        evacuation: EvacuationPolicy {
            notice_timeout: Seconds(1),
            notice_attempts: 3,
            act_timeout: Seconds(3),
            failed_rest: Seconds(1),
        },
        room_timeout: Seconds(15),
        caller_every: Seconds(1),
        give_back_pause: Seconds(1),
        ..PreemptionPolicy::default()
    }
}

pub(super) struct SchedulerProcess {
    /// `None` once it is killed.
    runtime: Option<Runtime>,
    bus: Arc<InProcessBus>,
    pub(super) evacuations: Evacuations,
}

impl SchedulerProcess {
    /// A scheduler starts; one that had its name before is over.
    pub(super) async fn begin(full: &Arc<FullHost>, who: usize) -> Self {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let bus = Arc::new(full.broker.connect());
        let its_bus: Arc<dyn Bus> = Arc::clone(&bus) as Arc<dyn Bus>;
        let full = Arc::clone(full);
        // Its connections to databases belong to its runtime.
        let started = runtime.spawn(async move {
            let name = format!("scheduler-{who}");
            let tasks = Tasks::new(CancellationToken::new());
            let known = full.facts().await;
            full.scheduler(&name, known, its_bus, policy(), tasks).await
        });
        Self {
            evacuations: started.await.unwrap(),
            runtime: Some(runtime),
            bus,
        }
    }

    /// Something that this scheduler does.
    pub(super) fn does<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.runtime.as_ref().unwrap().spawn(work)
    }

    /// Its connection to the broker breaks: what it has not acknowledged comes again.
    pub(super) fn sever(&self) {
        self.bus.sever();
    }

    /// It ends where it waits, without a word.
    pub(super) async fn kill(self) {
        let bus = Arc::clone(&self.bus);
        drop(self);
        bus.close().await;
    }
}

impl Drop for SchedulerProcess {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
