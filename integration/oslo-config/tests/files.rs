//! Files on disk: what an operator is told when something is wrong, and reading again.

#![allow(
    clippy::unwrap_used,
    reason = "clippy sees helpers beside the tests as no tests"
)]

use oslo_config::{Config, ConfigError, Opt};
use proptest::prelude::*;
use std::path::PathBuf;

const WORKERS: Opt = Opt::int("scheduler", "workers").between(1, 64).default("4");
const SECRET: Opt = Opt::int("database", "password").secret();

fn load(text: &[u8]) -> (Result<Config, ConfigError>, tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("nova.conf");
    std::fs::write(&file, text).unwrap();
    let config = Config::load_with(std::slice::from_ref(&file), &[], []);
    (config, folder, file)
}

#[test]
fn a_wrong_value_is_named_with_its_file_line_group_and_what_is_allowed() {
    let (config, _folder, file) =
        load(b"[scheduler]\n# many\nworkers = 1\nworkers =\n  65\n[database]\npassword = geheim\n");
    let config = config.unwrap();
    let error = config.int(&WORKERS).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "EB-CONF-004: {}:4: [scheduler] workers = \n65: allowed is a whole number from 1 to 64",
            file.display()
        )
    );
    let error = config.int(&SECRET).unwrap_err().to_string();
    assert!(
        error.contains("[database] password = ***") && !error.contains("geheim"),
        "{error}"
    );
    let (config, _folder, _) = load(b"");
    assert_eq!(config.unwrap().int(&WORKERS).unwrap(), Some(4));
}

#[test]
fn variables_that_multiply_come_to_an_end() {
    // Each one stands for two of the next: 2⁶⁰ of the last one.
    for last in ["", "x"] {
        let mut text = String::from("[DEFAULT]\n");
        for n in 0..60 {
            text.push_str(&format!("a{n} = $a{0}$a{0}\n", n + 1));
        }
        text.push_str(&format!("a60 = {last}\n"));
        let (config, _folder, _) = load(text.as_bytes());
        let config = config.unwrap();
        let error = config.get("DEFAULT", "a0").unwrap_err().to_string();
        assert!(error.contains("a million characters"), "{error}");
        assert_eq!(
            config.get("DEFAULT", "a57").unwrap().unwrap(),
            last.repeat(8)
        );
    }
}

#[test]
fn a_wrong_line_is_named_and_not_shown() {
    for (text, line, what) in [
        (
            &b"[a]\nb = 1\n\n geheim\n"[..],
            4,
            "a continuation line without a value before it",
        ),
        (
            b"[a]\ngeheim\n",
            2,
            "there is no = or : between an option and its value",
        ),
        (b"geheim = 1\n", 1, "a value before the first section"),
        (b"[a]\n\n[geheim\n", 3, "a section has to end with ]"),
        (b"[a]\nb = \xff\xfe\n", 2, "this is no UTF-8"),
    ] {
        let (config, _folder, file) = load(text);
        let error = config.unwrap_err();
        assert_eq!(
            (error.code(), error.to_string()),
            (
                "EB-CONF-003",
                format!("EB-CONF-003: {}:{line}: {what}", file.display())
            )
        );
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let missing = PathBuf::from("/nowhere/nova.conf");
    for (files, dirs) in [(vec![missing.clone()], vec![]), (vec![], vec![missing])] {
        let error = Config::load_with(&files, &dirs, []).unwrap_err();
        assert_eq!(error.code(), "EB-CONF-001");
        assert!(error.to_string().contains("/nowhere/nova.conf"), "{error}");
    }
}

#[test]
fn reading_again_sees_what_changed_and_keeps_the_old_where_it_fails() {
    let (config, _folder, file) = load(b"[scheduler]\nworkers = 2\n");
    let config = config.unwrap();
    std::fs::write(&file, "[scheduler]\nworkers = 3\n").unwrap();
    let fresh = config.reload().unwrap();
    assert_eq!(
        (config.int(&WORKERS).unwrap(), fresh.int(&WORKERS).unwrap()),
        (Some(2), Some(3))
    );
    std::fs::write(&file, "[scheduler\n").unwrap();
    assert_eq!(fresh.reload().unwrap_err().code(), "EB-CONF-003");
    assert_eq!(fresh.int(&WORKERS).unwrap(), Some(3));
}

#[test]
fn a_section_is_handed_out_by_name_with_its_variables_and_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("nova.conf");
    std::fs::write(
        &file,
        "[DEFAULT]\nmy_ip = 10.0.0.1\n[Placement]\nauth_url = http://$my_ip/\nusername = a\n",
    )
    .unwrap();
    let environment = [
        ("OS_PLACEMENT__USERNAME".to_owned(), "b".to_owned()),
        ("OS_PLACEMENT__PASSWORD".to_owned(), "$$".to_owned()),
    ];
    let config = Config::load_with(&[file], &[], environment).unwrap();
    let section = config.section("placement").unwrap();
    let pairs: Vec<(&str, &str)> = section
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(
        pairs,
        [
            ("auth_url", "http://10.0.0.1/"),
            ("password", "$"),
            ("username", "b")
        ]
    );
    assert!(!format!("{config:?}").contains("10.0.0.1"));
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let (config, _folder, _) = load(&bytes);
        if let Ok(config) = config {
            drop(config.int(&WORKERS));
        }
    }

    #[test]
    fn no_text_makes_a_value_panic(text in "[\\[\\]{}a-c$\\\\.:=,'\"\n 0-9_#-]{0,60}") {
        let (config, _folder, _) = load(format!("[scheduler]\nv = {text}\n").as_bytes());
        if let Ok(config) = config {
            for option in [
                Opt::text("scheduler", "v"), Opt::bool("scheduler", "v"), Opt::int("scheduler", "v"), Opt::float("scheduler", "v"),
                Opt::list("scheduler", "v"), Opt::dict("scheduler", "v"), Opt::many("scheduler", "v"),
            ] {
                if let Ok(value) = config.value(&option) {
                    prop_assert!(value.is_some());
                }
            }
        }
    }
}
