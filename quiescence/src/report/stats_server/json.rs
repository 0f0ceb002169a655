//! A writer of JSON on one line: just what [`super`] needs.

use std::fmt::{Display, Write};

/// A document that is being written.
#[derive(Debug, Default)]
pub(crate) struct Json {
    text: String,
    /// Whether the next value is the first in its object or array, or belongs to a key.
    first: bool,
}

impl Json {
    /// One object, whose fields `fields` writes.
    pub(crate) fn document(fields: impl FnOnce(&mut Self)) -> String {
        let mut json = Self { text: String::new(), first: true };
        json.object(fields);
        json.text
    }

    fn separate(&mut self) {
        if !std::mem::take(&mut self.first) {
            self.text.push(',');
        }
    }

    fn open(&mut self, bracket: char) {
        self.separate();
        self.text.push(bracket);
        self.first = true;
    }

    fn close(&mut self, bracket: char) {
        self.text.push(bracket);
        self.first = false;
    }

    /// An object.
    pub(crate) fn object(&mut self, fields: impl FnOnce(&mut Self)) {
        self.open('{');
        fields(self);
        self.close('}');
    }

    /// An array.
    pub(crate) fn array(&mut self, values: impl FnOnce(&mut Self)) {
        self.open('[');
        values(self);
        self.close(']');
    }

    /// The key of the value that follows.
    pub(crate) fn key(&mut self, key: &str) -> &mut Self {
        self.string(key);
        self.text.push(':');
        self.first = true;
        self
    }

    /// A number, `true`, `false` or `null`.
    pub(crate) fn plain(&mut self, value: impl Display) {
        self.separate();
        self.text.push_str(&value.to_string());
    }

    /// A field with a number.
    pub(crate) fn field(&mut self, key: &str, number: u64) {
        self.key(key).plain(number);
    }

    /// A string; control characters are escaped, so that the document stays on one line.
    pub(crate) fn string(&mut self, string: &str) {
        self.separate();
        self.text.push('"');
        for character in string.chars() {
            match character {
                '"' | '\\' => self.text.extend(['\\', character]),
                control if control.is_control() => {
                    // All of them are below U+00A0. Writing to a string does not fail.
                    let _ = write!(self.text, "\\u{:04x}", u32::from(control));
                }
                other => self.text.push(other),
            }
        }
        self.text.push('"');
    }

    /// A string, or nothing.
    pub(crate) fn string_or_null(&mut self, string: Option<&str>) {
        match string {
            Some(string) => self.string(string),
            None => self.plain("null"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_written_is_read_back() {
        let mut all: String =
            (0..if cfg!(miri) { 0xff } else { 0x2fff }).filter_map(char::from_u32).collect();
        all.push_str("\u{10ffff}\u{2028}é");
        let text = Json::document(|json| {
            json.key(&all).string(&all);
            json.field("max", u64::MAX);
            json.key("empty").object(|_| ());
            json.key("list").array(|json| {
                json.plain(0);
                json.array(|_| ());
                json.object(|json| json.key("a").plain(true));
                json.plain("null");
                json.string_or_null(None);
                json.string_or_null(Some(""));
            });
            json.key("last").plain(false);
        });
        assert!(!text.contains(char::is_control));
        let list = json!([0, [], { "a": true }, null, null, ""]);
        let expected =
            json!({ &all: &all, "max": u64::MAX, "empty": {}, "list": list, "last": false });
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), expected);
    }
}
