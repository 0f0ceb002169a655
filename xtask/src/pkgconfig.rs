//! What pkg-config is given of a library, under two names.
//!
//! `liburcu-memb.pc` has liburcu's name, so that a program's build finds ours where it asks for
//! that. It is found only where `PKG_CONFIG_PATH` says, for Debian's has the same name.
//! `quiescence-memb.pc` is ours alone: what is linked by it has the directory of the libraries in
//! it (`-rpath`), and runs on them and no others.

use crate::library::{INTERFACE, LIBRARIES, Library};

/// Behind the flavours' archives in a static link: the core, and what it needs of the system.
const PRIVATE: &str = "-lquiescence -lpthread -ldl -lm";
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What begins the names that are ours alone.
pub(crate) const OWN: &str = "quiescence";

/// File names and contents, for all libraries that have such a file. `prefix`, `libdir` and
/// `includedir` are as programs will find them; they may name `${pcfiledir}`.
pub(crate) fn files(prefix: &str, libdir: &str, includedir: &str) -> Vec<(String, String)> {
    let head = format!("prefix={prefix}\nlibdir={libdir}\nincludedir={includedir}\n\n");
    let with_head = |(name, text): (String, String)| (name, format!("{head}{text}"));
    LIBRARIES.iter().flat_map(of_library).chain([of_cxx()]).map(with_head).collect()
}

fn of_library(library: &Library) -> Vec<(String, String)> {
    let Library { suffix, described: Some(described), .. } = library else { return Vec::new() };
    let text = |name: &str, version: &str, path: &str| {
        format!(
            "Name: {name}\n\
             Description: Read-copy-update for user space: {described}\n\
             Version: {version}\n\
             Libs: -L${{libdir}}{path} -lurcu-common -lurcu{suffix}\n\
             Libs.private: {PRIVATE}\n\
             Cflags: -I${{includedir}}\n"
        )
    };
    let theirs = format!("liburcu{suffix}");
    let described = text(&format!("{theirs}, from quiescence"), INTERFACE, "");
    let mut files = vec![(format!("{theirs}.pc"), described)];
    // liburcu itself, the default flavour, is `quiescence-memb` here.
    if let Some(own) = suffix.strip_prefix('-') {
        let ours = format!("{OWN}-{own}");
        files.push((format!("{ours}.pc"), text(&ours, VERSION, " -Wl,-rpath,${libdir}")));
    }
    files
}

/// What a program with `<rcu>` or `<hazard_pointer>` needs: the flavour that they use, and the
/// core, whose functions are inlined in it.
fn of_cxx() -> (String, String) {
    let text = format!(
        "Name: {OWN}\n\
         Description: Read-copy-update for user space: <rcu> and <hazard_pointer> of C++26\n\
         Version: {VERSION}\n\
         Requires: {OWN}-memb = {VERSION}\n\
         Libs: -L${{libdir}} -lquiescence\n\
         Cflags: -I${{includedir}}\n"
    );
    (format!("{OWN}.pc"), text)
}
