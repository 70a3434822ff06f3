//! Scripts, run by a real shell.

use crate::sim::settings;
use ebbtide_batch::script::{
    ScriptOptions, directories, mark_path, output_path, result_path, script, state_path,
};
use ebbtide_batch::{MemberId, PUT_BACK, Work};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Stdio};

struct Bench {
    dir: std::path::PathBuf,
    work: Work,
}

const MEMBER: MemberId = MemberId { stage: 0, index: 0 };

impl Bench {
    fn new(name: &str, more: &[(&str, Value)]) -> Self {
        let dir = std::env::temp_dir().join(format!("ebbtide-batch-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let mut document = json!({"name": "w", "dir": dir.join("it is shared"), "command": "true"});
        for (key, value) in more {
            document[key] = value.clone();
        }
        let work = Work::read(&document).unwrap();
        for one in directories(&work) {
            std::fs::create_dir_all(one).unwrap();
        }
        Self { dir, work }
    }

    fn text(&self, attempt: u32, ebbtide: &str) -> String {
        let types = settings().server_types().unwrap();
        let options = ScriptOptions {
            attempt,
            server_type: &types[0],
            age: 3_600_000,
            length: 7_200_000,
            ebbtide,
        };
        script(&self.work, MEMBER, options)
    }

    fn run(&self, attempt: u32) -> i32 {
        let path = self.dir.join("script");
        std::fs::write(&path, self.text(attempt, "ebbtide")).unwrap();
        let mut shell = Command::new("/bin/sh");
        shell.arg(&path).stdout(Stdio::null()).stderr(Stdio::null());
        shell.status().unwrap().code().unwrap()
    }

    fn read(&self, path: &str) -> Option<String> {
        let text = std::fs::read_to_string(Path::new(path)).ok();
        text.map(|text| text.trim().to_owned())
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

#[test]
fn a_member_is_marked_once_and_its_results_are_copied() {
    let command = "echo \"$ALPHA $EBBTIDE_MEMBER\" >'out put'; cat input >>'out put'";
    let input = std::env::temp_dir().join(format!("ebbtide-batch-{}-input", std::process::id()));
    std::fs::create_dir_all(&input).unwrap();
    std::fs::write(input.join("input"), "given").unwrap();
    let bench = Bench::new(
        "marked",
        &[
            ("command", json!(command)),
            ("parameters", json!({"ALPHA": ["it's"]})),
            ("inputs", json!([input.join("input")])),
            ("outputs", json!(["out put"])),
        ],
    );
    assert_eq!(bench.run(3), 0);
    let work = &bench.work;
    assert_eq!(bench.read(&mark_path(work, MEMBER)).unwrap(), "3");
    assert_eq!(bench.read(&result_path(work, MEMBER, 3)).unwrap(), "0");
    let result = format!("{}/results/main.0/out put", work.dir.display());
    assert_eq!(bench.read(&result).unwrap(), "it's 0\ngiven");
    // Another attempt finds the mark and does nothing.
    std::fs::remove_file(&result).unwrap();
    assert_eq!(bench.run(4), 0);
    assert_eq!(bench.read(&mark_path(work, MEMBER)).unwrap(), "3");
    assert!(bench.read(&result).is_none());
    std::fs::remove_dir_all(input).unwrap();
}

#[test]
fn a_command_that_fails_leaves_its_code_and_no_mark() {
    let bench = Bench::new("fails", &[("command", json!("exit 7"))]);
    assert_eq!(bench.run(1), 7);
    assert_eq!(
        bench.read(&result_path(&bench.work, MEMBER, 1)).unwrap(),
        "7"
    );
    assert!(bench.read(&mark_path(&bench.work, MEMBER)).is_none());
    let missing = Bench::new("missing", &[("inputs", json!(["/is/not/there"]))]);
    assert_eq!(missing.run(1), 66);
}

/// A stand-in for `ebbtide run`: it waits for TERM and says 130.
const SAVES: &str = "#!/bin/sh\necho \"$@\" >\"$EBBTIDE_WORK_DIR/arguments\"\ntrap 'exit 130' TERM\n: >\"$EBBTIDE_WORK_DIR/ready\"\nwhile :; do sleep 0.05; done\n";

#[test]
fn a_member_that_is_told_to_save_is_put_back() {
    use std::os::unix::fs::PermissionsExt as _;
    let checkpoint = json!({"command": "./save", "restore": "./restore", "cost": "2s"});
    let bench = Bench::new("saves", &[("checkpoint", checkpoint)]);
    let program = bench.dir.join("ebbtide");
    std::fs::write(&program, SAVES).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = bench.dir.join("script");
    std::fs::write(&path, bench.text(2, program.to_str().unwrap())).unwrap();
    let mut child = Command::new("/bin/sh").arg(&path).spawn().unwrap();
    let ready = bench.work.dir.join("ready");
    while !ready.exists() {
        assert!(child.try_wait().unwrap().is_none());
        std::thread::yield_now();
    }
    let tell = |signal: &str| {
        let told = Command::new("kill")
            .args([signal, &child.id().to_string()])
            .status();
        assert!(told.unwrap().success());
    };
    // To save and go on: that ends neither the script nor a program that does not listen yet.
    tell("-USR1");
    tell("-TERM");
    // Repeated, it is not passed on: the program saves. The script may have ended by now.
    let _ = Command::new("kill")
        .args(["-TERM", &child.id().to_string()])
        .status();
    assert_eq!(child.wait().unwrap().code(), Some(PUT_BACK));
    let result = bench.read(&result_path(&bench.work, MEMBER, 2));
    assert_eq!(result.unwrap(), PUT_BACK.to_string());
    let arguments = std::fs::read_to_string(bench.work.dir.join("arguments")).unwrap();
    for part in [
        "--age 1.000000h",
        "--job 2.000000h",
        "--model uniform:max=24",
        "--cost 0.000556h",
        "--checkpoint-command ./save",
        "--restore-command ./restore",
        "-- sh -c true",
    ] {
        assert!(arguments.contains(part), "{arguments}: {part}");
    }
    assert!(state_path(&bench.work, MEMBER).ends_with("/work/main.0/.run"));
    assert!(output_path(&bench.work, MEMBER, 2).ends_with("/output/main.0.2"));
}

#[test]
fn a_member_that_is_told_before_its_command_runs_is_put_back() {
    use std::os::unix::fs::PermissionsExt as _;
    let checkpoint = json!({"command": "./save", "cost": "2s"});
    let bench = Bench::new("early", &[("checkpoint", checkpoint)]);
    // The script tells itself before it begins with the command, and the command never ends alone.
    let program = bench.dir.join("sleeps");
    std::fs::write(&program, "#!/bin/sh\nexec sleep 600\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let text = bench.text(1, program.to_str().unwrap());
    let (before, after) = text.split_once("\ndir=").unwrap();
    let path = bench.dir.join("script");
    std::fs::write(&path, format!("{before}\nkill -TERM $$\ndir={after}")).unwrap();
    let ended = Command::new("/bin/sh").arg(&path).status().unwrap();
    assert_eq!(ended.code(), Some(PUT_BACK));
    let result = bench.read(&result_path(&bench.work, MEMBER, 1));
    assert_eq!(result.unwrap(), PUT_BACK.to_string());
}
