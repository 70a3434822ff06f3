//! A token has one holder, also when several hosts take it at the same time.

use super::*;
use uuid::Uuid;

fn open(dir: &Path, host: &str) -> SharedStorage {
    let settings = StorageSettings {
        name: "nfs-1".to_owned(),
        dir: dir.to_owned(),
    };
    SharedStorage::open(settings, host).unwrap()
}

fn id(n: u128) -> ServerId {
    ServerId(Uuid::from_u128(n))
}

#[test]
fn of_all_who_try_at_the_same_time_one_takes_the_token() {
    let dir = tempfile::tempdir().unwrap();
    let first = open(dir.path(), "host-0");
    for round in 0..50 {
        first.write(id(round), &"known").unwrap();
        first.release_token(id(round)).unwrap();
        let path = dir.path();
        let ours = std::thread::scope(|scope| {
            let tries: Vec<_> = (0..4)
                .map(|n| {
                    scope.spawn(move || {
                        let host = open(path, &format!("host-{n}"));
                        host.take(id(round)).unwrap() == TokenClaim::Ours
                    })
                })
                .collect();
            let done = tries.into_iter().map(|t| t.join().unwrap());
            done.filter(|ours| *ours).count()
        });
        assert_eq!(ours, 1, "round {round}");
    }
}

#[test]
fn who_has_the_token_is_said_and_what_is_known_goes_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (open(dir.path(), "a"), open(dir.path(), "b.example"));
    assert_eq!(b.take(id(1)).unwrap(), TokenClaim::Unclaimed);
    a.write(id(1), &"one").unwrap();
    assert_eq!(b.take(id(1)).unwrap(), TokenClaim::Theirs("a".to_owned()));
    a.release_token(id(1)).unwrap();
    a.release_token(id(1)).unwrap();
    assert_eq!(a.ours().unwrap(), [id(1)]);
    assert_eq!(a.known::<String>(id(1)).unwrap().as_deref(), Some("one"));
    assert_eq!(b.take(id(1)).unwrap(), TokenClaim::Ours);
    assert_eq!(b.held::<String>(id(1)).unwrap().as_deref(), Some("one"));
    assert_eq!(
        a.take(id(1)).unwrap(),
        TokenClaim::Theirs("b.example".to_owned())
    );
    assert_eq!(a.known::<String>(id(1)).unwrap(), None);
    assert!(a.ours().unwrap().is_empty());
    b.delete_token(id(1)).unwrap();
    assert_eq!(a.find(id(1)).unwrap(), None);
}

#[test]
fn what_two_hosts_have_begun_under_one_name_stays_apart() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (open(dir.path(), "a"), open(dir.path(), "b"));
    a.write(id(1), &"given up").unwrap();
    b.write(id(1), &"meant").unwrap();
    b.release_token(id(1)).unwrap();
    assert_ne!(a.dir_of(id(1)), b.dir_of(id(1)));
    a.delete_token(id(1)).unwrap();
    assert_eq!(
        b.find(id(1)).unwrap(),
        Some(TokenPlace::Kept("b".to_owned()))
    );
}

#[test]
fn a_storage_without_a_name_or_with_a_relative_directory_is_refused() {
    let of = |name: &str, dir: &str| StorageSettings {
        name: name.to_owned(),
        dir: PathBuf::from(dir),
    };
    assert!(of("nfs-1", "/srv").check("libvirt").is_ok());
    for (wrong, key) in [
        (of("", "/srv"), "storage.name"),
        (of("x", "srv"), "storage.dir"),
    ] {
        let error = wrong.check("libvirt").unwrap_err().to_string();
        assert!(error.contains(key), "{error}");
    }
}
