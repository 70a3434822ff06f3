//! Inside of a virtual machine: notices by metadata, in all forms.

use super::kit::TestHarness;
use crate::kit::{create, flavor, preemptible, request, until};
use ebbtide_harness::Signal;
use ebbtide_integration_tests::{Region, RegionOptions};

/// Counts seconds of its own; a checkpoint is the number.
const COUNT: &str = "n=0; [ -z \"$EBBTIDE_RESTORE_DIR\" ] || n=$(cat \"$EBBTIDE_RESTORE_DIR/n\"); \
    while [ $n -lt 40 ]; do echo $n > n.new; mv n.new n; sleep 0.1; n=$((n + 1)); done; echo counted $n";

/// A host whose guests can read their metadata, and a preemptible server on it with its socket.
async fn region(sockets: &tempfile::TempDir) -> Region {
    let mut options = RegionOptions {
        hosts: ["host-A", "host-B"].map(str::to_owned).to_vec(),
        ..Default::default()
    };
    for host in &options.hosts {
        let driver = format!(
            "[driver]\nkind = \"simulated\"\n[driver.simulated]\nmetadata_dir = \"{}\"\nstart_seconds = 0.05\nterminate_seconds = 0.05\n\
             inventory = {{ VCPU = 8, MEMORY_MB = 16000, DISK_GB = 160 }}\n",
            sockets.path().display()
        );
        options.drivers.insert(host.clone(), driver);
    }
    let region = Region::start(options).await.unwrap();
    preemptible(&region, "p.whole", 8, 30).await;
    flavor(&region, "whole", 8, &[]).await;
    region
}

#[tokio::test]
async fn a_guest_hears_its_notice_in_every_form_and_gives_the_rest_of_its_time_back_where_it_can() {
    let sockets = tempfile::Builder::new()
        .prefix("md")
        .tempdir_in("/tmp")
        .unwrap();
    let region = region(&sockets).await;
    let rig = TestHarness::new();
    // The first three say when; two of the four can give time back.
    for (form, releases) in [
        ("auto", true),
        ("azure", true),
        ("ec2", false),
        ("gce", false),
    ] {
        let _ = std::fs::remove_dir_all(rig.path("state"));
        let (servers, _) = create(&region, "guest", request("p.whole", 1)).await;
        let server = until(&region, &servers[0].id, "active").await;
        let socket = format!("unix:{}/{}.metadata", sockets.path().display(), server.id);
        let options = [
            "--metadata",
            &socket,
            "--form",
            form,
            "--poll",
            "0.1s",
            "--cost",
            "0.2s",
            "--checkpoint-command",
            "cp n $EBBTIDE_CHECKPOINT_DIR/n",
        ];
        let run = rig.run(None, &options, &["sh", "-c", COUNT]);
        run.says("started from the beginning", 1).await;
        let force = ebbtide_proto::v1::PlacementRequest {
            force_hosts: vec![server.host.clone()],
            ..request("whole", 1)
        };
        let (urgent, _) = create(&region, "urgent", force).await;
        run.says("(notice)", 1).await;
        if releases {
            // Long before the thirty seconds of its grace.
            until(&region, &urgent[0].id, "active").await;
        }
        // The machine is gone; what is left here of it is the program itself.
        run.process.signal(Signal::Term).unwrap();
        let ended = run.ended().await;
        assert_eq!(ended.code, Some(130), "{form}: {}", ended.output);
        let told = ended.output.contains("told the provider");
        assert_eq!(told, releases, "{form}: {}", ended.output);
        let speaks = if form == "auto" { "ebbtide" } else { form };
        let heard = format!("has to leave ({speaks})");
        assert!(ended.output.contains(&heard), "{form}: {}", ended.output);
        // On another machine the same command line goes on, and ends.
        let run = rig.run(
            None,
            &[
                "--metadata",
                "none",
                "--checkpoint-command",
                "cp n $EBBTIDE_CHECKPOINT_DIR/n",
            ],
            &["sh", "-c", COUNT],
        );
        let ended = run.ended().await;
        assert_eq!(ended.code, Some(0), "{form}: {}", ended.output);
        assert!(
            ended.output.contains("goes on from checkpoint"),
            "{}",
            ended.output
        );
        assert_eq!(rig.text("state/stdout"), "counted 40\n");
        let mut client = region.servers().await.unwrap();
        for id in [&urgent[0].id, &server.id] {
            let delete = ebbtide_proto::v1::DeleteServerRequest { id: id.clone() };
            let _ = client.delete_server(delete).await;
        }
    }
}

#[tokio::test]
async fn where_no_metadata_answer_the_run_says_what_it_has_tried() {
    let rig = TestHarness::new();
    let options = [
        "--metadata",
        "unix:/nowhere.metadata",
        "--checkpoint-command",
        "true",
    ];
    let ended = rig.run(None, &options, &["true"]).ended().await;
    assert_eq!(ended.code, Some(1), "{}", ended.output);
    assert!(ended.output.contains("EB-RUN-009"), "{}", ended.output);
    for form in ["ebbtide", "gce", "azure", "ec2"] {
        assert!(ended.output.contains(form), "{}", ended.output);
    }
}
