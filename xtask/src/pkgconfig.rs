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
    let of_libraries = LIBRARIES.iter().flat_map(|library| [liburcus(library), ours(library)]);
    of_libraries.flatten().chain([of_cxx()]).map(with_head).collect()
}

fn liburcus(library: &Library) -> Option<(String, String)> {
    let name = format!("liburcu{}", library.suffix);
    of_library(library, &name, &format!("{name}, from quiescence"), INTERFACE, "")
}

fn ours(library: &Library) -> Option<(String, String)> {
    // liburcu itself, the default flavour, is `quiescence-memb` here.
    let name = format!("{OWN}-{}", library.suffix.strip_prefix('-')?);
    of_library(library, &name, &name, VERSION, " -Wl,-rpath,${libdir}")
}

fn of_library(
    library: &Library,
    file: &str,
    name: &str,
    version: &str,
    path: &str,
) -> Option<(String, String)> {
    let (described, suffix) = (library.described.as_ref()?, &library.suffix);
    let text = format!(
        "Name: {name}\n\
         Description: Read-copy-update for user space: {described}\n\
         Version: {version}\n\
         Libs: -L${{libdir}}{path} -lurcu-common -lurcu{suffix}\n\
         Libs.private: {PRIVATE}\n\
         Cflags: -I${{includedir}}\n"
    );
    Some((format!("{file}.pc"), text))
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
