#![no_main]
ebbtide_libfuzzer::program!("nova_case");
