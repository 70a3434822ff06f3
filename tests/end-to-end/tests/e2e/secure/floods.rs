//! What one agent's login can send, and what it costs the others.

use super::agents::{PASSWORD, cloud, connected};
use super::kit::soon;
use crate::kit::{create, flavor, request, until};
use ebbtide_bus::{AmqpBus, AmqpConfig, Bus, BusIdentity, DEAD_LETTER_BODY_BYTES, QueuePrefix};
use ebbtide_harness::{Deadline, RabbitMq};
use ebbtide_integration_tests::Region;
use ebbtide_integration_tests::region::PATIENCE;
use std::time::Duration;

const THIEF: &str = "agent-host-1.example";
/// Larger than any report: 5 MiB.
const LARGE: usize = 5 * 1024 * 1024;
/// So many at once: more than are kept of one sender.
const FLOOD: usize = 40;
/// Dead letters that one sender may cause at once.
const KEPT: usize = 20;

/// Most memory that the scheduler has had, in MiB.
pub(crate) fn peak_mib(region: &Region) -> u64 {
    let pid = region.scheduler_process().unwrap().pid();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let words = line.unwrap().split_whitespace().nth(1);
    words.unwrap().parse::<u64>().unwrap() / 1024
}

/// Messages and bytes of their bodies in a queue.
async fn depth(broker: &RabbitMq, queue: &str) -> (u64, u64) {
    let list = ["list_queues", "name", "messages", "message_bytes"];
    let said = broker.control(&list).await.unwrap();
    let line = said
        .lines()
        .find(|line| line.starts_with(&format!("{queue}\t")));
    let numbers = line.unwrap_or_else(|| panic!("{queue}: {said}"));
    let mut numbers = numbers.split('\t').skip(1).map(|n| n.parse().unwrap());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

async fn active_after(region: &Region, name: &str) -> Duration {
    let began = Deadline::after(PATIENCE);
    let (servers, _) = create(region, name, request("small", 1)).await;
    until(region, &servers[0].id, "active").await;
    began.elapsed()
}

#[tokio::test]
async fn reports_that_are_too_large_stall_no_agent_and_name_their_sender() {
    let (broker, region) = cloud("classic").await;
    let prefix = QueuePrefix::new(region.prefix()).unwrap();
    flavor(&region, "small", 1, &[]).await;
    let quiet = active_after(&region, "before").await;
    let memory = peak_mib(&region);

    let (exchange, key) = (format!("{prefix}.reports"), format!("report.{THIEF}"));
    let bodies = vec![vec![b'['; LARGE]; FLOOD];
    let flood = broker.publish_as((THIEF, PASSWORD), (&exchange, &key), &bodies);
    let (flooded, during) = tokio::join!(flood, active_after(&region, "during"));
    flooded.unwrap();
    let after = active_after(&region, "after").await;

    // Before, each came again at once, for ever.
    let queue = prefix.scheduler();
    let empty = async || match depth(&broker, queue.as_str()).await {
        (0..=2, _) => Ok(()),
        many => Err(format!("{many:?} in {queue}")),
    };
    soon(empty).await;
    let grown = peak_mib(&region) - memory;
    eprintln!(
        "create to active: {quiet:?} before, {during:?} during, {after:?} after {FLOOD} reports of {LARGE} bytes; \
         the scheduler's memory grew from {memory} by {grown} MiB"
    );
    assert!(after < Duration::from_secs(20), "{after:?}");
    assert!(grown < 350, "{grown} MiB");

    let guest = AmqpConfig::new(vec![broker.url().parse().unwrap()], "operator");
    let operator = AmqpBus::connect(guest, PATIENCE).await.unwrap();
    let mut letters = operator.consume(&prefix.dead_letter(), 100).await.unwrap();
    for _ in 0..KEPT {
        let letter = tokio::time::timeout(PATIENCE, letters.next()).await;
        let letter = letter.unwrap().unwrap();
        assert_eq!(letter.body.len(), DEAD_LETTER_BODY_BYTES);
        let note = letter.dead_letter.clone().unwrap();
        assert_eq!(note.user.as_deref(), Some(THIEF));
        assert_eq!(note.cut_from_bytes, Some(LARGE as u64));
        assert!(note.reason.contains("limits.bus_message_bytes"), "{note:?}");
        letter.ack().await;
    }
    let log = region.scheduler_log();
    assert!(log.contains("EB-BUS-012") && log.contains(THIEF), "{log}");
    assert!(
        log.contains("EB-BUS-013"),
        "the broker accepts messages without a sender"
    );
    let address = region.address("http").unwrap().replace("http://", "");
    let metrics = super::limits::get(&address, "/metrics", None).await;
    let named =
        format!("ebbtide_unusable_reports_total{{sender=\"{THIEF}\",outcome=\"discarded\"}}");
    assert!(metrics.contains(&named), "{metrics}");
    let kept = format!("ebbtide_unusable_reports_total{{sender=\"{THIEF}\",outcome=\"kept\"}} ");
    let kept = metrics.lines().find_map(|line| line.strip_prefix(&kept));
    let kept: usize = kept.and_then(|count| count.parse().ok()).unwrap();
    // A slow machine may have given it time for one or two more.
    assert!(
        (KEPT..KEPT + 5).contains(&kept),
        "{kept} letters of one sender"
    );
}

#[tokio::test]
async fn an_agents_login_fills_neither_the_dead_letters_nor_the_brokers_connections() {
    let (broker, region) = cloud("classic").await;
    let prefix = QueuePrefix::new(region.prefix()).unwrap();
    let (exchange, key) = (format!("{prefix}.reports"), format!("dead-letter.{THIEF}"));
    let bodies = vec![vec![b'x'; 1024 * 1024]; 100];
    let flooded = broker.publish_as((THIEF, PASSWORD), (&exchange, &key), &bodies);
    flooded.await.unwrap();
    let bounded = async || match depth(&broker, prefix.dead_letter().as_str()).await {
        (1.., 0..=67_108_864) => Ok(()),
        much => Err(format!("{much:?} in the dead letters")),
    };
    soon(bounded).await;

    // Two are the agent's own, four more are for connections that the broker has not found dead
    // yet.
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(connected(&broker, THIEF, BusIdentity::Agent).await);
    }
    let url = super::agents::url(&broker, THIEF).parse().unwrap();
    let mut config = AmqpConfig::new(vec![url], "one too many");
    config.connect_timeout = Duration::from_secs(5);
    let refused = AmqpBus::connect(config, Duration::from_secs(5)).await;
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("limit"), "{error}");
}
