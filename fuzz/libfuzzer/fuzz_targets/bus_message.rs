#![no_main]
ebbtide_libfuzzer::program!("bus_message");
