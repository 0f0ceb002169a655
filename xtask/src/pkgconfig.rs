//! What pkg-config is given of a library: liburcu's names, so that a program's build finds ours
//! where it asks for those.

use crate::library::{INTERFACE, LIBRARIES, Library};

/// File names and contents, for all libraries that have such a file. `prefix`, `libdir` and
/// `includedir` are as programs will find them; they may name `${pcfiledir}`.
pub(crate) fn files(prefix: &str, libdir: &str, includedir: &str) -> Vec<(String, String)> {
    let head = format!("prefix={prefix}\nlibdir={libdir}\nincludedir={includedir}\n\n");
    let with_head = |(name, text): (String, String)| (name, format!("{head}{text}"));
    LIBRARIES.iter().filter_map(of_library).chain([of_cxx()]).map(with_head).collect()
}

fn of_library(library: &Library) -> Option<(String, String)> {
    let (described, suffix) = (library.described?, library.suffix);
    let text = format!(
        "Name: liburcu{suffix}, from quiescence\n\
         Description: Read-copy-update for user space: {described}\n\
         Version: {INTERFACE}\n\
         Libs: -L${{libdir}} -lurcu-common -lurcu{suffix}\n\
         Cflags: -I${{includedir}}\n"
    );
    Some((format!("liburcu{suffix}.pc"), text))
}

/// What a program with `<rcu>` or `<hazard_pointer>` needs.
fn of_cxx() -> (String, String) {
    let text = format!(
        "Name: quiescence\n\
         Description: Read-copy-update for user space: <rcu> and <hazard_pointer> of C++26\n\
         Version: {}\n\
         Libs: -L${{libdir}} -lurcu-memb -lquiescence\n\
         Cflags: -I${{includedir}}\n",
        env!("CARGO_PKG_VERSION")
    );
    ("quiescence.pc".to_owned(), text)
}
