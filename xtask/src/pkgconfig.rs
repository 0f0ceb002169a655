//! What pkg-config is told of a library: liburcu's names, so that a program's build finds ours where it asks for those.

use crate::library::{INTERFACE, LIBRARIES, Library};

/// File names and contents, for all libraries that have such a file. `prefix`, `libdir` and `includedir` are as
/// programs will find them; they may name `${pcfiledir}`.
pub(crate) fn files(prefix: &str, libdir: &str, includedir: &str) -> Vec<(String, String)> {
    LIBRARIES.iter().filter_map(|library| file(library, prefix, libdir, includedir)).collect()
}

fn file(
    library: &Library,
    prefix: &str,
    libdir: &str,
    includedir: &str,
) -> Option<(String, String)> {
    let described = library.described?;
    let suffix = library.suffix;
    let text = format!(
        "prefix={prefix}\n\
         libdir={libdir}\n\
         includedir={includedir}\n\
         \n\
         Name: liburcu{suffix}, from quiescence\n\
         Description: Read-copy-update for user space: {described}\n\
         Version: {INTERFACE}\n\
         Libs: -L${{libdir}} -lurcu-common -lurcu{suffix}\n\
         Cflags: -I${{includedir}}\n"
    );
    Some((format!("liburcu{suffix}.pc"), text))
}
