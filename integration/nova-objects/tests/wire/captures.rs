//! Conversations of a real Nova 26, captured between conductor, computes, API and scheduler.

use super::kit::{at, json, lines, normal, ordered, remove_everywhere, set_everywhere};
use ebbtide_nova_objects::notification::{
    END, START, legacy_payload, legacy_payload_after_versioned, versioned_payload,
};
use ebbtide_nova_objects::{
    DeleteInstanceInfo, ExceptionPayload, RpcContext, SelectDestinations, SyncInstanceInfo,
    UpdateInstanceInfo, Value, read_delete_aggregate, read_reply, read_update_aggregates, reply,
};
use serde_json::Value as Json;
use std::collections::BTreeMap;

struct Message {
    scenario: String,
    what: String,
    body: Value,
}

impl Message {
    fn text(&self, name: &str) -> Option<String> {
        match &self.body {
            Value::Dict(body) => match body.get(name) {
                Some(Value::Str(text)) => Some(text.clone()),
                _ => None,
            },
            _ => None,
        }
    }
}

fn messages() -> Vec<Message> {
    lines("captures.jsonl.gz")
        .iter()
        .map(|line| {
            let line = ordered(line);
            Message {
                scenario: at(&line, "scenario").text(),
                what: at(&line, "what").text(),
                body: at(&line, "body").clone(),
            }
        })
        .collect()
}

/// Calls of a method, with the scenario that they are of.
fn calls(method: &str) -> Vec<Message> {
    let of = |message: &Message| message.text("method").as_deref() == Some(method);
    messages().into_iter().filter(of).collect()
}

/// The request and what followed it up to the next one.
fn conversations() -> Vec<(Message, Vec<Message>)> {
    let mut all: Vec<(Message, Vec<Message>)> = Vec::new();
    for message in messages() {
        // Those that try bad arguments have no request in them.
        let real = message.text("method").as_deref() == Some("select_destinations")
            && matches!(at(&message.body, "args"), Value::Dict(args) if args.contains_key("spec_obj"));
        if real {
            all.push((message, Vec::new()));
        } else if let Some((request, followers)) = all.last_mut()
            && request.scenario == message.scenario
        {
            followers.push(message);
        }
    }
    all
}

fn read(message: &Message) -> SelectDestinations {
    SelectDestinations::read(at(&message.body, "args"))
        .unwrap_or_else(|error| panic!("{}: {error}", message.scenario))
}

#[test]
fn every_captured_request_is_read() {
    let conversations = conversations();
    assert_eq!(conversations.len(), 21);
    let mut seen = BTreeMap::new();
    for (message, _) in &conversations {
        let call = read(message);
        let spec = &call.request.spec;
        let uuids = call.instance_uuids.clone().unwrap();
        assert_eq!(call.count(), i64::try_from(uuids.len()).unwrap());
        assert_eq!(
            (spec.flavor.memory_mb % 1000, spec.image.is_some()),
            (0, true)
        );
        assert!(call.return_objects);
        assert_eq!(spec.network_metadata, None);
        assert_eq!(spec.pci_requests, Some(Vec::new()));
        seen.insert(message.scenario.clone(), call);
    }
    let of = |scenario: &str| &seen[scenario];
    assert_eq!(of("02-boot-three-min3-max3").count(), 3);
    assert_eq!(
        of("05-boot-az-nova-compute2").request.spec.force_hosts,
        Some(vec!["compute2".to_owned()])
    );
    let destination = of("06-boot-host-microversion-2.74")
        .request
        .spec
        .requested_destination
        .clone()
        .unwrap();
    // The host is named, the node is null, and neither is unset.
    assert_eq!(
        (destination.host, destination.node),
        (Some(Some("compute3".to_owned())), Some(None))
    );
    let extra_specs = &of("08-boot-preemptible-extra-spec")
        .request
        .spec
        .flavor
        .extra_specs;
    assert_eq!(
        extra_specs
            .as_ref()
            .unwrap()
            .get("ebbtide:preemptible")
            .map(String::as_str),
        Some("true")
    );
    let resize = of("11-resize-confirm");
    assert_eq!(
        resize.request.cell.as_ref().unwrap().name.as_deref(),
        Some("cell1")
    );
    assert!(!of("13-live-migrate").return_alternates);
    assert!(of("19-rebuild-new-image").is_rebuild() && !resize.is_rebuild());
    let group = of("20-boot-affinity-group")
        .request
        .spec
        .instance_group
        .clone()
        .unwrap();
    assert_eq!(
        (group.policy.as_str(), group.members.len()),
        ("affinity", 2)
    );
}

#[test]
fn the_url_of_a_cells_database_and_the_token_never_show() {
    let mut with_url = 0;
    for (message, _) in conversations() {
        let call = read(&message);
        let context = RpcContext::read(&message.body).unwrap();
        let shown = format!("{call:?} {context:?}");
        for secret in ["mysql", "rabbit:", "gAAAA", "stack:stack"] {
            assert!(
                !shown.contains(secret),
                "{}: {secret}: {shown}",
                message.scenario
            );
        }
        if let Some(cell) = &call.request.cell {
            assert!(
                cell.database_connection
                    .as_ref()
                    .unwrap()
                    .starts_with("mysql+pymysql://")
            );
            with_url += 1;
        }
    }
    assert!(with_url >= 6, "{with_url}");
}

#[test]
fn who_asks_is_read_from_every_message() {
    for (message, _) in conversations() {
        let context = RpcContext::read(&message.body).unwrap();
        assert!(context.request_id.unwrap().starts_with("req-"));
        assert!(context.is_admin && context.timestamp.is_some() && context.auth_token.is_some());
        assert_eq!(context.user_name.as_deref(), Some("admin"));
    }
}

#[test]
fn every_captured_reply_is_rebuilt_from_its_parts() {
    let mut rebuilt = 0;
    for (_, followers) in conversations() {
        for message in followers {
            let Value::Dict(body) = &message.body else {
                continue;
            };
            let Some(result @ Value::List(_)) = body.get("result") else {
                continue;
            };
            let selections = read_reply(result).unwrap();
            assert_eq!(
                normal(&reply(&selections, true)),
                normal(&json(result)),
                "{}",
                message.scenario
            );
            rebuilt += 1;
        }
    }
    assert_eq!(rebuilt, 19);
}

#[test]
fn every_captured_no_valid_host_is_rebuilt_from_its_reason() {
    let mut rebuilt = 0;
    for message in messages() {
        let Some(failure) = message.text("failure") else {
            continue;
        };
        let mut failure: Json = serde_json::from_str(&failure).unwrap();
        if failure["class"] != "NoValidHost" {
            continue;
        }
        let reason = failure["kwargs"]["reason"].as_str().unwrap().to_owned();
        let mut ours = ExceptionPayload::no_valid_host(&reason).to_json();
        // Where in Python it was raised has no meaning here; the last line has.
        let last = failure["tb"].as_array().unwrap().last().unwrap().clone();
        assert_eq!(ours["tb"][0], last);
        ours["tb"] = Json::Null;
        failure["tb"] = Json::Null;
        assert_eq!(ours, failure);
        rebuilt += 1;
    }
    assert_eq!(rebuilt, 2);
}

#[test]
fn every_captured_notification_is_rebuilt_from_the_request() {
    let mut rebuilt = BTreeMap::new();
    for (message, followers) in conversations() {
        let mut call = read(&message);
        let context = RpcContext::read(&message.body).unwrap();
        let uuids = call.instance_uuids.clone().unwrap();
        for follower in followers {
            let Some(event) = follower.text("event_type") else {
                continue;
            };
            let payload = json(at(&follower.body, "payload"));
            let end = event == END;
            assert!(end || event == START);
            // What the scheduler did in between: one instance after the other, the hosts of the
            // group, the node of the destination.
            if end {
                call.request
                    .spec
                    .instance_uuid
                    .clone_from(uuids.last().unwrap());
            }
            let data = &payload["nova_object.data"];
            if let Some(group) = &mut call.request.spec.instance_group {
                let hosts = &data["instance_group"]["nova_object.data"]["hosts"];
                if let Some(hosts) = hosts.as_array() {
                    group.hosts = hosts
                        .iter()
                        .map(|host| host.as_str().unwrap().to_owned())
                        .collect();
                }
            }
            let theirs = &data["requested_destination"]["nova_object.data"];
            if let Some(node) = theirs["node"].as_str() {
                let destination = call.request.spec.requested_destination.as_mut().unwrap();
                destination.node = Some(Some(node.to_owned()));
            }
            // A zone that is an aggregate becomes one before the first notification goes out.
            if let Some(aggregates) = theirs["aggregates"].as_array() {
                let names = aggregates
                    .iter()
                    .map(|uuid| uuid.as_str().unwrap().to_owned());
                let destination = call
                    .request
                    .spec
                    .requested_destination
                    .get_or_insert_default();
                destination.aggregates = Some(Some(names.collect()));
            }
            let versioned = payload.get("nova_object.name").is_some();
            let ours = if versioned {
                versioned_payload(&call.request)
            } else if end {
                legacy_payload_after_versioned(&call.request, &context)
            } else {
                legacy_payload(&call.request, &context)
            };
            let mut theirs = payload.clone();
            set_everywhere(&mut theirs, "auth_token", &Json::Null);
            // Left behind on Nova's context wherever a zone or a host was looked up in its
            // database.
            remove_everywhere(&mut theirs, "_enginefacade_context");
            let ours = normal(&ours);
            assert_eq!(
                ours,
                normal(&theirs),
                "{} {event} {versioned}",
                follower.scenario
            );
            *rebuilt.entry((end, versioned)).or_insert(0) += 1;
        }
    }
    let expected = [
        (false, false, 19),
        (false, true, 19),
        (true, false, 18),
        (true, true, 18),
    ];
    for (end, versioned, count) in expected {
        assert_eq!(rebuilt.get(&(end, versioned)), Some(&count), "{rebuilt:?}");
    }
}

#[test]
fn every_captured_cast_is_read() {
    let (mut instances, mut elsewhere) = (0, 0);
    for message in calls("update_instance_info") {
        let info = UpdateInstanceInfo::read(at(&message.body, "args")).unwrap();
        for instance in &info.instances {
            // While a server moves, the host that tells of it need not be the one that it is on.
            elsewhere += usize::from(instance.host.as_ref() != Some(&info.host));
            assert_eq!(instance.uuid.len(), 36);
            assert!(instance.flavor.as_ref().unwrap().vcpus >= 1);
            assert!(instance.created_at.is_some());
            assert_eq!(
                instance.facts().image_properties.get("disk_format"),
                Some(&Json::from("raw"))
            );
            instances += 1;
        }
    }
    assert!(instances >= 15, "{instances}");
    assert!((1..4).contains(&elsewhere), "{elsewhere}");
    let synced = calls("sync_instance_info");
    assert!(synced.len() >= 6);
    for message in synced {
        let sync = SyncInstanceInfo::read(at(&message.body, "args")).unwrap();
        assert!(sync.host.starts_with("compute"));
        assert!(sync.uuids.iter().all(|uuid| uuid.len() == 36));
    }
    for message in calls("delete_instance_info") {
        let gone = DeleteInstanceInfo::read(at(&message.body, "args")).unwrap();
        assert_eq!(
            (gone.host.starts_with("compute"), gone.uuid.len()),
            (true, 36)
        );
    }
    let mut zones = Vec::new();
    for message in calls("update_aggregates") {
        for aggregate in read_update_aggregates(at(&message.body, "args")).unwrap() {
            assert_eq!(aggregate.uuid.len(), 36, "{}", message.what);
            zones.extend(aggregate.metadata.get("availability_zone").cloned());
        }
    }
    assert!(zones.contains(&"az1".to_owned()), "{zones:?}");
    let deleted = calls("delete_aggregate");
    assert!(!deleted.is_empty());
    for message in deleted {
        read_delete_aggregate(at(&message.body, "args")).unwrap();
    }
}
