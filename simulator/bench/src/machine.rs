//! Where a figure was measured: without this it says nothing.

use serde::Serialize;

/// The machine and the program that measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// The processor's own name; `unknown` where the system does not tell.
    pub cpu: String,
    /// Logical processors that this process may use.
    pub cores: usize,
    /// Memory of the machine, in MiB; 0 where the system does not tell.
    pub memory_mib: u64,
    /// Operating system and architecture.
    pub system: String,
    /// How busy the machine was in the last minute, as the system says it: above the number of
    /// cores no time is to be trusted.
    pub load_1m: String,
    /// `release` or `debug`. Figures of a debug build mean nothing.
    pub build: &'static str,
    /// The version of Ebbtide.
    pub version: &'static str,
}

impl Machine {
    #[must_use]
    pub fn here() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let field = |text: &str, key: &str| {
            text.lines()
                .find_map(|line| {
                    line.strip_prefix(key)?
                        .split_once(':')
                        .map(|(_, v)| v.trim())
                })
                .map(str::to_owned)
        };
        let memory = field(&read("/proc/meminfo"), "MemTotal").unwrap_or_default();
        let kib: u64 = memory
            .split_whitespace()
            .next()
            .and_then(|n| n.parse().ok())
            .unwrap_or(0);
        let load = read("/proc/loadavg");
        Self {
            cpu: field(&read("/proc/cpuinfo"), "model name")
                .unwrap_or_else(|| "unknown".to_owned()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_mib: kib / 1024,
            system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            load_1m: load.split_whitespace().next().unwrap_or("?").to_owned(),
            build: build(),
            version: env!("CARGO_PKG_VERSION"),
        }
    }
}

/// `release` or `debug`: whether the code that is measured was compiled with debug assertions.
#[must_use]
pub fn build() -> &'static str {
    if cfg!(debug_assertions) {
        "debug"
    } else {
        "release"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_knows_itself() {
        let here = Machine::here();
        assert!(here.cores >= 1);
        assert!(!here.cpu.is_empty());
        assert_eq!(here.build == "debug", cfg!(debug_assertions));
    }
}
