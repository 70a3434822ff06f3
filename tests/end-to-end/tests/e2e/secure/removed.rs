//! A removed host whose agent has a login of its own at the broker.

use super::agents::cloud_with;
use super::kit::soon;
use crate::command::ebbtide;
use ebbtide_harness::eventually;
use ebbtide_integration_tests::region::PATIENCE;
use ebbtide_proto::v1;

const HOST: &str = "host-1.example";

#[tokio::test]
async fn a_removed_agents_queue_and_login_are_named_and_without_them_it_is_refused() {
    for queue_type in ["classic", "quorum"] {
        let (broker, mut region) = cloud_with(queue_type, "host_down_seconds = 4").await;
        region.kill_agent(HOST);
        eventually(PATIENCE, async || {
            let request = v1::GetHostRequest {
                name: HOST.to_owned(),
            };
            let answer = region.admin().await.unwrap().get_host(request).await;
            let health = answer.unwrap().into_inner().host.unwrap().health;
            if health == "down" {
                Ok(())
            } else {
                Err(health)
            }
        })
        .await;
        let removed = ebbtide(&region, &["host", "remove", HOST]).await;
        assert_eq!(removed.code, Some(0), "{}", removed.text);
        // The scheduler's login may not delete the queue, and no login may delete logins.
        let queue = format!("{}.agent.{HOST}", region.prefix());
        let command = |line: &str| {
            let found = removed.text.contains(line);
            assert!(found, "{line:?} is missing: {}", removed.text);
        };
        command(&format!("rabbitmqctl delete_queue {queue}"));
        command(&format!("rabbitmqctl delete_user agent-{HOST}"));
        let user = format!("agent-{HOST}");
        broker.control(&["delete_queue", &queue]).await.unwrap();
        broker.control(&["delete_user", &user]).await.unwrap();

        region.start_agent(HOST).unwrap();
        soon(async || {
            let log = region.agent_log(HOST);
            if log.contains("EB-BUS-007") {
                Ok(())
            } else {
                Err(log)
            }
        })
        .await;
        let queues = broker.control(&["list_queues", "name"]).await.unwrap();
        assert!(!queues.contains(&queue), "{queues}");
    }
}
