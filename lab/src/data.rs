//! Tables that are part of the program: TOML files beside the code that reads them.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;

/// What a file of this text says; a test reads each.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> T {
    toml::from_str(text).unwrap_or_else(|error| panic!("{error}"))
}

/// The rows of a file that has nothing else: `[[row]]`.
pub(crate) fn rows<T: DeserializeOwned>(text: &str) -> Vec<T> {
    read::<BTreeMap<String, Vec<T>>>(text).remove("row").unwrap_or_default()
}
