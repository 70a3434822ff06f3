//! What the tests on real virtual machines share: a private hypervisor, the driver on it, and a
//! look at its guests.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ebbtide_agent::clock::SystemClock;
use ebbtide_agent::driver::libvirt::{LibvirtDriver, LibvirtSettings};
use ebbtide_agent::driver::{Driver, GuestNotice, ServerView};
use ebbtide_harness::{Hypervisor, eventually};
use ebbtide_model::message::{HostedState, Start};
use ebbtide_model::{
    EvacuationId, InterruptionBehaviour, ResourceClass, Resources, Seconds, ServerId, Timestamp,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// A guest boots in two seconds alone, and in twenty by software emulation on a machine that tests
/// many things.
pub(crate) const BOOT: Duration = Duration::from_secs(120);

/// A guest's answer.
pub(crate) const ANSWER: Duration = Duration::from_secs(45);

/// Memory of a guest, in MiB.
const MEMORY: u64 = 96;

pub(crate) fn half() -> Resources {
    let half = [
        (ResourceClass::vcpu(), 1),
        (ResourceClass::memory_mb(), MEMORY),
        (ResourceClass::disk_gb(), 1),
    ];
    Resources::try_from(BTreeMap::from(half)).unwrap()
}

/// Settings of a driver on this hypervisor, with room for two guests.
pub(crate) fn settings(node: &Hypervisor, more: &str) -> LibvirtSettings {
    let dir = node.dir();
    let template = dir.join("domain.xml");
    if !template.exists() {
        std::fs::write(&template, node.guest().template()).unwrap();
    }
    let text = format!(
        r#"
        uri = "{uri}"
        instances_dir = "{dir}/i"
        run_dir = "{dir}/r"
        template = "{template}"
        domain_type = "{kind}"
        {more}
        [inventory]
        VCPU = {{ total = 2 }}
        MEMORY_MB = {{ total = {memory} }}
        DISK_GB = {{ total = 2 }}
        "#,
        uri = node.uri(),
        dir = dir.display(),
        template = template.display(),
        kind = node.guest().accelerator(),
        memory = 2 * MEMORY,
    );
    LibvirtSettings::from_table(&text.parse().unwrap()).unwrap()
}

/// A hypervisor, the driver on it, and what to look at its guests with.
pub(crate) struct Scene {
    pub(crate) node: Hypervisor,
    pub(crate) driver: Arc<LibvirtDriver>,
    settings: LibvirtSettings,
}

impl Scene {
    pub(crate) async fn new(more: &str) -> Self {
        let node = Hypervisor::start().await.unwrap();
        let settings = settings(&node, more);
        let driver = open(&settings);
        Self {
            node,
            driver,
            settings,
        }
    }

    /// The same hypervisor under a driver with other settings.
    pub(crate) fn with(self, more: &str) -> Self {
        let settings = settings(&self.node, more);
        let driver = open(&settings);
        Self {
            node: self.node,
            driver,
            settings,
        }
    }

    /// Another driver, as after a restart of the agent.
    pub(crate) fn restart_agent(&mut self) {
        self.driver = open(&self.settings);
    }

    pub(crate) fn order(&self, n: u128, name: &str) -> Start {
        Start {
            server_id: ServerId(Uuid::from_u128(n)),
            name: name.to_owned(),
            project_id: "tests".to_owned(),
            flavor: "half".to_owned(),
            resources: half(),
            preemptible: true,
            attempt: 0,
            resume: false,
            storage: None,
        }
    }

    /// A guest that runs and has begun to count.
    pub(crate) async fn guest(&self, n: u128, name: &str) -> ServerId {
        let order = self.order(n, name);
        self.driver.start(&order).await.unwrap();
        self.says(order.server_id, "HB 1", BOOT).await;
        order.server_id
    }

    /// Runs a program of busybox in the guest, through its guest agent: its exit code and what it
    /// printed.
    pub(crate) async fn run_in(&self, id: ServerId, words: &[&str]) -> (i64, String) {
        let exec = json!({ "execute": "guest-exec", "arguments": {
            "path": "/bin/busybox", "arg": words, "env": ["PATH=/bin:/sbin"], "capture-output": true,
        } });
        let begun = eventually(ANSWER, async || self.ask_agent(id, &exec).await).await;
        let status =
            json!({ "execute": "guest-exec-status", "arguments": { "pid": begun["pid"] } });
        let ended = eventually(2 * ANSWER, async || {
            let now = self.ask_agent(id, &status).await?;
            if now["exited"] == true {
                Ok(now)
            } else {
                Err(now.to_string())
            }
        })
        .await;
        let said = STANDARD.decode(ended["out-data"].as_str().unwrap_or_default());
        let said = String::from_utf8(said.unwrap()).unwrap();
        (ended["exitcode"].as_i64().unwrap_or(-1), said)
    }

    async fn ask_agent(&self, id: ServerId, command: &Value) -> Result<Value, String> {
        let words = [
            "qemu-agent-command",
            &domain(id),
            &command.to_string(),
            "--timeout",
            "5",
        ];
        let said = self
            .node
            .virsh(&words)
            .await
            .map_err(|error| error.to_string())?;
        let said: Value = serde_json::from_str(&said).map_err(|error| error.to_string())?;
        Ok(said["return"].clone())
    }

    fn file(&self, id: ServerId, name: &str) -> PathBuf {
        match &self.settings.storage {
            Some(storage) => storage.dir.join(format!("servers/{id}.host-a")),
            None => self.settings.instances_dir.join(id.to_string()),
        }
        .join(name)
    }

    /// What the guest has written on its serial port, as far as the lines are whole.
    pub(crate) fn console(&self, id: ServerId) -> String {
        let bytes = std::fs::read(self.file(id, "console.log")).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        text[..whole].to_owned()
    }

    /// What the guest has saved on its disk.
    pub(crate) fn disk(&self, id: ServerId) -> String {
        let bytes = std::fs::read(self.file(id, "disk")).unwrap();
        let text = bytes.iter().take_while(|b| **b != 0).copied().collect();
        String::from_utf8(text).unwrap()
    }

    /// Waits until a line on the console begins so, and returns it.
    pub(crate) async fn says(&self, id: ServerId, begin: &str, limit: Duration) -> String {
        eventually(limit, async || {
            let console = self.console(id);
            let line = console.lines().rfind(|line| line.starts_with(begin));
            line.map(str::to_owned).ok_or(console)
        })
        .await
    }

    /// How far the guest has counted.
    pub(crate) fn count(&self, id: ServerId) -> u64 {
        let console = self.console(id);
        let beats = console
            .lines()
            .filter_map(|line| line.trim().strip_prefix("HB "));
        beats
            .filter_map(|n| n.parse().ok())
            .next_back()
            .unwrap_or(0)
    }

    /// Waits until the guest has counted beyond `from`.
    pub(crate) async fn counts_beyond(&self, id: ServerId, from: u64) -> u64 {
        eventually(ANSWER, async || {
            let now = self.count(id);
            if now > from {
                Ok(now)
            } else {
                Err(format!("{now}, not beyond {from}"))
            }
        })
        .await
    }

    pub(crate) async fn view(&self, id: ServerId) -> Option<ServerView> {
        let views = self.driver.list().await.unwrap();
        views.into_iter().find(|view| view.server_id == id)
    }

    pub(crate) async fn state(&self, id: ServerId) -> Option<HostedState> {
        self.view(id).await.map(|view| view.state)
    }

    pub(crate) async fn becomes(&self, id: ServerId, state: HostedState) {
        eventually(ANSWER, async || {
            let seen = self.state(id).await;
            if seen == Some(state) {
                Ok(())
            } else {
                Err(format!("{seen:?}"))
            }
        })
        .await;
    }
}

fn open(settings: &LibvirtSettings) -> Arc<LibvirtDriver> {
    Arc::new(LibvirtDriver::open(settings.clone(), "host-a", Arc::new(SystemClock)).unwrap())
}

pub(crate) fn domain(id: ServerId) -> String {
    format!("ebbtide-{id}")
}

pub(crate) fn notice(n: u128, behaviour: InterruptionBehaviour) -> GuestNotice {
    GuestNotice {
        evacuation_id: EvacuationId(Uuid::from_u128(0xe0_0000 + n)),
        behaviour,
        grace: Seconds(120),
        not_before: Timestamp::from_millis(1_800_000_120_000),
        begin_before: Timestamp::from_millis(4_000_000_000_000),
    }
}
