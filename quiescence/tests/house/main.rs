//! What needs the repository around the library: its documents, and a module of another package.
//! Not in the package that is published.

mod hash_map_histories;
mod probes;
mod tidy;
