//! Metadata as guests read it: inside of real guests, with the tools and the words that clouds have
//! taught them.

use crate::kit::{ANSWER, Scene, notice};
use ebbtide_agent::driver::Driver;
use ebbtide_harness::{eventually, hypervisor};
use ebbtide_model::{InterruptionBehaviour, ServerId};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const SERVER: &str = "http://169.254.169.254";

/// What `wget` in the guest finds; `None` for an error of HTTP or of the network.
async fn wget(scene: &Scene, id: ServerId, options: &[&str], path: &str) -> Option<String> {
    let url = format!("{SERVER}{path}");
    // Not -T: busybox 1.35 dies of it.
    let mut words = vec!["timeout", "80", "wget", "-q", "-O", "-"];
    words.extend(options);
    words.push(&url);
    let (code, said) = scene.run_in(id, &words).await;
    (code == 0).then_some(said)
}

async fn finds(scene: &Scene, id: ServerId, options: &[&str], path: &str) -> String {
    let seen = async || wget(scene, id, options, path).await.ok_or("nothing");
    eventually(ANSWER, seen).await
}

const ACTION: &str = "/latest/meta-data/spot/instance-action";
const PREEMPTED: &str = "/computeMetadata/v1/instance/preempted";
const GOOGLE: &[&str] = &["--header", "Metadata-Flavor: Google"];
const EVENTS: &str = "/metadata/scheduledevents?api-version=2020-07-01";
const AZURE: &[&str] = &["--header", "Metadata: true"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn guests_read_only_their_own_notice_as_in_ec2_gce_and_azure() {
    let name = "metadata::guests_read_only_their_own_notice_as_in_ec2_gce_and_azure";
    if !hypervisor::in_private_network(name).unwrap() {
        return;
    }
    let mut scene = Scene::new("").await;
    let (victim, other) = tokio::join!(scene.guest(1, "victim"), scene.guest(2, "other"));
    scene.driver.list().await.unwrap();

    // Before the notice.
    let id = finds(&scene, victim, &[], "/latest/meta-data/instance-id").await;
    assert_eq!(id, victim.to_string());
    let id = finds(&scene, other, &[], "/latest/meta-data/instance-id").await;
    assert_eq!(id, other.to_string());
    assert_eq!(wget(&scene, victim, &[], ACTION).await, None);
    assert_eq!(finds(&scene, victim, GOOGLE, PREEMPTED).await, "FALSE");
    assert_eq!(
        wget(&scene, victim, &[], PREEMPTED).await,
        None,
        "without the header"
    );
    // A process on the host, outside the guest, is not served.
    let outside = tokio::net::TcpStream::connect("169.254.169.254:80").await;
    let (mut outside, mut said) = (outside.unwrap(), Vec::new());
    let request =
        b"GET /latest/meta-data/hostname HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let _ = outside.write_all(request).await;
    let heard = tokio::time::timeout(ANSWER, outside.read_to_end(&mut said)).await;
    assert!(
        heard.unwrap().is_err() || said.is_empty(),
        "{}",
        String::from_utf8_lossy(&said)
    );

    // The notice arrives while a tool waits for it.
    let (_, head) = scene
        .run_in(
            victim,
            &[
                "sh",
                "-c",
                &format!(
                    "wget -S -O - --header 'Metadata-Flavor: Google' {SERVER}{PREEMPTED} 2>&1"
                ),
            ],
        )
        .await;
    let tag = head
        .lines()
        .find_map(|line| line.trim().strip_prefix("etag: "))
        .unwrap_or_else(|| panic!("{head}"));
    let waits = format!("{PREEMPTED}?wait_for_change=true&timeout_sec=60&last_etag={tag}");
    let given = notice(1, InterruptionBehaviour::Stop);
    let (preempted, ()) = tokio::join!(finds(&scene, victim, GOOGLE, &waits), async {
        // The request is on its way once the guest runs it; if it comes later, it is answered at
        // once all the same.
        eventually(ANSWER, async || {
            let (_, tasks) = scene.run_in(victim, &["ps"]).await;
            if tasks.contains("wait_for_change") {
                Ok(())
            } else {
                Err(tasks)
            }
        })
        .await;
        scene.driver.give_notice(victim, &given).await.unwrap();
    });
    assert_eq!(preempted, "TRUE");
    let action: Value = serde_json::from_str(&finds(&scene, victim, &[], ACTION).await).unwrap();
    assert_eq!(
        action,
        json!({ "action": "stop", "time": "2027-01-15T08:02:00Z" })
    );
    let path = "/latest/meta-data/spot/termination-time";
    assert_eq!(
        finds(&scene, victim, &[], path).await,
        "2027-01-15T08:02:00Z"
    );
    let path = "/latest/meta-data/events/recommendations/rebalance";
    assert!(
        finds(&scene, victim, &[], path)
            .await
            .starts_with("{\"noticeTime\":\"2")
    );

    // EC2's version 2: a token first.
    let put = "printf 'PUT /latest/api/token HTTP/1.1\\r\\nHost: x\\r\\nX-aws-ec2-metadata-token-ttl-seconds: 60\\r\\n\
               Connection: close\\r\\n\\r\\n' | nc 169.254.169.254 80 | tail -n 1";
    // Busybox' nc closes its side at once, and on a busy machine the server sees that before it has
    // answered. No tool for this does so.
    let token = eventually(ANSWER, async || {
        let (code, token) = scene.run_in(victim, &["sh", "-c", put]).await;
        if code == 0 && token.trim().len() == 64 {
            Ok(token)
        } else {
            Err(format!("{code} {token:?}"))
        }
    })
    .await;
    let header = format!("X-aws-ec2-metadata-token: {}", token.trim());
    assert!(
        wget(&scene, victim, &["--header", &header], ACTION)
            .await
            .is_some()
    );
    let wrong = "X-aws-ec2-metadata-token: x";
    assert_eq!(
        wget(&scene, victim, &["--header", wrong], ACTION).await,
        None
    );
    // Another guest's token is nothing here, and its notice neither.
    assert_eq!(
        wget(
            &scene,
            other,
            &["--header", &header],
            "/latest/meta-data/hostname"
        )
        .await,
        None
    );
    assert_eq!(wget(&scene, other, &[], ACTION).await, None);
    assert_eq!(finds(&scene, other, GOOGLE, PREEMPTED).await, "FALSE");

    // Azure's: the document, and the acknowledgement, which the other guest cannot give for it.
    let document: Value =
        serde_json::from_str(&finds(&scene, victim, AZURE, EVENTS).await).unwrap();
    let event = &document["Events"][0];
    assert_eq!(event["EventId"], given.evacuation_id.to_string());
    assert_eq!(
        (&event["EventType"], &event["EventStatus"]),
        (&json!("Preempt"), &json!("Scheduled"))
    );
    assert_eq!(event["NotBefore"], "Fri, 15 Jan 2027 08:02:00 GMT");
    let start = json!({ "StartRequests": [{ "EventId": event["EventId"] }] }).to_string();
    let post = ["--header", "Metadata: true", "--post-data", &start];
    assert_eq!(wget(&scene, other, &post, EVENTS).await, None);
    assert_eq!(scene.view(victim).await.unwrap().released, None);
    assert!(wget(&scene, victim, &post, EVENTS).await.is_some());
    assert_eq!(
        scene.view(victim).await.unwrap().released,
        Some(given.evacuation_id)
    );
    assert_eq!(scene.view(other).await.unwrap().released, None);

    // A restarted agent goes on; what is taken back is gone.
    scene.restart_agent();
    eventually(ANSWER, async || {
        scene.driver.list().await.unwrap();
        wget(&scene, victim, &[], ACTION).await.ok_or("nothing")
    })
    .await;
    scene
        .driver
        .withdraw_notice(victim, given.evacuation_id)
        .await
        .unwrap();
    assert_eq!(wget(&scene, victim, &[], ACTION).await, None);
    assert_eq!(finds(&scene, victim, GOOGLE, PREEMPTED).await, "FALSE");

    // The same over the guest's socket, for images that forward it.
    let path = scene.node.dir().join(format!("r/{victim}.metadata"));
    let mut socket = tokio::net::UnixStream::connect(path).await.unwrap();
    let request =
        b"GET /latest/meta-data/hostname HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    socket.write_all(request).await.unwrap();
    let mut said = String::new();
    socket.read_to_string(&mut said).await.unwrap();
    assert!(
        said.starts_with("HTTP/1.1 200") && said.ends_with("victim"),
        "{said}"
    );
}
