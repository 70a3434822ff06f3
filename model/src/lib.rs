//! Plain data of Ebbtide: resources, flavors, instances, hosts, requests, decisions, bus messages
