//! Data that are part of the program.

use serde::Deserialize;

/// What a file of this text in TOML lists.
///
/// All of them are read as one type, whose parts are kept for ever and are what is borrowed. Read
/// from TOML itself, each `T` would be compiled for places in the text and for dates, too.
pub(crate) fn read_toml<T: Deserialize<'static>>(text: &'static str) -> T {
    let all: serde_json::Value = toml::from_str(text).expect("it is TOML");
    T::deserialize(&*Box::leak(Box::new(all))).expect("the file is part of the program")
}
