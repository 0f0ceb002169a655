//! A package's control file.

use super::{DEBUG, DEFAULT, DEVELOPMENT, RUNTIME};

/// What the fields say that are not the same for each version.
#[derive(Debug)]
pub(super) struct Control<'c> {
    pub(super) name: &'c str,
    pub(super) version: &'c str,
    pub(super) architecture: &'c str,
    pub(super) maintainer: &'c str,
    pub(super) kilobytes: u64,
    pub(super) depends: &'c str,
}

impl Control<'_> {
    pub(super) fn text(&self) -> String {
        let Self { name, version, architecture, maintainer, kilobytes, depends } = self;
        let (section, summary, text) = described(name);
        format!(
            "Package: {name}\n\
             Source: quiescence\n\
             Version: {version}\n\
             Architecture: {architecture}\n\
             Multi-Arch: same\n\
             Maintainer: {maintainer}\n\
             Installed-Size: {kilobytes}\n\
             Depends: {depends}\n\
             Section: {section}\n\
             Priority: optional\n\
             Description: {summary}\n{text}"
        )
    }
}

/// Section, summary and description.
fn described(name: &str) -> (&'static str, &'static str, &'static str) {
    match name {
        RUNTIME => (
            "libs",
            "userspace RCU with the interface of liburcu",
            " Libraries with the names, symbols and layouts of liburcu, for programs that\n \
             were compiled against it. Grace periods, callbacks and hash tables are those\n \
             of quiescence: memory that waits is bounded, and stalls are reported.\n \
             .\n \
             They are in a directory of their own beside those of liburcu8. Programs go on\n \
             using the latter until they are told otherwise: one by one, as README.Debian\n \
             says, or all by the package libquiescence-urcu-default.\n",
        ),
        DEVELOPMENT => (
            "libdevel",
            "userspace RCU with the interface of liburcu - development files",
            " Headers with the names of those of liburcu, shared and static libraries, files\n \
             for pkg-config and CMake, examples, and the C++26 headers <rcu> and\n \
             <hazard_pointer>.\n \
             .\n \
             All is in directories of its own; liburcu-dev may be installed beside it.\n",
        ),
        DEBUG => ("debug", "debug symbols for libquiescence-urcu0", ""),
        DEFAULT => (
            "libs",
            "userspace RCU of quiescence for all programs that use liburcu",
            " Has the dynamic linker find the libraries of libquiescence-urcu0 before those\n \
             of liburcu8: every program that is linked with liburcu runs on them from when\n \
             it is started next. liburcu8 stays installed, and is used again once this\n \
             package is removed.\n",
        ),
        _ => unreachable!("there is no package {name}"),
    }
}
