//! Which libraries there are: names, what each is made of, and which share what.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// One of the thin libraries, `liburcu-NAME.so.8`, as `compat/link/libraries.toml` describes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Library {
    pub(crate) suffix: String,
    pub(crate) sources: Vec<String>,
    pub(crate) define: Option<String>,
    pub(crate) script: String,
    pub(crate) auxiliary: Option<String>,
    pub(crate) described: Option<String>,
}

/// In the order of linking.
pub(crate) static LIBRARIES: LazyLock<Vec<Library>> = LazyLock::new(|| {
    let text = include_str!("../../compat/link/libraries.toml");
    let read: Result<BTreeMap<String, _>, _> = toml::from_str(text);
    read.expect("libraries.toml is well-formed").remove("library").expect("it has libraries")
});

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

/// The core, and the thin libraries, as the dynamic linker knows them.
pub(crate) fn sonames() -> impl Iterator<Item = String> {
    std::iter::once(CORE.to_owned()).chain(LIBRARIES.iter().map(Library::soname))
}

impl Library {
    /// As the dynamic linker knows it.
    pub(crate) fn soname(&self) -> String {
        format!("{}.{SOVERSION}", self.linker_name())
    }

    /// Whether the linker is given a library of its own, on which no program runs: it says how big
    /// the flavour's structure is that programs copy into themselves when they are linked now,
    /// which is more than what the library for programs of liburcu 0.13 says (`shim/flavor.c`).
    pub(crate) fn has_link_time_twin(&self) -> bool {
        self.sources.iter().any(|source| source == "flavor.c")
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
