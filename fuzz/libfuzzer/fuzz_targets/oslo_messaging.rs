#![no_main]
ebbtide_libfuzzer::program!("oslo_messaging");
