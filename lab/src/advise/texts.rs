//! What `rcu advise` says in whole sentences that stay the same: `texts.toml`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The texts, by name.
pub(super) static TEXTS: LazyLock<BTreeMap<String, String>> =
    LazyLock::new(|| toml::from_str(include_str!("texts.toml")).expect("tests read it, too"));
