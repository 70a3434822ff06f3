//! Files, environment and flags together.

use super::*;
use std::io::Write;

fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

#[test]
fn nothing_at_all_is_a_configuration() {
    let config = Config::read(None, std::iter::empty(), &[]).unwrap();
    assert_eq!(config, Config::default());
}

#[test]
fn flags_win_over_the_environment_and_that_over_the_file() {
    let file = file(
        "[database]\nurl = \"sqlite://file.db\"\nkeep_days = 40\n[grpc]\nlisten = \"127.0.0.1:1\"\n",
    );
    let environment = [
        (
            "EBBTIDE__DATABASE__URL".to_owned(),
            "sqlite://env.db".to_owned(),
        ),
        (
            "EBBTIDE__REGION__NOTICE_ATTEMPTS".to_owned(),
            "5".to_owned(),
        ),
        ("EBBTIDE__GRPC__LISTEN".to_owned(), "127.0.0.1:2".to_owned()),
        ("EBBTIDE_PROJECT".to_owned(), "not ours".to_owned()),
    ];
    let flags = [("grpc.listen", "127.0.0.1:3".to_owned())];
    let config = Config::read(Some(file.path()), environment.into_iter(), &flags).unwrap();
    assert_eq!(config.database.url, "sqlite://env.db");
    assert_eq!(config.database.keep_days, 40);
    assert_eq!(config.region.notice_attempts, 5);
    assert_eq!(config.grpc.listen.port(), 3);
}

#[test]
fn a_typing_error_is_named() {
    for (text, named) in [
        ("[databse]\nurl = \"x\"", "databse"),
        ("[region]\nnotice_atempts = 3", "notice_atempts"),
        ("[region]\nnotice_attempts = 0", "notice_attempts"),
        ("[bus]\nqueue_type = \"fast\"", "queue_type"),
        ("[grpc]\nlisten = \"nowhere\"", "line 2, column 10"),
        ("[log]\nfilter = \"ebbtide=loud\"", "log.filter"),
        ("[engine", "line 1"),
    ] {
        let error = Config::read(Some(file(text).path()), std::iter::empty(), &[]).unwrap_err();
        assert!(error.to_string().contains(named), "{text:?}: {error}");
    }
    let environment = [("EBBTIDE__DATABASE__URLL".to_owned(), "x".to_owned())];
    let error = Config::read(None, environment.into_iter(), &[]).unwrap_err();
    assert!(error.to_string().contains("urll"), "{error}");
}

#[test]
fn no_error_shows_the_password_of_a_url_in_the_file() {
    for text in [
        "[database]\nurl = [\"mysql://u:geheim@h/d\"]",
        "[bus]\nurls = \"amqp://u:geheim@h/d\"",
        "[bus]\nurls = [\"amqp://u:geheim@h\"",
        "[bus]\nqueue_type = \"amqp://u:geheim@h\"",
        "[bus]\nurls = [\"amqp://u:ab geheim@h\", 1]",
        "[database]\nurl = \"mysql://u:ab geheim@h/d\"\nurl = 1",
        "[database]\nmax_connections = \"geheim\"",
    ] {
        let error = Config::read(Some(file(text).path()), std::iter::empty(), &[]).unwrap_err();
        assert!(!error.to_string().contains("geheim"), "{error}");
    }
}

#[test]
fn a_missing_file_is_named() {
    let error = Config::read(
        Some(Path::new("/nowhere/ebbtide.toml")),
        std::iter::empty(),
        &[],
    )
    .unwrap_err();
    assert!(
        error.to_string().contains("/nowhere/ebbtide.toml"),
        "{error}"
    );
}

#[test]
fn a_plugin_that_is_not_enabled_or_there_twice_is_told_before_its_file_is_read() {
    let one = "[[plugins]]\nname = \"spread\"\nfile = \"spread.wasm\"\n";
    let named = "[engine]\nweighers = [{ name = \"spread\" }]\n";
    let parse = |text: &str| Config::parse(Path::new("f"), text, std::iter::empty(), &[]).map(drop);
    assert!(parse(&format!("{named}{one}")).is_ok());
    let disabled = parse(&format!("{named}{one}enabled = false\n")).unwrap_err();
    assert!(disabled.to_string().contains("spread"), "{disabled}");
    assert!(parse(&format!("{one}enabled = false\n")).is_ok());
    let twice = parse(&format!("{one}{one}")).unwrap_err();
    assert_eq!(twice.code(), "EB-PLUGIN-001", "{twice}");
}

#[test]
fn passwords_are_not_shown() {
    let mut config = Config::default();
    config.database.url = "mysql://u:secret@h/d".to_owned();
    config.bus.urls = vec!["amqp://u:secret@h".to_owned()];
    assert!(!format!("{config:?}").contains("secret"));
    let shown = toml::to_string(&config.without_passwords()).unwrap();
    assert!(
        shown.contains("mysql://u:***@h/d") && !shown.contains("secret"),
        "{shown}"
    );
    assert_eq!(hide_password("mysql://u@s:secret@h"), "mysql://u:***@h");
}
