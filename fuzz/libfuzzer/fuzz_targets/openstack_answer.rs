#![no_main]
ebbtide_libfuzzer::program!("openstack_answer");
