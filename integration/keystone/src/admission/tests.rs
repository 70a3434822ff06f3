use super::*;
use crate::token::tests::{answer, token, with};
use serde_json::{Value, json};
use time::macros::datetime;

const BEFORE: OffsetDateTime = datetime!(2026-11-26 19:59:59 UTC);
const END: OffsetDateTime = datetime!(2026-11-26 20:00 UTC);

fn rules() -> TokenRules {
    TokenRules {
        service_token_roles: vec!["service".to_owned()],
        service_token_roles_required: false,
        service_type: Some("preemption".to_owned()),
        bind: BindMode::Permissive,
    }
}

fn read() -> ApiRequest<'static> {
    ApiRequest::new("GET", "/v1/servers")
}

fn service() -> ValidatedToken {
    token(&with("roles", json!([{"id": "s", "name": "service"}])))
}

fn restricted(access_rules: Value) -> ValidatedToken {
    let credential = json!({"id": "c", "name": "ci", "access_rules": access_rules});
    token(&with("application_credential", credential))
}

fn rule(method: &str, path: &str, service: &str) -> Value {
    json!({"id": "x", "method": method, "path": path, "service": service})
}

fn code(result: Result<(), KeystoneError>) -> Option<&'static str> {
    result.err().map(|error| error.code())
}

#[test]
fn a_token_is_good_until_the_second_of_its_end() {
    let token = token(&answer());
    assert_eq!(rules().admit(&read(), &token, None, BEFORE), Ok(()));
    let error = rules().admit(&read(), &token, None, END).unwrap_err();
    assert_eq!(
        (error.code(), error.meaning().status()),
        ("EB-KEYSTONE-005", 401)
    );
    assert!(
        error.to_string().contains("2026-11-26T20:00:00Z"),
        "{error}"
    );
}

#[test]
fn a_service_may_use_the_expired_token_of_a_user_and_others_may_not() {
    let user = token(&answer());
    assert_eq!(rules().admit(&read(), &user, Some(&service()), END), Ok(()));
    let other = token(&answer());
    let refused = rules().admit(&read(), &user, Some(&other), END);
    assert_eq!(code(refused), Some("EB-KEYSTONE-005"));
}

#[test]
fn an_unscoped_token_is_forbidden() {
    let unscoped = token(&with("project", Value::Null));
    let error = rules().admit(&read(), &unscoped, None, BEFORE).unwrap_err();
    assert_eq!(
        (error.code(), error.meaning().status()),
        ("EB-KEYSTONE-006", 403)
    );
}

#[test]
fn a_service_token_without_the_role_is_refused_if_the_role_is_required() {
    let user = token(&answer());
    let mut rules = rules();
    assert_eq!(rules.admit_service(&user), Ok(()));
    rules.service_token_roles_required = true;
    assert_eq!(code(rules.admit_service(&user)), Some("EB-KEYSTONE-008"));
    assert_eq!(rules.admit_service(&service()), Ok(()));
}

#[test]
fn access_rules_allow_what_they_name_and_nothing_else() {
    let token = restricted(json!([rule("GET", "/v1/**", "preemption")]));
    assert_eq!(rules().admit(&read(), &token, None, BEFORE), Ok(()));
    let write = ApiRequest::new("POST", "/v1/servers");
    let error = rules().admit(&write, &token, None, BEFORE).unwrap_err();
    assert_eq!(
        (error.code(), error.meaning().status()),
        ("EB-KEYSTONE-007", 401)
    );
    for useless in [json!([]), json!([rule("GET", "/v1/**", "compute")])] {
        let refused = rules().admit(&read(), &restricted(useless), None, BEFORE);
        assert_eq!(code(refused), Some("EB-KEYSTONE-007"));
    }
}

#[test]
fn access_rules_cannot_be_followed_without_service_type_or_catalog() {
    let allowing = json!([rule("GET", "/v1/**", "preemption")]);
    let mut without_type = rules();
    without_type.service_type = None;
    let refused = without_type.admit(&read(), &restricted(allowing.clone()), None, BEFORE);
    assert_eq!(code(refused), Some("EB-KEYSTONE-007"));
    let mut token = restricted(allowing);
    token.catalog = None;
    let refused = rules().admit(&read(), &token, None, BEFORE);
    assert_eq!(code(refused), Some("EB-KEYSTONE-007"));
}

#[test]
fn only_a_service_with_its_role_waives_access_rules() {
    let token = restricted(json!([]));
    assert_eq!(
        rules().admit(&read(), &token, Some(&service()), BEFORE),
        Ok(())
    );
    let itself = token.clone();
    let refused = rules().admit(&read(), &token, Some(&itself), BEFORE);
    assert_eq!(code(refused), Some("EB-KEYSTONE-007"));
}

#[test]
fn a_bound_token_is_refused_as_far_as_the_option_says() {
    let bound = |kind: &str| token(&with("bind", json!({kind: "ada"})));
    let outcome = |bind, kind| {
        let rules = TokenRules { bind, ..rules() };
        code(rules.admit(&read(), &bound(kind), None, BEFORE))
    };
    let refused = Some("EB-KEYSTONE-009");
    assert_eq!(outcome(BindMode::Permissive, "kerberos"), refused);
    assert_eq!(outcome(BindMode::Permissive, "x509"), None);
    assert_eq!(outcome(BindMode::Strict, "x509"), refused);
    assert_eq!(outcome(BindMode::Disabled, "kerberos"), None);
}

#[test]
fn what_cannot_be_a_token_is_not_sent_to_keystone() {
    assert_eq!(readable(Some(" gAAAA-_=\n")), Ok("gAAAA-_="));
    for none in [None, Some(""), Some("  ")] {
        assert_eq!(readable(none).unwrap_err().code(), "EB-KEYSTONE-002");
    }
    for bad in ["a b", "a\nb", "é", "a\0b", &"a".repeat(4_097)] {
        assert_eq!(readable(Some(bad)).unwrap_err().code(), "EB-KEYSTONE-003");
    }
}

#[test]
fn debug_output_of_a_request_shows_no_token() {
    let request = read()
        .with_token(Some("s3cret"))
        .with_service_token(Some("s3cret"));
    assert!(!format!("{request:?}").contains("s3cret"));
}
