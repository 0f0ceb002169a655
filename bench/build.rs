//! Compiles the C loops around liburcu's inlined readers, if the feature asks for them.

fn main() {
    println!("cargo::rerun-if-changed=c");
    #[cfg(feature = "liburcu")]
    liburcu();
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
