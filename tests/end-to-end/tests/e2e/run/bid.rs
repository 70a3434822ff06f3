//! A bid on a market price that crosses it: the checkpoint scheme ACC, beside servers of a region.

use super::kit::TestHarness;
use crate::kit::{create, request};
use crate::market::{market, until_price};
use ebbtide_proto::v1;

/// Steps are counted in a file until the test says that it is enough.
const JOB: &str = "i=$(cat \"$EBBTIDE_RESTORE_DIR/i\" 2>/dev/null || echo 0); echo $i >>begun; \
    while [ ! -e enough ]; do i=$((i+1)); echo $i >now; mv now i; sleep 0.1; done";

#[tokio::test]
async fn a_server_is_let_go_before_an_hour_above_the_bid_and_another_one_made_within_it() {
    let region = market().await;
    until_price(&region, "0.01").await;
    let rig = TestHarness::new();
    // Ten seconds are paid at once: t_cd is three seconds after the launch, t_td four.
    let options = "--flavor spot --bid 0.05 --hour 10s --cost 1s --poll 0.1s --every 1h";
    let mut options: Vec<&str> = options.split(' ').collect();
    options.extend(["--checkpoint-command", "cp i $EBBTIDE_CHECKPOINT_DIR/i"]);
    let endpoint = region.endpoint().unwrap();
    let run = rig.run(Some(&endpoint), &options, &["sh", "-c", JOB]);
    run.says("started from the beginning", 1).await;
    // Others take two of four places: it is 0.0775 with ours.
    let (rich, _) = create(&region, "rich", request("spot", 2)).await;
    run.says("run-1 is let go: an hour of spot costs 0.0", 1)
        .await;
    // Without ours it is 0.055, which is above the bid, too.
    run.says("the bid is 0.05 (asked again every 5 s)", 1).await;
    let mut servers = region.servers().await.unwrap();
    for one in rich {
        let request = v1::DeleteServerRequest { id: one.id };
        servers.delete_server(request).await.unwrap();
    }
    run.says("goes on from checkpoint", 1).await;
    std::fs::write(rig.path("enough"), "").unwrap();
    let ended = run.ended().await;
    assert_eq!(ended.code, Some(0), "{}", ended.output);
    let begun = rig.text("begun");
    let begun: Vec<u32> = begun.lines().map(|line| line.parse().unwrap()).collect();
    assert!(
        begun.len() == 2 && begun[1] >= 10,
        "{begun:?} {}",
        ended.output
    );
    let said = &ended.output;
    let saved = said.find("the bid is 0.05: to be saved");
    assert!(saved.is_some() && saved < said.find("is let go"), "{said}");
    assert_eq!(ended.json["lost_seconds"], 0.0, "{said}");
    eprintln!("{said}");
}
