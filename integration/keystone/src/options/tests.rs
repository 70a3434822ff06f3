use super::*;
use ebbtide_openstack::TokenScope;
use std::path::Path;

/// The section that `devstack/lib/openstack/config.sh` writes, without the memcached line.
const USUAL: &str = "\
www_authenticate_uri = http://public:5000
auth_url = http://internal:5000/v3
auth_type = password
project_domain_name = Default
user_domain_name = Default
project_name = service
username = nova
password = s3cret
";

fn read(more: &str) -> Result<AuthTokenOptions, KeystoneError> {
    read_text(&format!("[keystone_authtoken]\n{USUAL}{more}\n"))
}

fn read_text(text: &str) -> Result<AuthTokenOptions, KeystoneError> {
    AuthTokenOptions::read(&Config::of_text(Path::new("nova.conf"), text).unwrap())
}

fn problem(more: &str) -> (String, String) {
    match read(more).unwrap_err() {
        KeystoneError::Config {
            section,
            option,
            problem,
        } => {
            assert_eq!(section, SECTION);
            (option, problem)
        }
        other => panic!("{other}"),
    }
}

#[test]
fn the_usual_section_is_read_with_keystonemiddlewares_defaults() {
    let options = read("").unwrap();
    assert_eq!(options.challenge(), "Keystone uri=\"http://public:5000\"");
    assert_eq!(options.token_cache_time, Duration::from_secs(300));
    assert_eq!(options.identity.valid_interfaces, ["internal"]);
    assert_eq!(options.identity.connect_retries, 3);
    assert_eq!(options.identity.service_type, "identity");
    assert_eq!(options.rules.service_token_roles, ["service"]);
    assert!(!options.rules.service_token_roles_required);
    assert!(options.include_service_catalog);
    assert!(!format!("{options:?}").contains("s3cret"));
}

#[test]
fn every_supported_option_has_its_effect() {
    let options = read(
        "interface = admin\nregion_name = R2\nhttp_connect_timeout = 7\n\
         http_request_max_retries = 0\ntoken_cache_time = 60\nservice_token_roles = a, b\n\
         service_token_roles_required = true\nservice_type = preemption\n\
         include_service_catalog = false\nenforce_token_bind = strict\ninsecure = true\n\
         cafile = /ca.pem\nauth_version = v3\ndelay_auth_decision = false",
    )
    .unwrap();
    assert_eq!(options.identity.valid_interfaces, ["admin"]);
    assert_eq!(options.identity.region_name.as_deref(), Some("R2"));
    assert_eq!(options.identity.timeout, Some(Duration::from_secs(7)));
    assert_eq!(options.auth.timeout, Some(Duration::from_secs(7)));
    assert_eq!(options.identity.connect_retries, 0);
    assert_eq!(options.token_cache_time, Duration::from_secs(60));
    assert_eq!(options.rules.service_token_roles, ["a", "b"]);
    assert!(options.rules.service_token_roles_required);
    assert_eq!(options.rules.service_type.as_deref(), Some("preemption"));
    assert_eq!(options.identity.service_type, "identity");
    assert!(!options.include_service_catalog);
    assert_eq!(options.rules.bind, BindMode::Strict);
    assert!(options.auth.tls.insecure);
    assert_eq!(
        options.auth.tls.cafile.as_deref(),
        Some(Path::new("/ca.pem"))
    );
}

#[test]
fn options_that_would_change_what_is_allowed_are_errors() {
    for (given, option) in [
        ("delay_auth_decision = true", "delay_auth_decision"),
        ("enforce_token_bind = required", "enforce_token_bind"),
        ("enforce_token_bind = kerberos", "enforce_token_bind"),
        ("auth_version = v2.0", "auth_version"),
        ("admin_token = s3cret", "admin_token"),
        ("identity_uri = http://k", "identity_uri"),
        ("trust_id = t", "trust_id"),
    ] {
        let (named, problem) = problem(given);
        assert_eq!(named, option);
        assert!(
            problem.contains("not supported") || problem.contains("only v3"),
            "{problem}"
        );
        assert!(!problem.contains("s3cret"), "{problem}");
    }
}

#[test]
fn other_ways_to_authenticate_are_errors() {
    for kind in ["none", "admin_token", "v3oidcpassword", ""] {
        let (named, problem) = problem(&format!("auth_type = {kind}"));
        assert_eq!(named, "auth_type");
        assert!(problem.contains("v3applicationcredential"), "{problem}");
    }
    let (named, _) = problem("auth_url =");
    assert_eq!(named, "auth_url");
}

#[test]
fn wrong_values_name_their_option() {
    for given in [
        "interface = private",
        "http_request_max_retries = many",
        "token_cache_time = soon",
        "service_token_roles_required = perhaps",
        "insecure = perhaps",
    ] {
        let option = given.split(' ').next().unwrap();
        let (named, _) = problem(given);
        assert!(named == option || named == "valid_interfaces", "{named}");
    }
}

#[test]
fn caching_can_be_turned_off() {
    assert_eq!(
        read("token_cache_time = -1").unwrap().token_cache_time,
        Duration::ZERO
    );
}

#[test]
fn options_of_memcached_are_noted_and_have_no_effect() {
    let given = "memcached_servers = a:1\nmemcache_security_strategy = ENCRYPT\n\
        memcache_secret_key = s3cret\nservice_type = preemption";
    let options = read(given).unwrap();
    assert_eq!(options.notes.len(), 3, "{:?}", options.notes);
    assert!(
        options
            .notes
            .iter()
            .all(|note| note.contains("has no effect"))
    );
    assert!(!options.notes.concat().contains("s3cret"));
}

#[test]
fn credentials_may_be_in_a_section_of_their_own() {
    let text = "[keystone_authtoken]\nauth_section = creds\ninsecure = true\n\
        [creds]\nauth_type = v3applicationcredential\nauth_url = http://k\n\
        application_credential_id = c\napplication_credential_secret = s3cret\n";
    let options = read_text(text).unwrap();
    let expected = matches!(
        options.auth.method,
        AuthMethod::ApplicationCredential { .. }
    );
    assert!(expected && options.auth.tls.insecure);
    let (option, _) = problem("auth_section = missing");
    assert_eq!(option, "auth_section");
}

#[test]
fn limits_are_read_for_the_whole_system() {
    let auth = for_the_system(&read("").unwrap().auth).unwrap();
    let system = matches!(
        auth.method,
        AuthMethod::Password {
            scope: TokenScope::System,
            ..
        }
    );
    assert!(system);
}
