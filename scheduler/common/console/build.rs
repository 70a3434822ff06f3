//! Compiles this crate again when `./console/build` has written other files. The folder is always
//! there, so that a build without it changes nothing.

fn main() {
    println!("cargo::rerun-if-changed=../../../console/dist");
}
