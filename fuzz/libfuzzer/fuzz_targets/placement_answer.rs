#![no_main]
ebbtide_libfuzzer::program!("placement_answer");
