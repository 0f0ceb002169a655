//! What CMake's `find_package(quiescence)` reads: imported targets, and the version. The texts are
//! in `compat/packages/cmake`.
//!
//! `quiescence::memb` and the others are the shared libraries, `quiescence::memb-static` and the
//! others the archives with all that they need, and `quiescence::cxx` is what `<rcu>` and
//! `<hazard_pointer>` need.

use std::path::Path;

use crate::library::LIBRARIES;

const CONFIG: &str = include_str!("../../compat/packages/cmake/quiescence-config.cmake");
const VERSION: &str = include_str!("../../compat/packages/cmake/quiescence-config-version.cmake");

/// The files in the tree as it is built, which may be moved: where they are, all else is.
pub(crate) fn files() -> [(&'static str, String); 2] {
    let here = "${CMAKE_CURRENT_LIST_DIR}";
    files_for(&format!("{here}/../.."), &format!("{here}/../../../include"))
}

/// Below the libraries' directory, where CMake looks: a directory of the package's name, be it
/// theirs or one of its own.
pub(crate) fn place(libdir: &Path) -> &'static str {
    if libdir.file_name().is_some_and(|name| name == "quiescence") {
        "cmake"
    } else {
        "cmake/quiescence"
    }
}

/// File names and contents; the places are as programs will find them.
pub(crate) fn files_for(libdir: &str, includedir: &str) -> [(&'static str, String); 2] {
    // What a program asks for: `liburcu` itself is memb's other name, `common` no pkg-config names.
    let described = LIBRARIES.iter().filter(|library| library.described.is_some());
    let components = described.filter_map(|library| library.suffix.strip_prefix('-'));
    let components: Vec<_> = components.collect();
    let config = CONFIG
        .replace("@COMPONENTS@", &components.join(" "))
        .replace("@LIBDIR@", libdir)
        .replace("@INCLUDEDIR@", includedir);
    let version = env!("CARGO_PKG_VERSION");
    let minor = version.rsplit_once('.').map_or(version, |(minor, _)| minor);
    let version = VERSION
        .replace("@VERSION@", version)
        .replace("@MINOR@", &minor.replace('.', "\\\\."))
        .replace("@BYTES@", &size_of::<usize>().to_string());
    [("quiescence-config.cmake", config), ("quiescence-config-version.cmake", version)]
}
