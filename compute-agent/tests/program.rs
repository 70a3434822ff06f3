//! The program `ebbtide-agent` as a process: against a real RabbitMQ, killed and restarted; and
//! what it says to people.
#![allow(clippy::unwrap_used, clippy::expect_used)] // All of it is a test, its helpers too.

use ebbtide_bus::{AmqpBus, AmqpConfig, Bus, OutgoingMessage, QueuePrefix, Subscription};
use ebbtide_harness::{Process, ProcessCommand, RabbitMq, SharedServers, Signal};
use ebbtide_model::message::{Body, EvacuationEnd, Message, Notice, Start};
use ebbtide_model::{
    EvacuationId, InterruptionBehaviour, MessageId, ResourceClass, Resources, Seconds, ServerId,
    Timestamp,
};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;
use uuid::Uuid;

/// Everything here takes a few seconds; a machine with other work takes longer.
const PATIENCE: Duration = Duration::from_secs(120);

fn program() -> PathBuf {
    env!("CARGO_BIN_EXE_ebbtide-agent").into()
}

/// The scheduler's side of a region with one agent.
struct Region {
    prefix: QueuePrefix,
    bus: AmqpBus,
    reports: Subscription,
    dir: tempfile::TempDir,
    next_message: u128,
}

fn server() -> ServerId {
    ServerId(Uuid::from_u128(0x5e01))
}

fn now() -> Timestamp {
    use ebbtide_agent::clock::{Clock, SystemClock};
    SystemClock.now()
}

impl Region {
    async fn new(url: &str, prefix: &str) -> Self {
        let prefix = QueuePrefix::new(prefix.trim_end_matches('.')).unwrap();
        let config = AmqpConfig::new(vec![url.parse().unwrap()], "test");
        let bus = AmqpBus::connect(config, PATIENCE).await.unwrap();
        bus.declare(&prefix.agent("host-a").unwrap()).await.unwrap();
        let reports = bus.consume(&prefix.scheduler(), 100).await.unwrap();
        let dir = tempfile::tempdir().unwrap();
        let file = format!(
            "host = \"host-a\"\nstate_dir = {:?}\n[bus]\nurls = [\"{url}\"]\nprefix = \"{prefix}\"\n\
             [agent]\npoll_seconds = 0.1\n\
             [driver.simulated]\ninventory = {{ VCPU = 4 }}\n",
            dir.path().join("state"),
        );
        std::fs::write(dir.path().join("agent.toml"), file).unwrap();
        Self {
            prefix,
            bus,
            reports,
            dir,
            next_message: 1,
        }
    }

    fn state_dir(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    fn start_agent(&self, log: &str) -> Process {
        ProcessCommand::new("agent", program())
            .arg("--config")
            .arg(self.dir.path().join("agent.toml"))
            .arg("--log-json")
            .spawn(self.dir.path().join(log))
            .unwrap()
    }

    async fn send(&mut self, body: Body) -> Message {
        let message = Message {
            id: MessageId(Uuid::from_u128(self.next_message)),
            source: "/ebbtide/scheduler".to_owned(),
            time: now(),
            body,
        };
        self.next_message += 1;
        self.send_again(&message).await;
        message
    }

    async fn send_again(&self, message: &Message) {
        let queue = self.prefix.agent("host-a").unwrap();
        let outgoing = OutgoingMessage::cloud_event(message.id.0, message.to_bytes().unwrap());
        self.bus.publish(&queue, &outgoing).await.unwrap();
    }

    async fn run_server(&mut self) {
        let mut resources = Resources::new();
        resources.set(ResourceClass::vcpu(), 2).unwrap();
        self.send(Body::Start(Start {
            server_id: server(),
            name: "victim".to_owned(),
            project_id: "p".to_owned(),
            flavor: "m".to_owned(),
            resources,
            preemptible: true,
            attempt: 0,
            resume: false,
            storage: None,
        }))
        .await;
        let report = self.report().await;
        assert!(matches!(report, Body::Started(_)), "{report:?}");
    }

    async fn notice(&mut self, grace: u32) -> Message {
        let begin_before = now().plus(Seconds(600));
        self.send(Body::Notice(Notice {
            evacuation_id: EvacuationId(Uuid::from_u128(0xe001)),
            server_id: server(),
            behaviour: InterruptionBehaviour::Terminate,
            grace_seconds: Seconds(grace),
            attempt: 1,
            begin_before,
        }))
        .await
    }

    async fn deadline(&mut self) -> Timestamp {
        match self.report().await {
            Body::Draining(m) => m.deadline_at,
            other => panic!("not draining: {other:?}"),
        }
    }

    async fn report(&mut self) -> Body {
        loop {
            let delivery = tokio::time::timeout(PATIENCE, self.reports.next()).await;
            let delivery = delivery.expect("a report comes").expect("the bus is open");
            let message = Message::from_bytes(&delivery.body).unwrap();
            delivery.ack().await;
            if !matches!(message.body, Body::Heartbeat(_)) {
                return message.body;
            }
        }
    }

    async fn evacuated(&mut self, original: Timestamp) {
        loop {
            match self.report().await {
                Body::Draining(again) => assert_eq!(again.deadline_at, original),
                Body::Evacuated(m) => {
                    assert_eq!(m.how, EvacuationEnd::Terminated);
                    assert!(m.at >= original, "{} is before {original}", m.at);
                    return;
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

async fn ends_well(agent: &Process) {
    agent.signal(Signal::Term).unwrap();
    let status = agent.wait_exit(PATIENCE).await.unwrap();
    assert!(status.success(), "{status}: {}", agent.log_tail());
}

#[tokio::test]
async fn an_agent_that_is_killed_in_the_grace_period_ends_its_victim_at_the_original_deadline() {
    let broker = SharedServers::rabbitmq().await.unwrap();
    let mut region = Region::new(broker.url(), broker.prefix()).await;
    let agent = region.start_agent("first.log");
    region.run_server().await;
    let notice = region.notice(4).await;
    let original = region.deadline().await;
    agent.kill();
    region.send_again(&notice).await;
    let agent = region.start_agent("second.log");
    region.evacuated(original).await;
    let shown = simulate(&region.state_dir(), &["show"]);
    assert_eq!(text(&shown.stdout).lines().count(), 1, "no server is left");
    ends_well(&agent).await;
}

#[tokio::test]
async fn an_agent_outlives_its_broker_and_reports_when_it_is_back() {
    let mut broker = RabbitMq::start().await.unwrap();
    let mut region = Region::new(&broker.url(), "outlived").await;
    let agent = region.start_agent("agent.log");
    region.run_server().await;
    region.notice(1).await;
    let original = region.deadline().await;
    // Once the broker has confirmed that the grace period runs, the act itself needs no broker.
    let sent = "\"report\":\"org.ebbtide.evacuation.draining";
    agent.wait_for_line(sent, PATIENCE).await.unwrap();
    broker.kill();
    let asked = agent.wait_for_line("terminate the server", PATIENCE).await;
    asked.unwrap();
    broker.restart().await.unwrap();
    region.evacuated(original).await;
    ends_well(&agent).await;
}

// ---- what it says to people ----

fn run(arguments: &[&str]) -> Output {
    std::process::Command::new(program())
        .args(arguments)
        .env_clear()
        .output()
        .unwrap()
}

fn simulate(state_dir: &Path, words: &[&str]) -> Output {
    let mut arguments = vec!["simulate", "--state-dir", state_dir.to_str().unwrap()];
    arguments.extend(words);
    run(&arguments)
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn help_has_examples_and_exit_codes() {
    let help = run(&["--help"]);
    assert!(help.status.success());
    for part in ["Examples:", "simulate --state-dir", "Exit codes:", "config"] {
        assert!(
            text(&help.stdout).contains(part),
            "{part}: {}",
            text(&help.stdout)
        );
    }
}

#[test]
fn a_wrong_configuration_is_named_and_ends_with_2() {
    let wrong = run(&["run", "--host", "h"]);
    assert_eq!(wrong.status.code(), Some(2));
    let said = text(&wrong.stderr);
    assert!(
        said.contains("EB-AGENT-001: configuration: driver.simulated.inventory: it is missing"),
        "{said}"
    );
    assert_eq!(run(&["walk"]).status.code(), Some(2));
}

#[test]
fn a_good_configuration_is_checked_without_starting_anything() {
    let dir = tempfile::tempdir().unwrap();
    let state_dir = dir.path().join("not-made");
    let state = state_dir.to_str().unwrap();
    let checked = run(&[
        "config",
        "check",
        "--host",
        "h",
        "--state-dir",
        state,
        "--bus-url",
        "amqps://u:secret@broker/",
        "--set",
        "driver.simulated.inventory={VCPU=4}",
    ]);
    assert!(checked.status.success(), "{}", text(&checked.stderr));
    let said = text(&checked.stdout);
    assert!(
        said.contains("ebbtide.agent.h") && !said.contains("secret"),
        "{said}"
    );
    assert!(!state_dir.exists());
}

#[test]
fn a_second_agent_on_the_same_state_ends_with_3() {
    let dir = tempfile::tempdir().unwrap();
    let lock = std::fs::File::create(dir.path().join("agent.lock")).unwrap();
    lock.lock().unwrap();
    let state = dir.path().to_str().unwrap();
    let second = run(&[
        "--host",
        "h",
        "--state-dir",
        state,
        "--bus-url",
        "amqp://127.0.0.1:1/",
        "--set",
        "driver.simulated.inventory={VCPU=4}",
    ]);
    assert_eq!(second.status.code(), Some(3), "{}", text(&second.stderr));
    assert!(text(&second.stderr).contains("EB-AGENT-003"));
}

#[tokio::test]
async fn an_agent_without_a_broker_starts_and_ends_when_it_is_asked_to() {
    let dir = tempfile::tempdir().unwrap();
    let agent = ProcessCommand::new("agent", program())
        .args(["--host", "h", "--bus-url", "amqp://127.0.0.1:1/"])
        .args([
            "--set",
            "driver.simulated.inventory={VCPU=4}",
            "--state-dir",
        ])
        .arg(dir.path().join("state"))
        .spawn(dir.path().join("log"))
        .unwrap();
    agent
        .wait_for_line("the journal has been read", PATIENCE)
        .await
        .unwrap();
    ends_well(&agent).await;
}
