//! A table of values by ids: [`IdMap`].
//!
//! | file | what it is |
//! |---|---|
//! | `id` | ids and marks |
//! | `chunk` | the slots of 512 indexes |
//! | `directory` | where the chunks are |
//! | `table` | who owns an index, and which entry is there: the invariants |
//! | `given_back` | where a thread's next insertion looks first |
//! | `map` | what users see |
//! | `reader`, `entries` | a view: a section with its map; iteration |
//! | `retire` | retires entries that were taken out |

mod chunk;
mod directory;
mod entries;
mod given_back;
mod id;
#[cfg(all(test, loom))]
mod loom_tests;
mod map;
mod reader;
mod retire;
mod table;
#[cfg(test)]
mod tests;

pub use self::entries::Entries;
pub use self::id::{Id, Mark};
pub use self::map::IdMap;
pub use self::reader::IdMapRef;
pub use self::retire::ReplaceError;
