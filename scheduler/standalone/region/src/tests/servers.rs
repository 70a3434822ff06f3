//! Repeated and invalid tenant requests; adopted servers.

use super::checks::everything_is_over;
use super::world::{SimulatedRegion, normal, spot};
use crate::{CreateServers, CreatedServers, DeleteServer, RegionError};
use ebbtide_model::{PlacementRequest, Seconds, ServerStatus};

fn create(request: &PlacementRequest) -> CreateServers {
    CreateServers {
        quota: None,
        max_price: None,
        name: "vm".to_owned(),
        request: request.clone(),
        external: false,
    }
}

#[test]
fn a_request_that_is_repeated_makes_nothing_new() {
    let mut world = SimulatedRegion::new(&[("host-a", 8)]);
    let request = world.request(&normal(2), 2);
    world.command(create(&request)).unwrap();
    world.flush();
    let before = world.database.clone();
    let CreatedServers::Repeated(servers) = world.command(create(&request)).unwrap() else {
        panic!()
    };
    assert!(
        servers.iter().all(|s| s.status == ServerStatus::Active),
        "as they are now"
    );
    assert_eq!(world.database, before);
    // One of them is gone; the other is still the request's.
    world.delete(request.server_ids[0]);
    world.flush();
    let CreatedServers::Repeated(servers) = world.command(create(&request)).unwrap() else {
        panic!()
    };
    assert_eq!(servers.len(), 1);
}

#[test]
fn a_request_whose_servers_have_gone_meanwhile_does_not_make_them_anew() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let request = world.request(&normal(2), 1);
    world.command(create(&request)).unwrap();
    world.flush();
    world.delete(request.server_ids[0]);
    world.flush();
    let error = world.command(create(&request)).unwrap_err();
    assert_eq!(error.code(), "EB-REGION-003");
    assert!(error.to_string().contains("gone already"), "{error}");
    assert_eq!(world.status(request.server_ids[0]), ServerStatus::Deleted);
    let adopt = world.adopt("host-a", &normal(2), request.server_ids[0]);
    let error = world.command(adopt).unwrap_err();
    assert_eq!(error.code(), "EB-REGION-003");
}

#[test]
fn the_same_ids_with_another_request_are_refused() {
    let mut world = SimulatedRegion::new(&[("host-a", 8)]);
    let request = world.request(&normal(2), 2);
    world.command(create(&request)).unwrap();
    let mut other = request.clone();
    other.flavor = normal(1);
    let mut fewer = request.clone();
    fewer.server_ids.pop();
    fewer.project_id = "others".to_owned();
    let mut more = request.clone();
    more.server_ids.push(world.new_id());
    for wrong in [other, fewer, more] {
        let error = world.command(create(&wrong)).unwrap_err();
        assert_eq!(error.code(), "EB-REGION-003", "{error}");
    }
    let mut external = CreateServers {
        quota: None,
        max_price: None,
        name: "vm".to_owned(),
        request,
        external: true,
    };
    let error = world.command(external.clone()).unwrap_err();
    assert_eq!(error.code(), "EB-REGION-003");
    external.request.server_ids.clear();
    let error = world.command(external).unwrap_err();
    assert_eq!(error.code(), "EB-MODEL-003", "{error}");
}

#[test]
fn a_what_if_decides_and_changes_nothing() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    world.create(&spot(4));
    let before = world.database.clone();
    let request = world.request(&normal(4), 1);
    let decision = world.what_if(&request).unwrap();
    assert_eq!(decision.victims().count(), 1);
    assert_eq!(world.database, before);
}

#[test]
fn servers_are_found_by_id_or_by_a_name_that_only_one_has() {
    let mut world = SimulatedRegion::new(&[("host-a", 8)]);
    let first = world.create(&normal(1));
    assert_eq!(world.region.find_server("vm").unwrap().id, first);
    let second = world.create(&normal(1));
    assert!(matches!(
        world.region.find_server("vm"),
        Err(RegionError::Ambiguous { count: 2, .. })
    ));
    assert_eq!(
        world.region.find_server(&second.to_string()).unwrap().id,
        second
    );
    assert_eq!(
        world
            .region
            .find_server("unknown-server")
            .unwrap_err()
            .code(),
        "EB-REGION-002"
    );
}

#[test]
fn a_server_that_is_named_like_the_id_of_another_is_not_deleted_in_its_place() {
    let mut world = SimulatedRegion::new(&[("host-a", 8)]);
    let stranger = world.new_id();
    let request = world.request(&normal(1), 1);
    let id = request.server_ids[0];
    let named = CreateServers {
        quota: None,
        max_price: None,
        name: stranger.to_string(),
        request,
        external: false,
    };
    world.command(named).unwrap();
    let error = world.command(DeleteServer(stranger)).unwrap_err();
    assert_eq!(error.code(), "EB-REGION-002");
    world.flush();
    assert_eq!(world.status(id), ServerStatus::Active);
}

#[test]
fn a_server_can_be_deleted_in_every_state_and_twice() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    world.host("host-a").hanging.insert("start the server");
    let building = world.create(&normal(1));
    world.delete(building);
    world.delete(building);
    world.flush();
    assert_eq!(world.status(building), ServerStatus::Deleting);
    world.host("host-a").hanging.clear();
    world.flush();
    assert_eq!(world.status(building), ServerStatus::Deleted);
    let refused = world.create(&normal(9));
    world.delete(refused);
    assert_eq!(world.status(refused), ServerStatus::Deleted);
    let active = world.create(&normal(4));
    world.delete(active);
    world.delete(active);
    world.flush();
    assert_eq!(world.status(active), ServerStatus::Deleted);
    let cattle = world.create(&spot(4));
    let waiting = world.create(&normal(4));
    assert_eq!(world.status(waiting), ServerStatus::Waiting);
    world.delete(cattle);
    world.delete(waiting);
    world.delete(cattle);
    world.flush();
    assert_eq!(world.status(cattle), ServerStatus::Deleted);
    assert_eq!(world.status(waiting), ServerStatus::Deleted);
    everything_is_over(&world);
}

#[test]
fn the_room_of_a_normal_server_that_is_being_deleted_is_not_free_yet() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let old = world.create(&normal(4));
    world.host("host-a").hanging.insert("delete the server");
    world.delete(old);
    world.flush();
    let early = world.create(&normal(4));
    assert_eq!(world.status(early), ServerStatus::Error);
    world.host("host-a").hanging.clear();
    world.flush();
    let later = world.create(&normal(4));
    assert!(world.runs(later));
}

#[test]
fn an_adopted_server_counts_with_its_age_and_is_adopted_once() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let id = world.new_id();
    let mut adopt = world.adopt("host-a", &spot(2), id);
    adopt.launched_at = Some(world.now.minus(Seconds(1800)));
    let server = world.command(adopt.clone()).unwrap();
    assert_eq!(server.status, ServerStatus::Building);
    world.flush();
    assert_eq!(world.status(id), ServerStatus::Active);
    assert_eq!(world.server(id).launched_at, adopt.launched_at);
    let before = world.database.clone();
    world.command(adopt.clone()).unwrap();
    assert_eq!(world.database, before);
    let refuse = |world: &mut SimulatedRegion, change: &dyn Fn(&mut crate::AdoptServer)| {
        let mut wrong = adopt.clone();
        change(&mut wrong);
        let error = world.command(wrong).unwrap_err();
        error.code()
    };
    assert_eq!(
        refuse(&mut world, &|a| a.flavor = normal(1)),
        "EB-REGION-003"
    );
    let new = world.new_id();
    assert_eq!(
        refuse(&mut world, &|a| (a.id, a.host) = (new, "host-z".to_owned())),
        "EB-REGION-002"
    );
    assert_eq!(
        refuse(&mut world, &|a| (a.id, a.flavor) = (new, spot(3))),
        "EB-REGION-005"
    );
    let later = world.now.plus(Seconds(9));
    assert_eq!(
        refuse(&mut world, &|a| (a.id, a.launched_at) = (new, Some(later))),
        "EB-REGION-005"
    );
    assert_eq!(
        refuse(&mut world, &|a| (a.id, a.name) = (new, String::new())),
        "EB-MODEL-004"
    );
}

#[test]
fn a_server_that_runs_already_is_adopted_without_being_started() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let id = world.new_id();
    let mut adopt = world.adopt("host-a", &spot(2), id);
    adopt.start_now = false;
    world.command(adopt).unwrap();
    assert_eq!(world.status(id), ServerStatus::Active);
    assert!(world.database.outbox.is_empty());
    world.run(25);
    assert_eq!(
        world.status(id),
        ServerStatus::Error,
        "the host does not have it"
    );
}

#[test]
fn a_refused_request_leaves_one_server_however_often_it_is_repeated() {
    let mut world = SimulatedRegion::new(&[("host-a", 2)]);
    let request = world.request(&normal(1), 500);
    let CreatedServers::New { servers, .. } = world.command(create(&request)).unwrap() else {
        panic!()
    };
    assert_eq!(servers.len(), 1);
    let message = &servers[0].fault.as_ref().unwrap().message;
    assert!(message.contains("none of the 500 servers"), "{message}");
    let before = world.database.clone();
    let CreatedServers::Repeated(again) = world.command(create(&request)).unwrap() else {
        panic!()
    };
    assert_eq!((again, &world.database), (servers, &before));
    // The ids of a placed server do not allow a request for further servers with them.
    let placed = world.request(&normal(1), 1);
    world.command(create(&placed)).unwrap();
    let mut more = placed;
    more.server_ids.push(world.new_id());
    let error = world.command(create(&more)).unwrap_err();
    assert_eq!(error.code(), "EB-REGION-003");
}

#[test]
fn a_quota_counts_servers_in_error_and_not_those_that_are_gone_also_after_a_restart() {
    let mut world = SimulatedRegion::new(&[("host-a", 2)]);
    let ask = |world: &mut SimulatedRegion, count: usize| {
        let request = world.request(&normal(1), count);
        let mut command = create(&request);
        command.quota = Some(3);
        world.command(command).map(|_| request.server_ids[0])
    };
    let first = ask(&mut world, 2).unwrap();
    ask(&mut world, 1).unwrap();
    let error = ask(&mut world, 1).unwrap_err();
    assert_eq!(error.code(), "EB-REGION-006");
    assert!(error.to_string().contains("has 3"), "{error}");
    world.restart_scheduler();
    assert_eq!(ask(&mut world, 1).unwrap_err().code(), "EB-REGION-006");
    world.flush();
    world.delete(first);
    world.flush();
    ask(&mut world, 1).unwrap();
    assert_eq!(ask(&mut world, 1).unwrap_err().code(), "EB-REGION-006");
}
