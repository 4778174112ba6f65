#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| mingle_fuzz::multicast::check(input));
