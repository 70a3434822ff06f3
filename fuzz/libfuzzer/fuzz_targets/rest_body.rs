#![no_main]
ebbtide_libfuzzer::program!("rest_body");
