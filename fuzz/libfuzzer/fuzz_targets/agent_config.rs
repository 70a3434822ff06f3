#![no_main]
ebbtide_libfuzzer::program!("agent_config");
