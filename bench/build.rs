//! Writes the programs of parking_lot's locks, and compiles the C loops around liburcu's inlined
//! readers, if the feature asks for them.

fn main() {
    println!("cargo::rerun-if-changed=c");
    println!("cargo::rerun-if-changed=programs.md");
    let programs = std::fs::read_to_string("programs.md").expect("it is in this package");
    let with_twins = programs.split_inclusive("\n```\n").flat_map(|part| [part.into(), twin(part)]);
    let path = std::env::var("OUT_DIR").expect("Cargo sets it") + "/programs.md";
    std::fs::write(path, with_twins.collect::<String>()).expect("Cargo has made the folder");
    #[cfg(feature = "liburcu")]
    liburcu();
}

/// The same program with a lock of parking_lot's, which has no poisoning, if it has one of std's.
fn twin(part: &str) -> String {
    let lock = part.split_once("## std-").filter(|(_, lock)| !lock.starts_with("mpsc"));
    let Some((_, program)) = lock else { return String::new() };
    let program = program.replace("std::sync::", "parking_lot::").replace("().unwrap()", "()");
    format!("\n## parking_lot-{program}").replace("```rust", "```rust\n// cargo add parking_lot")
}

#[cfg(feature = "liburcu")]
fn liburcu() {
    let mut build = cc::Build::new();
    build
        .files(["c/memb.c", "c/qsbr.c", "c/bp.c", "c/update.c"])
        // As a C program is built that cares: optimised, whatever the profile of the Rust side.
        .opt_level(2)
        // The thread-local words of liburcu are reached without a call, as in an executable.
        .flag("-ftls-model=initial-exec")
        .warnings(true);
    if let Err(error) = build.try_compile("rivals_liburcu") {
        eprintln!("{error}");
        panic!(
            "the feature liburcu needs a C compiler and liburcu's headers (apt install liburcu-dev)"
        );
    }
    for library in ["urcu-memb", "urcu-qsbr", "urcu-bp", "urcu-common"] {
        println!("cargo::rustc-link-lib={library}");
    }
}
