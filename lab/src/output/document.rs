//! The JSON documents of all commands: an object of a schema (`lab/schema`), whose members are put
//! together here, and looked at when a document is read again.

use bench::slices::RunVerdict;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The name of a document's schema, and its version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SchemaId(pub(crate) &'static str, pub(crate) u32);

impl SchemaId {
    /// A document of this schema, with the members of these objects.
    pub(crate) fn document(self, parts: impl IntoIterator<Item = Value>) -> Value {
        let head = json!({ "schema": self.0, "version": self.1 });
        merged([head].into_iter().chain(parts))
    }

    /// Reads such a document; else says what it is.
    pub(crate) fn read<T: DeserializeOwned>(self, text: &str) -> Result<T, String> {
        let document: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let (schema, version) = (&document["schema"], &document["version"]);
        if schema != self.0 || version != self.1 {
            let wanted = format!("{:?}, version {} is wanted", self.0, self.1);
            return Err(format!("schema {schema}, version {version}, where {wanted}"));
        }
        serde_json::from_value(document).map_err(|error| error.to_string())
    }
}

/// An object with the members of these.
pub(crate) fn merged(parts: impl IntoIterator<Item = Value>) -> Value {
    parts.into_iter().filter_map(|part| part.as_object().cloned()).flatten().collect()
}

/// How good a run was, as a part of a document.
pub(crate) fn run_out(run: &RunVerdict) -> Value {
    merged([json!({ "verdict": run.name(), "sentence": run.to_string() }), json!(run)])
}
