//! What the scheduler counts (its metrics page) and what the kernel counts (processor time).

use crate::Group;
use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Ticks a second of `/proc/*/stat`: Linux shows processor time in hundredths of a second to every
/// program (USER_HZ).
const TICKS: f64 = 100.0;

/// Counters at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Meters {
    /// Seconds that the region took for decisions.
    pub(crate) decision_seconds: f64,
    pub(crate) decisions: f64,
    /// Seconds that transactions took.
    pub(crate) commit_seconds: f64,
    pub(crate) commits: f64,
    /// Messages that the broker has confirmed.
    pub(crate) published: f64,
    /// Messages that it has not confirmed yet.
    pub(crate) outbox: f64,
    /// Decisions made before a scheduler's turn that were kept.
    pub(crate) kept: f64,
    /// Those that had to be made again.
    pub(crate) conflicts: f64,
    /// Processor seconds of the schedulers.
    pub(crate) scheduler_cpu: f64,
    /// Processor seconds of this program, which makes the load.
    pub(crate) load_cpu: f64,
    /// Processor seconds of the whole machine: everything but idle and waiting for disks.
    pub(crate) machine_cpu: f64,
}

impl Meters {
    /// Reads them all, summed over all schedulers.
    pub(crate) async fn read(group: &Group<'_>) -> Result<Self> {
        let mut schedulers = vec![(
            group.region.address("http")?,
            group.region.scheduler_process()?.pid(),
        )];
        for peer in group.peers {
            schedulers.push((peer.address("http")?, peer.pid()));
        }
        let mut all = Self {
            load_cpu: process_cpu("self")?,
            machine_cpu: machine_cpu()?,
            ..Self::default()
        };
        for (address, process) in schedulers {
            let page = page(&address).await?;
            let value = |name: &str| metric(&page, name);
            all.decision_seconds += value("decision_seconds_sum")?;
            all.decisions += value("decision_seconds_count")?;
            all.commit_seconds += value("commit_seconds_sum")?;
            all.commits += value("commit_seconds_count")?;
            all.published += value("messages_published_total")?;
            all.outbox += value("outbox_messages")?;
            all.kept += value("early_decisions_total{kind=\"kept\"}")?;
            all.conflicts += value("early_decisions_total{kind=\"conflict\"}")?;
            all.scheduler_cpu += process_cpu(&process.to_string())?;
        }
        Ok(all)
    }
}

/// The metrics page, over plain HTTP/1.0: the connection ends with the page.
pub(crate) async fn page(address: &str) -> Result<String> {
    let host = address.trim_start_matches("http://");
    let mut stream = TcpStream::connect(host).await?;
    let request = format!("GET /metrics HTTP/1.0\r\nHost: {host}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut page = String::new();
    stream.read_to_string(&mut page).await?;
    Ok(page)
}

/// The value of a metric, named with its labels if it has any.
pub(crate) fn metric(page: &str, name: &str) -> Result<f64> {
    let wanted = format!("ebbtide_{name} ");
    page.lines()
        .find_map(|line| {
            line.strip_prefix(&wanted)?
                .split_whitespace()
                .next()?
                .parse()
                .ok()
        })
        .with_context(|| format!("the scheduler's metrics have no ebbtide_{name}"))
}

/// Processor seconds of a process: user and system time, fields 14 and 15 of its stat file.
pub(crate) fn process_cpu(process: &str) -> Result<f64> {
    let path = format!("/proc/{process}/stat");
    let text = std::fs::read_to_string(&path).with_context(|| path.clone())?;
    // The name, in parentheses, may have blanks; behind it the state is field 3.
    let behind = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let fields: Vec<f64> = behind
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|f| f.parse().ok())
        .collect();
    Ok(fields.iter().sum::<f64>() / TICKS)
}

/// Processor seconds of the process with this name that this one has started, or one that it has
/// started.
pub(crate) fn child_cpu(name: &str) -> Result<f64> {
    process_cpu(&child(name)?.to_string())
}

/// Its identifier.
pub(crate) fn child(name: &str) -> Result<u32> {
    for entry in std::fs::read_dir("/proc")? {
        let file = entry?.file_name();
        let Some(pid) = file.to_str().and_then(|text| text.parse::<u32>().ok()) else {
            continue;
        };
        // It may have ended meanwhile.
        let comm = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        if comm.trim() == name && is_ours(pid) {
            return Ok(pid);
        }
    }
    anyhow::bail!("no process {name} of ours runs")
}

fn is_ours(pid: u32) -> bool {
    let (mut here, own) = (pid, std::process::id());
    while here > 1 && here != own {
        let stat = std::fs::read_to_string(format!("/proc/{here}/stat")).unwrap_or_default();
        let behind = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let parent = behind.split_whitespace().nth(1);
        here = parent.and_then(|text| text.parse().ok()).unwrap_or(0);
    }
    here == own
}

/// Processor seconds that the whole machine has used: all fields of the first line except idle and
/// iowait, and except the guest fields, which the kernel counts twice.
fn machine_cpu() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/stat").context("/proc/stat")?;
    let first = text.lines().next().unwrap_or_default();
    let fields: Vec<f64> = first
        .split_whitespace()
        .skip(1)
        .filter_map(|f| f.parse().ok())
        .collect();
    let busy = [0, 1, 2, 5, 6]
        .iter()
        .filter_map(|&at| fields.get(at))
        .sum::<f64>();
    Ok(busy / TICKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_found_by_their_whole_name() {
        let page = "# TYPE x\nebbtide_commit_seconds_sum 1.5\nebbtide_commit_seconds_count 3\n";
        assert_eq!(metric(page, "commit_seconds_sum").unwrap(), 1.5);
        assert_eq!(metric(page, "commit_seconds_count").unwrap(), 3.0);
        assert!(
            metric(page, "commit_seconds")
                .unwrap_err()
                .to_string()
                .contains("ebbtide_commit_seconds")
        );
    }

    #[test]
    fn this_process_has_used_no_more_than_the_machine() {
        assert!(process_cpu("self").unwrap() <= machine_cpu().unwrap());
    }
}
