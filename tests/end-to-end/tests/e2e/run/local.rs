//! On this machine alone: signals, crashes, and what goes wrong.

use super::kit::{RunResult, TestHarness};
use ebbtide_harness::{ProcessCommand, Signal, eventually};
use ebbtide_integration_tests::bin;
use ebbtide_integration_tests::region::PATIENCE;

/// Counts to N, a tenth of a second each; a checkpoint is the number.
fn count(n: u32) -> String {
    format!(
        "n=0; [ -z \"$EBBTIDE_RESTORE_DIR\" ] || n=$(cat \"$EBBTIDE_RESTORE_DIR/n\"); echo from $n; \
         while [ $n -lt {n} ]; do echo $n > n; sleep 0.1; n=$((n + 1)); done; exit 7"
    )
}

const SAVE: &str = "cp n $EBBTIDE_CHECKPOINT_DIR/n";

fn options(save: &str) -> Vec<&str> {
    vec![
        "--metadata",
        "none",
        "--every",
        "0.4s",
        "--checkpoint-command",
        save,
    ]
}

fn refused(ended: &RunResult, code: &str) {
    assert_eq!(ended.code, Some(1), "{}", ended.output);
    assert!(ended.output.contains(code), "{}", ended.output);
    assert!(ended.output.contains("next"), "{}", ended.output);
}

#[tokio::test]
async fn the_exit_code_is_the_commands_and_a_job_that_has_ended_stays_so() {
    let rig = TestHarness::new();
    let job = format!("setsid sleep 1000 & echo $! > own; {}", count(10));
    for _ in 0..2 {
        let ended = rig
            .run(None, &options(SAVE), &["sh", "-c", &job])
            .ended()
            .await;
        assert_eq!(ended.code, Some(7), "{}", ended.output);
        assert_eq!(ended.json["exit_code"], 7);
        assert_eq!(ended.json["instances"].as_array().unwrap().len(), 1);
        assert!(!alive(&rig.text("own")), "what it had started lives on");
    }
    assert_eq!(rig.text("state/stdout"), "from 0\n");
}

#[tokio::test]
async fn who_is_asked_to_stop_saves_first_and_the_same_command_line_goes_on() {
    let rig = TestHarness::new();
    let job = count(25);
    let run = rig.run(None, &options(SAVE), &["sh", "-c", &job]);
    run.says("(planned)", 1).await;
    // The shell in between does not pass it on, so it goes to the program itself.
    run.process.signal(Signal::Term).unwrap();
    let ended = run.ended().await;
    assert_eq!(ended.code, Some(130), "{}", ended.output);
    assert!(ended.output.contains("(stop)"), "{}", ended.output);
    assert_eq!(ended.json["instances"][0]["end"], "stopped");
    let ended = rig
        .run(None, &options(SAVE), &["sh", "-c", &job])
        .ended()
        .await;
    assert_eq!(ended.code, Some(7), "{}", ended.output);
    assert_eq!(ended.json["lost_seconds"], 0.0, "{}", ended.output);
    assert!(!rig.text("state/stdout").ends_with("from 0\n"));
}

#[tokio::test]
async fn a_run_that_was_killed_leaves_what_the_next_one_needs_and_no_process_behind() {
    let rig = TestHarness::new();
    // A child in a session of its own, as daemons are.
    let job = format!("echo $$ > pid; setsid sleep 1000 & {}", count(40));
    let run = rig.run(None, &options(SAVE), &["sh", "-c", &job]);
    run.says("(planned)", 2).await;
    // Only the program itself: the job's process has to be found by the next run.
    let pid = rig.text("pid");
    let program = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap();
    let parent = program
        .rsplit_once(") ")
        .unwrap()
        .1
        .split(' ')
        .nth(1)
        .unwrap()
        .to_owned();
    let killed = ProcessCommand::new("kill", "/bin/kill").args(["-KILL", &parent]);
    let killed = killed.spawn(rig.path("kill.log")).unwrap();
    assert!(killed.wait_exit(PATIENCE).await.unwrap().success());
    let status = run.process.wait_exit(PATIENCE).await.unwrap();
    assert!(!status.success());
    let ended = rig
        .run(None, &options(SAVE), &["sh", "-c", &job])
        .ended()
        .await;
    assert_eq!(ended.code, Some(7), "{}", ended.output);
    let lives = ended.json["instances"].as_array().unwrap();
    assert_eq!(lives.len(), 2, "{}", ended.output);
    assert_eq!(lives[0]["end"], "interrupted");
    assert!(
        ended.output.contains("goes on from checkpoint"),
        "{}",
        ended.output
    );
    assert!(ended.output.contains("exit code") || !rig.text("state/stdout").is_empty());
}

#[tokio::test]
async fn checkpoints_that_fail_or_hang_are_not_used_and_do_not_end_the_job() {
    let rig = TestHarness::new();
    let job = count(12);
    // The first one fails, the second one hangs, those after that are good.
    let save = "echo x >> tries; case $(wc -l < tries) in 1) echo broken disk; exit 3;; 2) echo half > $EBBTIDE_CHECKPOINT_DIR/n; sleep 1000;; esac; \
                cp n $EBBTIDE_CHECKPOINT_DIR/n";
    let job = job.replace("-lt 12", "-lt 150");
    let mut arguments = options(save);
    arguments.extend(["--checkpoint-timeout", "0.5s", "--cost", "0.1s"]);
    let run = rig.run(None, &arguments, &["sh", "-c", &job]);
    run.says("(planned)", 1).await;
    let said = std::fs::read_to_string(run.process.log_path().unwrap()).unwrap();
    assert!(
        said.contains("checkpoint 1 failed and is not used"),
        "{said}"
    );
    assert!(said.contains("broken disk"), "{said}");
    assert!(said.contains("checkpoint 2 was cut off"), "{said}");
    assert!(!rig.path("state/checkpoints/000002").exists());
    assert!(rig.path("state/checkpoints/000003/n").exists());
    let ended = run.ended().await;
    assert_eq!(ended.code, Some(7), "{}", ended.output);
    assert_eq!(ended.json["checkpoints"]["failed"], 2);
}

#[tokio::test]
async fn a_command_that_refuses_a_checkpoint_gets_the_one_before() {
    let rig = TestHarness::new();
    let job = count(60);
    let run = rig.run(None, &options(SAVE), &["sh", "-c", &job]);
    run.says("(planned)", 2).await;
    run.process.signal(Signal::Term).unwrap();
    let ended = run.ended().await;
    assert_eq!(ended.code, Some(130), "{}", ended.output);
    let mut kept: Vec<_> = std::fs::read_dir(rig.path("state/checkpoints"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    kept.sort();
    std::fs::remove_file(kept[1].join("n")).unwrap();
    let again = format!(
        "[ -e $EBBTIDE_RESTORE_DIR/n ] || exit 125; exec sh -c '{}'",
        "exit 5"
    );
    let mut arguments = options(SAVE);
    arguments.extend(["--restore-command", &again]);
    let ended = rig.run(None, &arguments, &["sh", "-c", &job]).ended().await;
    assert_eq!(ended.code, Some(5), "{}", ended.output);
    assert!(ended.output.contains("exit code 125"), "{}", ended.output);
    assert!(
        ended.json["lost_seconds"].as_f64().unwrap() > 0.0,
        "{}",
        ended.json
    );
}

#[tokio::test]
async fn nothing_is_thrown_away_where_no_checkpoint_can_be_gone_on_from() {
    let rig = TestHarness::new();
    let job = count(60);
    let run = rig.run(None, &options(SAVE), &["sh", "-c", &job]);
    run.says("(planned)", 1).await;
    run.process.signal(Signal::Term).unwrap();
    run.ended().await;
    let mut arguments = options(SAVE);
    arguments.extend(["--restore-command", "exit 125"]);
    let ended = rig.run(None, &arguments, &["sh", "-c", &job]).ended().await;
    refused(&ended, "EB-RUN-010");
    assert!(
        std::fs::read_dir(rig.path("state/checkpoints"))
            .unwrap()
            .count()
            > 0
    );
}

#[tokio::test]
async fn a_state_directory_is_of_one_run_of_one_job_and_is_believed_only_whole() {
    let rig = TestHarness::new();
    let job = count(30);
    let run = rig.run(None, &options(SAVE), &["sh", "-c", &job]);
    run.says("(planned)", 1).await;
    let second = rig
        .run(None, &options(SAVE), &["sh", "-c", &job])
        .ended()
        .await;
    refused(&second, "EB-RUN-004");
    assert_eq!(run.ended().await.code, Some(7));
    let other = rig
        .run(None, &options(SAVE), &["sh", "-c", "true"])
        .ended()
        .await;
    refused(&other, "EB-RUN-005");
    let state = rig.text("state/state");
    std::fs::write(rig.path("state/state"), &state[..state.len() - 9]).unwrap();
    let damaged = rig
        .run(None, &options(SAVE), &["sh", "-c", &job])
        .ended()
        .await;
    refused(&damaged, "EB-RUN-006");
}

#[tokio::test]
async fn programs_that_are_not_there_are_named_with_their_package() {
    let rig = TestHarness::new();
    let missing = rig
        .run(None, &options("true"), &["/no/such/program"])
        .ended()
        .await;
    refused(&missing, "EB-RUN-008");
    let rig = TestHarness::new();
    let arguments = ["--metadata", "none", "--criu", "--criu-program", "/no/criu"];
    let missing = rig.run(None, &arguments, &["true"]).ended().await;
    refused(&missing, "EB-RUN-008");
    assert!(
        missing.output.contains("package `criu`"),
        "{}",
        missing.output
    );
    let neither = rig
        .run(None, &["--metadata", "none"], &["true"])
        .ended()
        .await;
    assert_eq!(neither.code, Some(2), "{}", neither.output);
    let rig = TestHarness::new();
    let zero = [
        "--metadata",
        "none",
        "--every",
        "0",
        "--checkpoint-command",
        "true",
    ];
    let zero = rig.run(None, &zero, &["sh", "-c", "exit 1"]).ended().await;
    assert_eq!(zero.code, Some(2), "{}", zero.output);
    assert!(zero.output.contains("EB-RUN-001"), "{}", zero.output);
}

#[tokio::test]
async fn a_full_disk_costs_a_checkpoint_and_never_the_one_before() {
    let rig = TestHarness::new();
    std::fs::create_dir(rig.path("disk")).unwrap();
    let job = count(30);
    // A small disk of its own: the second checkpoint does not fit any more.
    let script = format!(
        "mount -t tmpfs -o size=256k none '{disk}' && exec '{ebbtide}' run --metadata none --every 0.4s --cost 0.1s --state-dir '{disk}/state' \
         --checkpoint-command 'cp n $EBBTIDE_CHECKPOINT_DIR/n && head -c 160000 /dev/zero > $EBBTIDE_CHECKPOINT_DIR/data' -- sh -c \"$1\"",
        disk = rig.path("disk").display(),
        ebbtide = bin("ebbtide").display(),
    );
    let log = rig.path("log");
    let run = ProcessCommand::new("ebbtide run on a small disk", "/usr/bin/unshare")
        .args(["--mount", "sh", "-c"])
        .args([script.as_str(), "sh", job.as_str()])
        .current_dir(rig.path("."))
        .spawn(&log)
        .unwrap();
    eventually(PATIENCE, async || {
        let said = std::fs::read_to_string(&log).unwrap();
        let full = said.contains("checkpoint 2 failed") && said.contains("No space left");
        if full { Ok(()) } else { Err(said) }
    })
    .await;
    let status = run.wait_exit(PATIENCE).await.unwrap();
    let said = std::fs::read_to_string(&log).unwrap();
    assert_eq!(status.code(), Some(7), "{said}");
    assert!(said.contains("checkpoint 1 (planned)"), "{said}");
}

#[tokio::test]
async fn what_a_shell_left_running_before_the_run_is_none_of_its_business() {
    let rig = TestHarness::new();
    // The shell starts something and then becomes the run. In a session of its own: the harness
    // ends the group of a process that has ended.
    let script = format!(
        "setsid sleep 300 & echo $! > stranger; exec '{}' run --metadata none --every 0.3s --state-dir state --checkpoint-command '{SAVE}' -- sh -c \"$1\"",
        bin("ebbtide").display()
    );
    let job = format!("setsid sleep 1000 & echo $! > own; {}", count(8));
    let log = rig.path("log");
    let run = ProcessCommand::new("ebbtide run in a shell's place", "/bin/sh")
        .args(["-c", script.as_str(), "sh", job.as_str()])
        .current_dir(rig.path("."))
        .spawn(&log)
        .unwrap();
    eventually(PATIENCE, async || {
        let said = std::fs::read_to_string(&log).unwrap();
        let done = said.contains("(planned)");
        if done { Ok(()) } else { Err(said) }
    })
    .await;
    // Stopped, not ended: what the job has started is ended with it.
    run.signal(Signal::Term).unwrap();
    eventually(PATIENCE, async || {
        let said = std::fs::read_to_string(&log).unwrap();
        if said.contains("(stop)") && !alive(&rig.text("own")) {
            assert!(alive(&rig.text("stranger")), "{said}");
            Ok(())
        } else {
            Err(said)
        }
    })
    .await;
    let stranger = rig.text("stranger");
    let kill =
        ProcessCommand::new("the end of the stranger", "/bin/kill").args(["-9", stranger.trim()]);
    let killed = kill.spawn(&log).unwrap().wait_exit(PATIENCE).await.unwrap();
    assert!(killed.success(), "it was there to the end");
}

/// Whether a process is there and not only its exit status.
fn alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}
