use super::*;

const LONG: Duration = Duration::from_secs(30);

fn shell(script: &str) -> (tempfile::TempDir, Process) {
    let dir = tempfile::tempdir().unwrap();
    let process = ProcessCommand::new("the script", "sh")
        .args(["-c", script])
        .spawn(dir.path().join("log"))
        .unwrap();
    (dir, process)
}

fn exists(pid: &str) -> bool {
    // A zombie that init has not collected yet is no longer a process in any sense that matters.
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

#[tokio::test]
async fn a_line_is_found_whether_it_comes_before_or_after_the_wait() {
    let (_dir, process) = shell("echo one; read never; echo two");
    // Standard input is empty, so `read` returns at once and both lines come.
    let one = process.wait_for_line("on", LONG).await.unwrap();
    let two = process.wait_for_line("two", LONG).await.unwrap();
    assert_eq!((one.as_str(), two.as_str()), ("one", "two"));
    assert!(process.wait_exit(LONG).await.unwrap().success());
}

#[tokio::test]
async fn a_process_that_ends_without_the_line_is_reported_with_the_end_of_its_log() {
    let (_dir, process) = shell("echo something else >&2; printf 'no newline'; exit 3");
    let error = process.wait_for_line("wanted", LONG).await.unwrap_err();
    assert_eq!(error.code(), "EB-HARNESS-004");
    let message = error.to_string();
    for part in [
        "the script",
        "exit status: 3",
        "`wanted`",
        "something else",
        "no newline",
    ] {
        assert!(message.contains(part), "{part} is missing in {message}");
    }
}

#[tokio::test]
async fn a_last_line_without_a_newline_is_found() {
    let (_dir, process) = shell("printf 'the end'");
    assert_eq!(process.wait_for_line("end", LONG).await.unwrap(), "the end");
}

#[tokio::test]
async fn a_wait_ends_with_its_deadline() {
    let (_dir, process) = shell("echo started; exec sleep 1000");
    process.wait_for_line("started", LONG).await.unwrap();
    let short = Duration::from_millis(50);
    let line = process.wait_for_line("never", short).await.unwrap_err();
    let exit = process.wait_exit(short).await.unwrap_err();
    assert_eq!(
        (line.code(), exit.code()),
        ("EB-HARNESS-005", "EB-HARNESS-005")
    );
}

#[tokio::test]
async fn descendants_in_other_sessions_die_too() {
    let (_dir, process) =
        shell("setsid sh -c 'echo child $$; setsid sleep 1000 & echo grandchild $!; wait' & wait");
    let pid = |line: String| line.rsplit(' ').next().unwrap().to_owned();
    let child = pid(process.wait_for_line("child", LONG).await.unwrap());
    let grandchild = pid(process.wait_for_line("grandchild", LONG).await.unwrap());
    assert!(exists(&child) && exists(&grandchild));
    let own = process.pid().to_string();
    drop(process);
    assert!(!exists(&own) && !exists(&child) && !exists(&grandchild));
}

#[tokio::test]
async fn what_a_process_leaves_in_its_group_dies_with_it() {
    let (_dir, process) = shell("sleep 1000 & echo left $!");
    let line = process.wait_for_line("left", LONG).await.unwrap();
    assert!(process.wait_exit(LONG).await.unwrap().success());
    let left = line.rsplit(' ').next().unwrap();
    crate::eventually(LONG, async || {
        if exists(left) {
            Err("it lives")
        } else {
            Ok(())
        }
    })
    .await;
}

#[tokio::test]
async fn a_stopped_process_does_nothing_until_it_continues() {
    let (dir, process) =
        shell("trap 'echo heard; exit 0' TERM; echo ready; while :; do sleep 0.01; done");
    process.wait_for_line("ready", LONG).await.unwrap();
    process.signal(Signal::Stop).unwrap();
    process.signal(Signal::Term).unwrap();
    let quiet = process.wait_exit(Duration::from_millis(200)).await;
    assert!(quiet.is_err(), "a stopped process ended");
    assert!(
        !std::fs::read_to_string(dir.path().join("log"))
            .unwrap()
            .contains("heard")
    );
    process.signal(Signal::Cont).unwrap();
    process.wait_for_line("heard", LONG).await.unwrap();
    assert!(process.wait_exit(LONG).await.unwrap().success());
    assert_eq!(
        process.signal(Signal::Term).unwrap_err().code(),
        "EB-HARNESS-012"
    );
}

#[tokio::test]
async fn a_program_that_is_not_there_is_an_error_of_spawn() {
    let dir = tempfile::tempdir().unwrap();
    for program in ["no-such-program-anywhere", "/no/such/program"] {
        let error = ProcessCommand::new("nothing", program)
            .spawn(dir.path().join("log"))
            .unwrap_err();
        assert_eq!(error.code(), "EB-HARNESS-003");
        assert!(error.to_string().contains(program), "{error}");
    }
}
