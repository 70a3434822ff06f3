#![no_main]
ebbtide_libfuzzer::program!("scheduler_config");
