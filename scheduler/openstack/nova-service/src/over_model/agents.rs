//! Agents, played by tests.

use ebbtide_bus::{Bus, InProcessBroker, InProcessBus, OutgoingMessage, QueuePrefix, Subscription};
use ebbtide_model::message::{
    Body, Evacuated, EvacuationEnd, EvacuationFailed, Message, Notice, Release, Spare, Spared,
};
use ebbtide_model::{EvacuationId, MessageId, ServerId};
use ebbtide_runtime::clock;
use std::time::Duration;

/// Longer than any scheduler here takes to say something.
const SOON: Duration = Duration::from_secs(20);

/// The agent of one host.
pub(super) struct Agent {
    host: String,
    bus: InProcessBus,
    prefix: QueuePrefix,
    commands: Subscription,
    /// The headers `traceparent` of all messages that it was sent.
    pub(super) contexts: Vec<Option<String>>,
}

impl Agent {
    pub(super) async fn of(host: &str, broker: &InProcessBroker, prefix: &QueuePrefix) -> Self {
        let bus = broker.connect();
        let commands = bus.consume(&prefix.agent(host).unwrap(), 16).await.unwrap();
        Self {
            host: host.to_owned(),
            bus,
            prefix: prefix.clone(),
            commands,
            contexts: Vec::new(),
        }
    }

    async fn hears(&mut self) -> Body {
        let said = tokio::time::timeout(SOON, self.listens()).await;
        said.expect("a message for the agent")
    }

    /// Waits for a message, however long it takes.
    pub(super) async fn listens(&mut self) -> Body {
        let said = self.commands.next().await.unwrap();
        let message = Message::from_bytes(&said.body).unwrap();
        self.contexts.push(said.traceparent.clone());
        said.ack().await;
        message.body
    }

    /// Waits for a notice.
    pub(super) async fn notice(&mut self) -> Notice {
        match self.hears().await {
            Body::Notice(notice) => notice,
            other => panic!("a notice was expected, not {other:?}"),
        }
    }

    /// Waits for a spare.
    pub(super) async fn spare(&mut self) -> Spare {
        match self.hears().await {
            Body::Spare(spare) => spare,
            other => panic!("a spare was expected, not {other:?}"),
        }
    }

    /// Waits for a release.
    pub(super) async fn release(&mut self) -> Release {
        match self.hears().await {
            Body::Release(release) => release,
            other => panic!("a release was expected, not {other:?}"),
        }
    }

    pub(super) async fn says(&self, body: Body) {
        let id = ebbtide_runtime::ids::new();
        let message = Message {
            id: MessageId(id),
            source: format!("/ebbtide/agent/{}", self.host),
            time: clock::now(),
            body,
        };
        let outgoing = OutgoingMessage::cloud_event(id, message.to_bytes().unwrap());
        let queue = self.prefix.scheduler();
        self.bus.declare(&queue).await.unwrap();
        self.bus.publish(&queue, &outgoing).await.unwrap();
    }

    /// The victim of a notice is gone.
    pub(super) async fn gone(&self, notice: &Notice) {
        let body = evacuated(&self.host, notice.evacuation_id, notice.server_id);
        self.says(body).await;
    }

    /// The victim of a notice is shut down and keeps its disk.
    pub(super) async fn stopped(&self, notice: &Notice) {
        self.ended(notice, EvacuationEnd::Stopped).await;
    }

    /// The victim of a notice has ended in this way.
    pub(super) async fn ended(&self, notice: &Notice, how: EvacuationEnd) {
        let mut body = evacuated(&self.host, notice.evacuation_id, notice.server_id);
        if let Body::Evacuated(report) = &mut body {
            report.how = how;
        }
        self.says(body).await;
    }

    /// The victim of a notice could not be ended, and runs.
    pub(super) async fn failed(&self, notice: &Notice) {
        self.says(Body::EvacuationFailed(EvacuationFailed {
            evacuation_id: notice.evacuation_id,
            host: self.host.clone(),
            server_id: notice.server_id,
            reason: "the hypervisor does not answer".to_owned(),
            still_running: true,
            late_attempt: None,
        }))
        .await;
    }

    /// The victim of a notice lives on.
    pub(super) async fn spared(&self, notice: &Notice) {
        self.lets_live(&Spare {
            evacuation_id: notice.evacuation_id,
            server_id: notice.server_id,
        })
        .await;
    }

    /// The server of a spare lives on.
    pub(super) async fn lets_live(&self, spare: &Spare) {
        self.says(Body::Spared(Spared {
            evacuation_id: spare.evacuation_id,
            host: self.host.clone(),
            server_id: spare.server_id,
        }))
        .await;
    }
}

/// The report that a victim is gone.
pub(super) fn evacuated(host: &str, evacuation_id: EvacuationId, server_id: ServerId) -> Body {
    Body::Evacuated(Evacuated {
        evacuation_id,
        host: host.to_owned(),
        server_id,
        how: EvacuationEnd::Terminated,
        at: clock::now(),
        unbilled_seconds: None,
        storage: None,
    })
}
