//! Who retires what, and how much may wait.

use grace::limit::Amount;
use serde::{Deserialize, Deserializer};

/// An object to be retired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Object {
    /// What it is counted as, besides as one object.
    pub(super) bytes: u8,
    /// How often it queues itself anew when it is run.
    pub(super) again: u8,
}

/// A thread of a program.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Client {
    /// What it retires, inside or outside of sections.
    pub(super) retires: Vec<Object>,
    /// How many sections it may have.
    pub(super) sections: u8,
    /// How many threads do this, each after the end of the one before.
    #[serde(default = "once")]
    pub(super) lives: u8,
}

/// A scenario.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Scenario {
    /// Its name.
    pub(super) name: &'static str,
    /// What may wait.
    #[serde(deserialize_with = "amount")]
    pub(super) limit: Amount,
    /// What a thread takes at once. ([`grace::limit::chunk`] of a limit as small is nothing.)
    #[serde(default = "nothing", deserialize_with = "amount")]
    pub(super) chunk: Amount,
    /// The threads, at most three.
    pub(super) clients: Vec<Client>,
    /// Whether the first callback that the worker runs blocks until all threads have ended.
    #[serde(default)]
    pub(super) worker_blocks: bool,
}

fn amount<'de, D: Deserializer<'de>>(from: D) -> Result<Amount, D::Error> {
    let (objects, bytes) = Deserialize::deserialize(from)?;
    Ok(Amount { objects, bytes })
}

const fn nothing() -> Amount {
    Amount::NONE
}

const fn once() -> u8 {
    1
}

impl Scenario {
    /// Whether any object has bytes. Where none has, the word of the bytes is always 0, and
    /// touching it is no step of its own.
    pub(super) fn has_bytes(&self) -> bool {
        self.clients.iter().flat_map(|client| &client.retires).any(|object| object.bytes != 0)
    }
}
