//! The rules by which a cloud is found: a table of files, variables and options, and what follows.

#![allow(clippy::unwrap_used)] // All of this is tests.

use ebbtide_openstack::{ApplicationCredential, AuthMethod, IdOrName, Secret, TokenScope};
use ebbtide_os_cloud::{CloudConfig, CloudSelector, Environment, OsCloudError};
use std::path::Path;
use tempfile::TempDir;

/// A user with folders `here`, `home/.config/openstack` and `site`.
struct User {
    folder: TempDir,
    environment: Environment,
}

impl User {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        let folders = ["here", "home/.config/openstack", "site"];
        let environment = Environment {
            folders: folders.map(|name| folder.path().join(name)).into(),
            home: Some(home),
            ..Environment::default()
        };
        for folder in &environment.folders {
            std::fs::create_dir_all(folder).unwrap();
        }
        Self {
            folder,
            environment,
        }
    }

    fn file(self, name: &str, text: &str) -> Self {
        std::fs::write(self.folder.path().join(name), text).unwrap();
        self
    }

    fn set(mut self, name: &str, value: &str) -> Self {
        let variables = &mut self.environment.variables;
        variables.insert(name.to_owned(), value.to_owned());
        self
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn find(&self, name: Option<&str>, region: Option<&str>) -> Result<CloudConfig, OsCloudError> {
        let found = CloudConfig::find(&self.environment, CloudSelector { name, region });
        found.map(|cloud| cloud.unwrap())
    }

    fn cloud(&self, name: &str) -> CloudConfig {
        self.find(Some(name), None).unwrap()
    }

    fn error(&self, name: &str) -> OsCloudError {
        self.find(Some(name), None).unwrap_err()
    }
}

/// A cloud with everything that a password needs.
fn clouds(name: &str, url: &str) -> String {
    format!(
        "clouds:\n  {name}:\n    auth:\n      auth_url: {url}\n      username: ada\n      \
         password: secret\n      project_name: research\n"
    )
}

fn url(cloud: &CloudConfig) -> &str {
    cloud.auth.auth_url.as_deref().unwrap()
}

#[test]
fn without_a_name_or_variables_there_is_no_cloud() {
    let user = User::new().file("here/clouds.yaml", &clouds("only", "http://only"));
    let user = user.set("OS_REGION_NAME", "RegionOne");
    let found = CloudConfig::find(&user.environment, CloudSelector::default());
    assert_eq!(found, Ok(None));
}

#[test]
fn the_first_file_counts_and_a_variable_names_one_before_all() {
    let user = User::new().file("site/clouds.yaml", &clouds("c", "http://site"));
    assert_eq!(url(&user.cloud("c")), "http://site");
    let user = user.file(
        "home/.config/openstack/clouds.yml",
        &clouds("c", "http://home"),
    );
    assert_eq!(url(&user.cloud("c")), "http://home");
    let json = r#"{"clouds": {"c": {"auth": {"auth_url": "http://here",
        "username": "ada", "password": "pw"}}}}"#;
    let user = user.file("here/clouds.json", json);
    assert_eq!(url(&user.cloud("c")), "http://here");
    let user = user.file("mine", &clouds("c", "http://mine"));
    let mine = user.path("mine");
    let user = user.set("OS_CLIENT_CONFIG_FILE", &mine);
    assert_eq!(url(&user.cloud("c")), "http://mine");
    let user = user.set("OS_CLIENT_CONFIG_FILE", "/nowhere/clouds.yaml");
    assert_eq!(url(&user.cloud("c")), "http://here");
}

#[test]
fn an_option_comes_before_os_cloud_and_that_before_variables() {
    let two = clouds("a", "http://a") + &clouds("b", "http://b").replace("clouds:\n", "");
    let user = User::new().file("here/clouds.yaml", &two);
    let user = user.set("OS_AUTH_URL", "http://variables");
    let user = user.set("OS_USERNAME", "eve").set("OS_PASSWORD", "pw");
    assert_eq!(url(&user.find(None, None).unwrap()), "http://variables");
    assert_eq!(user.find(None, None).unwrap().name, "envvars");
    assert_eq!(url(&user.cloud("envvars")), "http://variables");
    let user = user.set("OS_CLOUD", "a");
    assert_eq!(url(&user.find(None, None).unwrap()), "http://a");
    assert_eq!(url(&user.cloud("b")), "http://b");
    // A named cloud is not mixed with the variables of another.
    let AuthMethod::Password { user, password, .. } = user.cloud("b").auth.method else {
        panic!("another method");
    };
    let name = IdOrName::Name {
        name: "ada".into(),
        domain: Ok("default".into()),
    };
    assert_eq!((user, password), (name, Secret::new("secret")));
}

#[test]
fn secrets_may_stand_in_a_file_or_a_variable_of_their_own() {
    let open = clouds("c", "http://c").replace("      password: secret\n", "");
    let password = |user: &User| match user.cloud("c").auth.method {
        AuthMethod::Password { password, .. } => password,
        other => panic!("{other:?}"),
    };
    let user = User::new().file("here/clouds.yaml", &open);
    assert_eq!(user.error("c").code(), "EB-HTTP-001");
    let user = user.set("OS_PASSWORD", "of the variable");
    assert_eq!(password(&user), Secret::new("of the variable"));
    // Anywhere, not only beside clouds.yaml.
    let secure = "clouds:\n  c:\n    auth:\n      password: of the file\n";
    let user = user.file("site/secure.yaml", secure);
    assert_eq!(password(&user), Secret::new("of the file"));
    assert_eq!(url(&user.cloud("c")), "http://c");
}

#[test]
fn every_method_of_authentication_is_read() {
    let text = "
clouds:
  credential:
    auth_type: v3applicationcredential
    auth:
      auth_url: http://k
      application_credential_id: 12e45
      application_credential_secret: 0123
  by_name:
    auth_type: v3applicationcredential
    auth: {auth_url: 'http://k', application_credential_name: n, username: ada,
           user_domain_name: d, application_credential_secret: s}
  token:
    auth_type: v3token
    auth: {auth_url: 'http://k', token: t, project_id: p}
  token_alone:
    auth: {auth_url: 'http://k', auth-token: t}
  unscoped:
    auth: {auth_url: 'http://k', user_id: u, password: p}
  system:
    auth: {auth_url: 'http://k', user_id: u, password: p, system_scope: all}
  domain:
    auth: {auth_url: 'http://k', user_id: u, password: p, domain_name: d}
  one_domain:
    auth: {auth_url: 'http://k', username: u, password: p, project_name: q, domain_id: d}
  top:
    project_id: above
    username: above
    auth: {auth_url: 'http://k', username: u, user_domain_id: d, password: p, project_id: q}
  fixed:
    auth_type: token_endpoint
    auth: {token: t, endpoint: 'http://e'}
    endpoint: http://e
  other:
    auth_type: v3oidcpassword
    auth: {auth_url: 'http://k'}
";
    let user = User::new().file("here/clouds.yaml", text);
    let method = |name: &str| user.cloud(name).auth.method;
    let secret = |text: &str| Secret::new(text);
    let id = |text: &str| IdOrName::Id(text.to_owned());
    let named = |name: &str, domain: Result<&str, &str>| IdOrName::Name {
        name: name.to_owned(),
        domain: domain.map(str::to_owned).map_err(str::to_owned),
    };
    let password = |user, scope| AuthMethod::Password {
        user,
        password: secret("p"),
        scope,
    };
    // Neither becomes a number on its way.
    let credential = ApplicationCredential::Id("12e45".to_owned());
    let expected = AuthMethod::ApplicationCredential {
        credential,
        secret: secret("0123"),
    };
    assert_eq!(method("credential"), expected);
    let credential = ApplicationCredential::Name {
        name: "n".to_owned(),
        user: named("ada", Err("d")),
    };
    let expected = AuthMethod::ApplicationCredential {
        credential,
        secret: secret("s"),
    };
    assert_eq!(method("by_name"), expected);
    for (name, scope) in [
        ("token", TokenScope::Project(id("p"))),
        ("token_alone", TokenScope::Unscoped),
    ] {
        let token = secret("t");
        assert_eq!(method(name), AuthMethod::Token { token, scope }, "{name}");
    }
    for (name, scope) in [
        ("unscoped", TokenScope::Unscoped),
        ("system", TokenScope::System),
        ("domain", TokenScope::Domain(Err("d".to_owned()))),
    ] {
        assert_eq!(method(name), password(id("u"), scope), "{name}");
    }
    let scope = TokenScope::Project(named("q", Ok("d")));
    assert_eq!(method("one_domain"), password(named("u", Ok("d")), scope));
    // Of the two places, `auth` counts for the user and the other for the project, as in
    // openstacksdk.
    let scope = TokenScope::Project(id("above"));
    assert_eq!(method("top"), password(named("u", Ok("d")), scope));
    let fixed = AuthMethod::AdminToken { token: secret("t") };
    assert_eq!(method("fixed"), fixed);
    let error = user.error("other");
    assert!(
        error.to_string().contains("v3applicationcredential"),
        "{error}"
    );
}

#[test]
fn regions_have_values_of_their_own() {
    let text = "
clouds:
  c:
    auth: {auth_url: 'http://{region_name}.k', user_id: u, password: p}
    regions:
      - one
      - name: two
        values:
          interface: internal
          auth: {user_id: other}
          preemption_endpoint_override: 'https://o'
          compute_endpoint_override: 'https://nova.{region_name}/v2.1'
          compute_api_version: 2.79
          image_interface: public
  listed: {auth: {auth_url: 'http://k', user_id: u, password: p}, region_name: 'a, b'}
  single: {auth: {auth_url: 'http://k', user_id: u, password: p}, region_name: a}
  none: {auth: {auth_url: 'http://k', user_id: u, password: p}}
";
    let user = User::new().file("here/clouds.yaml", text);
    let region = |name, region| {
        let found = user.find(Some(name), region);
        found.map(|cloud| cloud.adapter.region_name)
    };
    let is = |text: &str| Ok(Some(text.to_owned()));
    assert_eq!(region("c", None), is("one"));
    assert_eq!(url(&user.cloud("c")), "http://one.k");
    assert_eq!(region("listed", None), is("a"));
    assert_eq!(region("listed", Some("b")), is("b"));
    assert_eq!(region("single", Some("a")), is("a"));
    assert_eq!(region("none", None), Ok(None));
    assert_eq!(region("none", Some("x")), is("x"));
    let two = user.find(Some("c"), Some("two")).unwrap();
    assert_eq!(two.adapter.valid_interfaces, ["internal"]);
    assert_eq!(two.adapter.endpoint_override.as_deref(), Some("https://o"));
    assert_eq!(
        two.compute.endpoint_override.as_deref(),
        Some("https://nova.two/v2.1")
    );
    assert_eq!(two.image.valid_interfaces, ["public"]);
    assert_eq!(two.network.valid_interfaces, ["internal"]);
    assert_eq!(url(&two), "http://two.k");
    for (cloud, known) in [("c", "one, two"), ("single", "a")] {
        let error = region(cloud, Some("three")).unwrap_err();
        assert_eq!(error.code(), "EB-OSCLOUD-003");
        assert!(error.next_step().unwrap().contains(known), "{error}");
    }
    let user = user.set("OS_REGION_NAME", "two");
    let found = user.find(Some("c"), None).unwrap();
    assert_eq!(found.adapter.region_name.as_deref(), Some("two"));
    let found = user.find(Some("c"), Some("one")).unwrap();
    assert_eq!(found.adapter.region_name.as_deref(), Some("one"));
}

#[test]
fn the_service_is_looked_for_as_the_cloud_says() {
    let text = "
clouds:
  plain: {auth: {auth_url: 'http://k', user_id: u, password: p}}
  admin: {auth: {auth_url: 'http://k', user_id: u, password: p}, endpoint_type: adminURL}
  list: {auth: {auth_url: 'http://k', user_id: u, password: p}, interface: [internal, public]}
  own:
    auth: {auth_url: 'http://k', user_id: u, password: p}
    interface: public
    preemption-interface: internal
    preemption_service_type: spot
    preemption_region_name: r
  wrong: {auth: {auth_url: 'http://k', user_id: u, password: p}, interface: outer}
";
    let user = User::new().file("here/clouds.yaml", text);
    for (name, interfaces) in [
        ("plain", &["public"][..]),
        ("admin", &["admin"]),
        ("list", &["internal", "public"]),
        ("own", &["internal"]),
    ] {
        assert_eq!(
            user.cloud(name).adapter.valid_interfaces,
            interfaces,
            "{name}"
        );
    }
    let own = user.cloud("own").adapter;
    assert_eq!(own.service_type, "spot");
    assert_eq!(own.region_name.as_deref(), Some("r"));
    assert_eq!(user.cloud("plain").adapter.service_type, "preemption");
    assert_eq!(user.error("wrong").code(), "EB-HTTP-001");
}

#[test]
fn tls_is_as_verify_and_cacert_say() {
    let text = "
clouds:
  plain: {auth: {auth_url: 'https://k', user_id: u, password: p}, cacert: ~/ca.pem, cert: /c, key: /k}
  off: {auth: {auth_url: 'https://k', user_id: u, password: p}, verify: false, api_timeout: 1.5}
  insecure: {auth: {auth_url: 'https://k', user_id: u, password: p}, verify: true, insecure: True}
";
    let user = User::new().file("here/clouds.yaml", text);
    let auth = user.cloud("plain").auth;
    let ca = auth.tls.cafile.unwrap();
    assert_eq!(ca, Path::new(&user.path("home/ca.pem")));
    assert_eq!(auth.tls.certfile.as_deref(), Some(Path::new("/c")));
    assert_eq!(auth.tls.keyfile.as_deref(), Some(Path::new("/k")));
    assert!(!auth.tls.insecure);
    assert!(user.cloud("off").auth.tls.insecure && user.cloud("insecure").auth.tls.insecure);
    assert_eq!(user.cloud("off").auth.timeout.unwrap().as_millis(), 1_500);
}

#[test]
fn a_profile_is_below_the_cloud() {
    let public = "
public-clouds:
  vendor: {auth: {auth_url: 'http://vendor', user_domain_id: d}, interface: internal}
";
    let text = "
clouds:
  c: {profile: vendor, interface: public, auth: {username: u, password: p}}
  unknown: {profile: ovh, auth: {username: u, password: p}}
";
    let user = User::new().file("here/clouds.yaml", text);
    let user = user.file("site/clouds-public.yaml", public);
    let cloud = user.cloud("c");
    assert_eq!(url(&cloud), "http://vendor");
    assert_eq!(cloud.adapter.valid_interfaces, ["public"]);
    assert_eq!(user.error("unknown").code(), "EB-OSCLOUD-004");
}

#[test]
fn an_error_says_what_there_is_and_where_it_was_looked_for() {
    let user = User::new();
    let error = user.error("devstack");
    assert_eq!(error.code(), "EB-OSCLOUD-001");
    assert!(
        error.to_string().contains(&user.path("site/clouds.yaml")),
        "{error}"
    );
    let user = user.file("site/clouds.yaml", &clouds("devstack", "http://d"));
    let error = user.error("devstak");
    assert!(
        error.to_string().contains(&user.path("site/clouds.yaml")),
        "{error}"
    );
    assert_eq!(
        error.next_step().as_deref(),
        Some("the clouds are devstack")
    );
}

#[test]
fn a_file_that_cannot_be_understood_is_named_and_not_repeated() {
    for (text, line) in [
        ("clouds:\n  c: {auth: {password: geheim\n", true),
        ("clouds: geheim\n", true),
        ("clouds:\n  c:\n    auth: [geheim]\n", true),
        ("clouds:\n  c:\n    auth: {password: [geheim]}\n", true),
        ("clouds:\n  c: {}\n  c: {password: geheim}\n", true),
        ("geheim: &a [*a, *a]\nclouds: \u{1}\n", false),
    ] {
        let user = User::new().file("here/clouds.yaml", text);
        let error = user.error("c");
        let shown = format!("{error} {error:?} {:?}", error.next_step());
        assert!(shown.contains("here/clouds.yaml"), "{text:?}: {shown}");
        assert!(!shown.contains("geheim"), "{shown}");
        assert!(!line || shown.contains("line "), "{text:?}: {shown}");
        assert_eq!(error.code(), "EB-OSCLOUD-002");
    }
    for empty in ["", "---\n", "clouds:\n", "other: 1\n"] {
        let user = User::new().file("here/clouds.yaml", empty);
        assert_eq!(user.error("c").code(), "EB-OSCLOUD-001", "{empty:?}");
    }
}

#[test]
fn what_other_programs_need_is_left_alone() {
    let text = "
cache: {auth: true, expiration: {server: 5}}
clouds:
  c:
    auth: {auth_url: 'http://k', user_id: u, password: 'p', passcode: ~}
    networks: [{name: n, routes_externally: true}]
    identity_api_version: 3
    metrics: {statsd: {host: h}}
    volume_api_version: null
    region_name:
";
    let user = User::new().file("here/clouds.yaml", text);
    assert_eq!(url(&user.cloud("c")), "http://k");
}
