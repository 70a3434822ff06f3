//! Idle batch nodes are hosts for preemptible servers, and Slurm takes them back when a job needs
//! them.

use crate::test_bed::{PATIENCE, TestBed};
use ebbtide_harness::eventually;
use ebbtide_proto::v1;

/// The hosts, which are nodes of the cluster.
const HOSTS: [&str; 2] = ["c1", "c2"];
/// Servers that fill one of them.
const FULL: usize = 2;
/// The deadline of `lending` cuts the grace period of the flavor, 20 s.
const GRACE: u32 = 5;

/// Cloud servers that run, with their hosts; as many as there is room for are wanted.
async fn fill(bed: &TestBed, name: &str, count: usize) -> Vec<v1::Server> {
    let create = v1::CreateServersRequest {
        name: name.to_owned(),
        request: Some(v1::PlacementRequest {
            count: u32::try_from(count).unwrap(),
            flavor: "p.node".to_owned(),
            project_id: "batch".to_owned(),
            ..Default::default()
        }),
        max_price: String::new(),
    };
    eventually(PATIENCE, async || {
        let mut servers = bed.region.as_ref().unwrap().servers().await.unwrap();
        let created = servers.create_servers(create.clone()).await;
        let created = created.map_err(|status| status.to_string())?.into_inner();
        match created.decision.unwrap().no_valid_host {
            None => Ok(()),
            Some(refusal) => Err(refusal.reason),
        }
    })
    .await;
    eventually(PATIENCE, async || {
        let mut all = bed.instances().await;
        all.retain(|server| server.name.starts_with(name));
        match all
            .iter()
            .filter(|server| server.status == "active")
            .count()
        {
            active if active == count => Ok(all),
            active => Err(format!("{active} of {count} run")),
        }
    })
    .await
}

/// The node on which a job has begun.
async fn begun(bed: &TestBed, job: &str) -> String {
    eventually(PATIENCE, async || {
        let log = bed.text("out");
        let mut lines = log.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let line = lines.find(|words| words[..2] == ["start", job]);
        let log = bed.text("lending.log");
        line.map(|words| words[3].to_owned()).ok_or(log)
    })
    .await
}

async fn reclaim(bed: &TestBed, host: &str) -> Option<v1::HostReclaim> {
    let mut admin = bed.region.as_ref().unwrap().admin().await.unwrap();
    let all = admin.list_reclaims(v1::ListReclaimsRequest {}).await;
    let mut all = all.unwrap().into_inner().reclaims.into_iter();
    all.find(|reclaim| reclaim.host == host)
}

#[tokio::test]
async fn an_idle_node_is_lent_and_a_job_gets_it_back_when_its_servers_are_gone() {
    let bed = TestBed::lending(&HOSTS).await;
    for job in ["first", "second"] {
        // Slurm has both nodes powered down: they are the cloud's.
        let cattle = fill(&bed, &format!("for-{job}"), FULL * HOSTS.len()).await;
        // The job ends when its host was looked at.
        bed.hold("out");
        bed.submit("lent", job, 3, "out").await;
        let node = begun(&bed, job).await;
        // At this moment the host is free, and the other one is still lent.
        let taken = reclaim(&bed, &node).await.expect("Slurm has the host");
        assert_eq!(taken.state, "free", "{taken:?}");
        assert_eq!(taken.owner, "slurm:burst");
        let instances = bed.instances().await;
        let there = instances.iter().filter(|server| server.status == "active");
        assert!(
            there.clone().all(|server| server.host != node),
            "{node}: {instances:?}"
        );
        let ended: Vec<_> = cattle.iter().filter(|server| server.host == node).collect();
        assert_eq!(ended.len(), FULL);
        for server in ended {
            let mut of = taken.evacuations.iter();
            let evacuation = of
                .find(|e| e.victim_id == server.id)
                .expect("it had a notice");
            let words = (evacuation.cause.as_str(), evacuation.state.as_str());
            assert_eq!(words, ("reclaim", "evacuated"));
            assert!(
                (1..=GRACE).contains(&evacuation.grace_seconds),
                "{evacuation:?}"
            );
        }
        bed.release("out");
        bed.all_over().await;
        // The node is idle: Slurm suspends it, which returns the host.
        eventually(PATIENCE, async || match reclaim(&bed, &node).await {
            None => Ok(()),
            Some(_) => Err(bed.text("lending.log")),
        })
        .await;
        let mut servers = bed.region.as_ref().unwrap().servers().await.unwrap();
        for server in bed.instances().await {
            let delete = v1::DeleteServerRequest { id: server.id };
            servers.delete_server(delete).await.unwrap();
        }
    }
    let log = bed.text("out");
    assert_eq!(log.matches("end ").count(), 2, "{log}");
}
