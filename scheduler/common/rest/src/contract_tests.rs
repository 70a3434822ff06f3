//! The table of routes against the contracts.

use super::*;
use crate::openapi;
use crate::table::{Answer, LEFT_OUT};
use std::collections::BTreeSet;

fn calls() -> BTreeSet<String> {
    let services = pool().unwrap();
    let services = services.services().filter(|s| s.package_name() == PACKAGE);
    services
        .flat_map(|service| {
            let name = service.name().to_owned();
            service
                .methods()
                .map(|method| format!("{name}/{}", method.name()))
                .collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn every_call_has_a_route_or_a_reason_to_have_none() {
    let routed: Vec<&str> = ROUTES.iter().map(|route| route.rpc).collect();
    let left_out: Vec<&str> = LEFT_OUT.iter().map(|(rpc, _)| *rpc).collect();
    let mut named: Vec<&str> = [routed, left_out].concat();
    named.sort_unstable();
    let once: BTreeSet<String> = named.iter().map(|rpc| (*rpc).to_owned()).collect();
    assert_eq!(
        once.len(),
        named.len(),
        "a call stands there twice: {named:?}"
    );
    assert_eq!(
        once,
        calls(),
        "add the call to ROUTES, or to LEFT_OUT with a reason"
    );
    assert!(LEFT_OUT.iter().all(|(_, why)| !why.is_empty()));
}

#[test]
fn every_route_fits_its_call() {
    let contract = Contract::load().unwrap();
    for bound in &contract.routes {
        let (route, method) = (bound.route, &bound.method);
        let has_answer = method.output().fields().next().is_some();
        assert_eq!(
            route.answer == Answer::Json(204),
            !has_answer,
            "{}",
            route.rpc
        );
        let streams = matches!(route.answer, Answer::Events(_) | Answer::Document(_));
        assert_eq!(streams, method.is_server_streaming(), "{}", route.rpc);
        assert!(!method.is_client_streaming(), "{}", route.rpc);
        let field = |message: &MessageDescriptor, name| {
            message
                .get_field_by_name(name)
                .unwrap_or_else(|| panic!("{}: {name}", route.rpc))
        };
        let paged = method.input().get_field_by_name("marker").is_some();
        assert_eq!(route.page.is_some(), paged, "{}", route.rpc);
        if let Some(page) = route.page {
            let Kind::Message(row) = field(&method.output(), page.rows).kind() else {
                panic!("{}: {} is no list of messages", route.rpc, page.rows);
            };
            field(&row, page.marker);
            field(&method.input(), "limit");
        }
        if let Answer::Events(name) | Answer::Document(name) = route.answer {
            field(&method.output(), name);
        }
    }
}

#[test]
fn a_path_is_found_with_its_values() {
    let contract = Contract::load().unwrap();
    let found = contract.find(&Method::GET, "/v1/servers/a%20b").unwrap();
    assert_eq!(found.route.route.rpc, "Servers/GetServer");
    assert_eq!(found.values, ["a b"]);
    let found = contract.find(&Method::PUT, "/v1/aggregates/az1").unwrap();
    assert_eq!(found.route.parameters[0].fields.len(), 2);
    for path in [
        "/v1/server",
        "/v1/servers/",
        "/v1/servers/a/b",
        "/v2/servers",
        "/v1//",
    ] {
        let error = contract.find(&Method::GET, path).unwrap_err();
        assert_eq!(error.code(), "EB-REST-001", "{path}");
    }
    let error = contract.find(&Method::PATCH, "/v1/servers/a").unwrap_err();
    let RestError::Method { allow, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(allow, "GET, DELETE");
    let error = contract.find(&Method::GET, "/v1/servers/%ff").unwrap_err();
    assert_eq!(error.code(), "EB-REST-004");
}

#[test]
fn the_openapi_document_names_every_operation_once_and_all_references_lead_somewhere() {
    let document = openapi::document().unwrap();
    let mut names = BTreeSet::new();
    let mut operations = 0;
    for path in document["paths"].as_object().unwrap().values() {
        for operation in path.as_object().unwrap().values() {
            operations += 1;
            names.insert(operation["operationId"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(
        (names.len(), operations),
        (ROUTES.len() + 3, ROUTES.len() + 3)
    );
    let text = document.to_string();
    let references = text.split("\"$ref\":\"#/components/schemas/").skip(1);
    for reference in references {
        let name = reference.split('"').next().unwrap();
        let schema = &document["components"]["schemas"][name];
        assert_eq!(schema["type"], "object", "{name}");
    }
    let described = &document["paths"]["/v1/what-if"]["post"]["description"];
    assert_eq!(described, "Decides and changes nothing.");
}
