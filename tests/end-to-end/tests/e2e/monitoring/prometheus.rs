//! A real Prometheus with the configuration of `packaging/prometheus`.

use super::super::start::get_raw;
use ebbtide_harness::{Process, ProcessCommand, eventually, free_port};
use ebbtide_integration_tests::Region;
use ebbtide_integration_tests::region::PATIENCE;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The directory of `packaging` with this name.
pub(super) fn packaging(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join("packaging").join(name)
}

pub(super) struct Prometheus {
    address: String,
    _process: Process,
}

impl Prometheus {
    /// Starts one that scrapes each second: the packaged configuration with other addresses.
    pub(super) async fn start(region: &Region, agents: &[String], audit: &str) -> Self {
        let dir = region.dir().join("prometheus");
        std::fs::create_dir_all(&dir).unwrap();
        let from = packaging("prometheus");
        for rules in ["ebbtide-recording.yml", "ebbtide-alerts.yml"] {
            std::fs::copy(from.join(rules), dir.join(rules)).unwrap();
        }
        let scheduler = region.address("http").unwrap().replace("http://", "");
        let packaged = std::fs::read_to_string(from.join("prometheus.yml")).unwrap();
        let config = packaged
            .replace("127.0.0.1:7471", &scheduler)
            .replace("127.0.0.1:9100", audit)
            .replace("_interval: 15s", "_interval: 1s");
        let list: String = agents.iter().map(|at| format!("    - {at}\n")).collect();
        std::fs::write(
            dir.join("ebbtide-agents.yml"),
            format!("- targets:\n{list}"),
        )
        .unwrap();
        std::fs::write(dir.join("prometheus.yml"), config).unwrap();
        std::fs::copy(
            from.join("ebbtide-batch.yml"),
            dir.join("ebbtide-batch.yml"),
        )
        .unwrap();
        let address = format!("127.0.0.1:{}", free_port().unwrap());
        let process = ProcessCommand::new("prometheus", "/usr/bin/prometheus")
            .arg("--config.file=prometheus.yml")
            .arg("--storage.tsdb.path=data")
            .arg(format!("--web.listen-address={address}"))
            .arg("--enable-feature=exemplar-storage")
            .current_dir(&dir)
            .spawn(region.dir().join("prometheus.log"))
            .unwrap();
        let prometheus = Self {
            address,
            _process: process,
        };
        prometheus
            .wait_for("count(up == 1)", agents.len() + 2)
            .await;
        prometheus
    }

    /// Waits until a query gives this one value.
    async fn wait_for(&self, query: &str, value: usize) {
        eventually(PATIENCE, async || {
            let found = self.query(query).await?;
            let now = &found[0]["value"][1];
            let wanted = value.to_string();
            let right = now.as_str() == Some(&wanted);
            right
                .then_some(())
                .ok_or_else(|| format!("{query} is {found}, not {wanted}"))
        })
        .await;
    }

    /// The series of a query now.
    pub(super) async fn query(&self, query: &str) -> Result<Value, String> {
        let answer = self.ask(&format!("query?query={}", encoded(query))).await?;
        Ok(answer["result"].clone())
    }

    /// What the API answers, without its envelope.
    pub(super) async fn ask(&self, path: &str) -> Result<Value, String> {
        let answer = get_raw(&self.address, &format!("/api/v1/{path}")).await?;
        let body = answer.split_once("\r\n\r\n").map_or("", |parts| parts.1);
        let json: Value = serde_json::from_str(body).map_err(|e| format!("{e}: {answer}"))?;
        match json["status"].as_str() {
            Some("success") => Ok(json["data"].clone()),
            _ => Err(format!("{path}: {answer}")),
        }
    }
}

/// A query as a part of an address.
pub(super) fn encoded(query: &str) -> String {
    let mut text = String::new();
    for byte in query.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' => text.push(byte.into()),
            other => text.push_str(&format!("%{other:02X}")),
        }
    }
    text
}
