//! Which libraries there are: names, what each is made of, and which share what.

/// One of the thin libraries: `liburcu-NAME.so.8`.
#[derive(Debug)]
pub(crate) struct Library {
    /// What comes after `liburcu`, with its dash.
    pub(crate) suffix: &'static str,
    /// Files of `compat/shim`.
    pub(crate) sources: &'static [&'static str],
    /// For the sources: which flavour this is.
    pub(crate) define: Option<&'static str>,
    /// The version script in `compat/link`: which symbols go out.
    pub(crate) script: &'static str,
    /// The library whose symbols come before this one's own, if it is there.
    pub(crate) auxiliary: Option<&'static str>,
    /// What pkg-config says of it, if it has a file there.
    pub(crate) described: Option<&'static str>,
}

/// What soname the thin libraries have, and which liburcu's interface they follow.
pub(crate) const SOVERSION: &str = "8";
/// The version of liburcu's interface: the latest of those that are served, by which programs ask
/// pkg-config for what they need.
pub(crate) const INTERFACE: &str = "0.15.2";
/// The core.
pub(crate) const CORE: &str = "libquiescence.so.0";
/// The core, as the linker looks for it: programs with `<rcu>` name it, since its functions are
/// inlined in them.
pub(crate) const CORE_LINK: &str = "libquiescence.so";

/// The core as an archive.
pub(crate) const CORE_ARCHIVE: &str = "libquiescence.a";

/// A library of a flavour, all of which are made of the same files.
const fn flavor(
    suffix: &'static str,
    define: &'static str,
    script: &'static str,
    described: &'static str,
) -> Library {
    let sources = &["flavor.c", "copies.c", "pointer.c", "futex.c"];
    let (define, described) = (Some(define), Some(described));
    Library { suffix, sources, define, script, auxiliary: None, described }
}

/// In the order of linking: an auxiliary library comes before those that name it.
pub(crate) const LIBRARIES: &[Library] = &[
    Library {
        suffix: "-common",
        sources: &["common.S", "futex.c"],
        define: None,
        script: "common.map",
        auxiliary: None,
        described: None,
    },
    Library {
        suffix: "-cds",
        sources: &["cds.S", "cds.c", "futex.c"],
        define: None,
        script: "cds.map",
        auxiliary: None,
        described: Some("concurrent data structures"),
    },
    flavor("-memb", "SHIM_MEMB", "memb.map", "readers without fences, by membarrier"),
    // The same symbols as -memb. A program may load both, by way of two plugins: then they must be
    // one, since there is one domain inside. So -memb's symbols come first wherever it is found.
    Library {
        auxiliary: Some("liburcu-memb.so.8"),
        ..flavor("", "SHIM_MEMB", "memb.map", "the default flavour, which is -memb")
    },
    flavor("-mb", "SHIM_MB", "mb.map", "readers with full fences"),
    flavor("-qsbr", "SHIM_QSBR", "qsbr.map", "readers that announce quiescent states"),
    flavor("-bp", "SHIM_BP", "bp.map", "readers that need not register"),
    flavor(
        "-signal",
        "SHIM_SIGNAL",
        "signal.map",
        "readers without fences, under the name of the signal flavour",
    ),
];

impl Library {
    /// As the dynamic linker knows it.
    pub(crate) fn soname(&self) -> String {
        format!("{}.{SOVERSION}", self.linker_name())
    }

    /// Whether the linker is given a library of its own, on which no program runs: it says how big
    /// the flavour's structure is that programs copy into themselves when they are linked now,
    /// which is more than what the library for programs of liburcu 0.13 says (`shim/flavor.c`).
    pub(crate) fn has_link_time_twin(&self) -> bool {
        self.sources.contains(&"flavor.c")
    }

    /// As the linker looks for it.
    pub(crate) fn linker_name(&self) -> String {
        format!("liburcu{}.so", self.suffix)
    }

    /// As the linker looks for it in a static link.
    pub(crate) fn archive(&self) -> String {
        format!("liburcu{}.a", self.suffix)
    }
}
