//! The fence with real programs.

use super::*;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use uuid::Uuid;

fn script(dir: &tempfile::TempDir, body: &str) -> PathBuf {
    let path = dir.path().join("fence");
    std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn settings(path: &Path) -> FenceSettings {
    FenceSettings {
        command: vec![path.display().to_string(), "--fast".to_owned()],
        options: BTreeMap::from([("password".to_owned(), "s3cret = yes".to_owned())]),
        ..FenceSettings::default()
    }
}

fn server() -> ServerId {
    ServerId(Uuid::from_u128(7))
}

async fn fence(settings: &FenceSettings) -> Result<(), DriverError> {
    settings.check().unwrap();
    Fence::new(settings)
        .unwrap()
        .fence("host-a", server())
        .await
}

#[tokio::test]
async fn the_program_is_told_as_pacemakers_fence_agents_are() {
    let dir = tempfile::tempdir().unwrap();
    let heard = dir.path().join("heard");
    let path = script(
        &dir,
        &format!(
            "(cat; echo \"$1 $EBBTIDE_HOST $EBBTIDE_SERVER_ID\") >{}",
            heard.display()
        ),
    );
    fence(&settings(&path)).await.unwrap();
    let id = server();
    assert_eq!(
        std::fs::read_to_string(heard).unwrap(),
        format!(
            "action=off\nplug={id}\nnodename={id}\npassword=s3cret = yes\n--fast host-a {id}\n"
        )
    );
}

#[tokio::test]
async fn what_the_program_complains_about_is_passed_on_without_its_options() {
    let dir = tempfile::tempdir().unwrap();
    let path = script(&dir, "echo one; echo no such plug >&2; exit 3");
    let error = fence(&settings(&path)).await.unwrap_err().to_string();
    assert!(
        error.contains("no such plug") && error.contains("exit status: 3"),
        "{error}"
    );
    assert!(!error.contains("one;"), "errors come first: {error}");
    let told = format!("{:?} {error}", Fence::new(&settings(&path)));
    assert!(!told.contains("s3cret"), "{told}");
}

#[tokio::test]
async fn a_program_that_hangs_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let pid = dir.path().join("pid");
    let path = script(
        &dir,
        &format!("echo $$ >{}; exec sleep 1000", pid.display()),
    );
    let mut settings = settings(&path);
    settings.timeout_seconds = 1;
    let error = fence(&settings).await.unwrap_err().to_string();
    assert!(error.contains("within 1 s"), "{error}");
    let pid = std::fs::read_to_string(pid).unwrap();
    let gone = || {
        // A zombie has no command line.
        let line = std::fs::read(format!("/proc/{}/cmdline", pid.trim()));
        line.is_err() || line.is_ok_and(|line| line.is_empty())
    };
    for _ in 0..500 {
        if gone() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("process {pid} still runs");
}

#[test]
fn settings_that_cannot_work_name_the_key() {
    let dir = tempfile::tempdir().unwrap();
    let good = settings(&script(&dir, "exit 0"));
    let refused = |change: &dyn Fn(&mut FenceSettings)| {
        let mut settings = good.clone();
        change(&mut settings);
        settings.check().unwrap_err().0
    };
    assert_eq!(good.check(), Ok(()));
    assert_eq!(FenceSettings::default().check(), Ok(()));
    assert!(Fence::new(&FenceSettings::default()).is_none());
    assert_eq!(
        refused(&|s| s.command = vec!["fence_virsh".to_owned()]),
        "command"
    );
    assert_eq!(
        refused(&|s| s.command = vec!["/no/such".to_owned()]),
        "command"
    );
    assert_eq!(refused(&|s| s.command.clear()), "options");
    assert_eq!(refused(&|s| s.tries = 0), "tries");
    assert_eq!(refused(&|s| s.timeout_seconds = 3_601), "timeout_seconds");
    for (name, value) in [("plug", "x"), ("a=b", "x"), ("", "x"), ("user", "a\nb")] {
        let key = refused(&|s| {
            s.options.insert(name.to_owned(), value.to_owned());
        });
        assert_eq!(key, format!("options.{name}"));
    }
}
