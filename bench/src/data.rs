//! Data that are part of the program.

use std::collections::BTreeMap;

use serde::Deserialize;

/// What a file of this text in TOML lists.
///
/// All of them are read as one type, whose parts are kept for ever and are what is borrowed. Read
/// from TOML itself, each `T` would be compiled for places in the text and for dates, too.
///
/// # Panics
/// If the file is wrong; a test reads each.
pub fn read_toml<T: Deserialize<'static>>(text: &'static str) -> T {
    let all: serde_json::Value = toml::from_str(text).expect("it is TOML");
    T::deserialize(&*Box::leak(Box::new(all))).expect("the file is part of the program")
}

/// The rows of a file that has nothing else: `[[row]]`.
///
/// # Panics
/// As [`read_toml`].
pub fn rows<T: Deserialize<'static>>(text: &'static str) -> Vec<T> {
    read_toml::<BTreeMap<&str, Vec<T>>>(text).remove("row").unwrap_or_default()
}
